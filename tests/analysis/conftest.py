"""TensorFlow comes first here, when all tests are collected: quickly."""

from tfcomp.config.quiet import start_tensorflow

with start_tensorflow():
    import keras  # noqa: F401
