"""Decoders, a module for each family: rules, cost and builder, registered.

A module that is added here is found. It has Keras from `registry` and imports
layers in its builders, because bad flags are answered without TensorFlow.
"""

from tfcomp.config.plugins import import_modules

import_modules(__name__)
