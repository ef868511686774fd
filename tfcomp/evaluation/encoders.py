"""Encoders and decoders of Keras, PyTorch or NumPy as functions of arrays."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import keras
import numpy as np

from tfcomp.datasets.table_images import to_array
from tfcomp.evaluation.torch_modules import TorchModule, is_module
from tfcomp.models.stages import make_stage_model

BATCH = 128  # images of one call
# From a batch of arrays to activations by layer, the output last.
Activate = Callable[[np.ndarray], dict[str, np.ndarray]]
_SILENT = ("InputLayer", "Dropout", "Flatten", "Reshape")


def open_encoder(model: Any, layers: Sequence[str], output: str) -> Activate:
    """Returns a function to the layers of a model and its output.

    Args:
        model: A Keras model, a module of PyTorch, or a function of arrays,
            which may return a dictionary of layers.
        layers: Names of layers; by default those at the top of a model.
        output: The name that the output gets.

    Raises:
        ValueError: If there is no such layer, or it is no model.
    """
    if isinstance(model, keras.Model):
        return _open_keras(model, list(layers), output)
    if is_module(model):
        return _open_torch(model, list(layers), output)
    if not callable(model):
        raise ValueError(f"must be a model or a function, got {model!r}")

    def activate(values: np.ndarray) -> dict[str, np.ndarray]:
        found = model(values)
        if isinstance(found, tuple | list):
            raise ValueError(
                f"the function returns {len(found)} outputs: return one array "
                "or a dictionary of layers"
            )
        if not isinstance(found, Mapping):
            found = {output: found}
        names = [*layers, list(found)[-1]] if layers else list(found)
        if missing := [name for name in names if name not in found]:
            raise ValueError(f"the function gives no {', '.join(missing)}")
        kept = {name: to_array(found[name]) for name in names[:-1]}
        return kept | {output: to_array(found[names[-1]])}

    return activate


def _open_keras(model: keras.Model, layers: list[str], output: str) -> Activate:
    inner = [x for x in model.layers if type(x).__name__ not in _SILENT]
    if not layers:
        last = getattr(model.layers[-1], "name", "")
        layers = [x.name for x in inner if x.name != last]
    part = make_stage_model(model, layers) if layers else None

    def activate(values: np.ndarray) -> dict[str, np.ndarray]:
        found = dict(part(values, training=False)) if part else {}
        final = model(values, training=False)
        if isinstance(final, tuple | list | Mapping):
            raise ValueError(
                f"the model returns {len(final)} outputs: pass a function that "
                "returns one of them"
            )
        return {n: np.asarray(v) for n, v in (found | {output: final}).items()}

    return activate


def _open_torch(module: Any, layers: list[str], output: str) -> Activate:
    if not layers:
        layers = [name for name, _ in module.named_children()][:-1]
    call = TorchModule(module, layers, output)

    def activate(values: np.ndarray) -> dict[str, np.ndarray]:
        if values.ndim == 4:  # channels come first there
            values = np.ascontiguousarray(values.transpose(0, 3, 1, 2))
        found = call(values)
        if not layers:
            found = found if isinstance(found, Mapping) else {output: found}
        order = [n for n in (*layers, *found) if n in found]
        return {name: to_array(found[name]) for name in dict.fromkeys(order)}

    return activate


def run_in_batches(
    activate: Callable[[np.ndarray], dict[str, np.ndarray]],
    points: np.ndarray,
) -> dict[str, np.ndarray]:
    """Returns activations [n, units] at all points [n, F], float32."""
    batches = np.array_split(points, -(-len(points) // BATCH))
    arrays: dict[str, np.ndarray] = {}
    start = 0
    for batch in batches:
        for name, value in activate(batch).items():
            flat = np.asarray(value, np.float32).reshape(len(batch), -1)
            if name not in arrays:
                shape = (len(points), flat.shape[1])
                arrays[name] = np.empty(shape, np.float32)
            arrays[name][start : start + len(batch)] = flat
        start += len(batch)
    return arrays
