"""Decoders, a module for each family: rules, cost and builder, registered.

A module that is added here is found. It has Keras from `registry` and imports
layers in its builders, because bad flags are answered without TensorFlow.
"""

import importlib
import pkgutil
import sys
from types import ModuleType


def import_all(package: ModuleType) -> None:
    """Imports all modules of a package."""
    for module in pkgutil.iter_modules(
        package.__path__, f"{package.__name__}."
    ):
        importlib.import_module(module.name)


import_all(sys.modules[__name__])
