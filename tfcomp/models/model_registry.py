"""Decoders by name, each with its rules and its cost.

A builder is called as `build(config, dataset)`. `MODELS.register` also takes

    check(config, dataset)   raises a `ConfigError` for impossible settings
    cost(config)             multiplications of the widest layer, per image

Neither may import TensorFlow: they are called before it starts.
"""

from tfcomp.config.registry import Registry

MODELS = Registry("model")
