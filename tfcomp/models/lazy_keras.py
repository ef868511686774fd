"""Keras, imported when a builder first uses it: checks do without it."""

import importlib
from typing import TYPE_CHECKING, Any


class LazyModule:
    """A module that is imported when it is first used."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> Any:
        return getattr(importlib.import_module(self._name), name)


if TYPE_CHECKING:
    import keras
    from keras import layers
else:
    keras, layers = LazyModule("keras"), LazyModule("keras.layers")
