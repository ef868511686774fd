"""TensorFlow as commands start it, for processes that are forked off one."""

from tfcomp.config.process import start_tensorflow

with start_tensorflow():
    import tfcomp.training.experiment  # noqa: F401
