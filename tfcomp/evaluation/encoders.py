"""Encoders and decoders of Keras, PyTorch or NumPy as functions of arrays."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from tfcomp.evaluation.adapters import IMAGE, open_model
from tfcomp.evaluation.torch_modules import is_module

# From arrays [n, ...] to activations [n, units] by layer, the output last.
Activate = Callable[[np.ndarray], dict[str, np.ndarray]]
_SILENT = ("InputLayer", "Dropout", "Flatten", "Reshape")


def open_encoder(model: Any, layers: Sequence[str], output: str) -> Activate:
    """Returns a function to the layers of a model and its output.

    Args:
        model: As of `tfcomp.evaluate`, but of other arrays than factors.
        layers: Names of layers, or of entries of a function's dictionary, whose
            last one is the output; by default the layers at the top of a model.
        output: The name that the output gets.

    Raises:
        ValueError: If there is no such layer, or it is no model.
    """
    is_torch = is_module(model)
    layers = list(layers) or _list_layers(model)
    if callable(model) and not is_torch and not isinstance(model, keras.Model):
        model = _name_output(model)
    layers, call = open_model(model, layers)

    def activate(values: np.ndarray) -> dict[str, np.ndarray]:
        if is_torch and values.ndim == 4:  # channels come first there
            values = values.transpose(0, 3, 1, 2)
        found = call(tf.constant(values))
        arrays = {name: found[name] for name in layers}
        return {
            name: np.asarray(array, np.float32).reshape(len(values), -1)
            for name, array in {**arrays, output: found[IMAGE]}.items()
        }

    return activate


def _list_layers(model: Any) -> list[str]:
    """Returns the layers at the top of a model, without the last one."""
    if is_module(model):
        return [name for name, _ in model.named_children()][:-1]
    layers = model.layers[:-1] if isinstance(model, keras.Model) else []
    return [x.name for x in layers if type(x).__name__ not in _SILENT]


def _name_output(function: Callable) -> Callable:
    """Makes the last entry of a dictionary the output."""

    def call(values: np.ndarray) -> Any:
        found = function(values)
        if not isinstance(found, Mapping):
            return found
        return {**found, IMAGE: [*found.values()][-1]}

    return call
