"""Opens models of Keras, TensorFlow, PyTorch or NumPy; checks their outputs."""

import zipfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from tfcomp.config.errors import RunError, first_line
from tfcomp.models.loading import load_model, load_run
from tfcomp.models.stages import list_stages, make_stage_model
from tfcomp.models.torch_modules import TorchModule, is_module
from tfcomp.storage.run_folder import FLAGS_FILE

IMAGE = "image"
# From factors [n, F] to named activations [n, ...], images among them.
Call = Callable[[tf.Tensor], Mapping[str, Any]]
# From arrays [n, ...] to arrays by layer, the output last.
Activate = Callable[[np.ndarray], dict[str, np.ndarray]]
_SILENT = ("InputLayer", "Dropout", "Flatten", "Reshape")


def open_model(
    model: Any, stages: list[str]
) -> tuple[list[str], Call, Activate | None]:
    """Returns names of stages, and functions to all outputs and Jacobians."""
    if isinstance(model, (str, Path)):
        model = _load(Path(model))
    if isinstance(model, keras.Model):
        count = len(getattr(model, "inputs", None) or [None])
        if count > 1:
            raise ValueError(
                f"the model takes {count} inputs: pass a function of factors "
                "[n, F] that calls it, lambda f: model([f[:, :1], f[:, 1:]])"
            )
        names = stages or [n for n in list_stages(model) if n != IMAGE]
        part = make_stage_model(model, names) if names else lambda f: {}
        return names, lambda f: part(f) | {IMAGE: _pick_image(model(f))}, None
    if hasattr(model, "signatures"):
        return *_open_signatures(model, stages), None
    if is_module(model):
        module = TorchModule(model, stages)
        call = _call_numpy(module, [*stages, IMAGE])
        return stages, call, module.differentiate
    if not callable(model):
        raise ValueError(f"model must be a model or a function, got {model!r}")
    return stages, _call_numpy(model, [*stages, IMAGE]), None


def open_encoder(model: Any, layers: Sequence[str], output: str) -> Activate:
    """Returns a function from arrays to layers [n, units] and the output."""
    is_torch = is_module(model)
    layers = list(layers) or _list_layers(model)
    if callable(model) and not is_torch and not isinstance(model, keras.Model):
        model = _name_output(model)
    layers, call, _ = open_model(model, layers)

    def activate(values: np.ndarray) -> dict[str, np.ndarray]:
        if is_torch and values.ndim == 4:  # channels come first there
            values = values.transpose(0, 3, 1, 2)
        found = call(tf.constant(values))
        arrays = {name: found[name] for name in layers} | {output: found[IMAGE]}
        return {
            name: np.asarray(array, np.float32).reshape(len(values), -1)
            for name, array in arrays.items()
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


def _load(path: Path) -> Any:
    if (path / FLAGS_FILE).exists():
        return load_run(path).model
    if path.is_file() and path.suffix != ".keras":
        cure = "save it by model.save('model.keras'), or pass the model itself"
        raise RunError(f"{path} must be a .keras file or a SavedModel: {cure}")
    try:
        if path.is_dir():
            return tf.saved_model.load(str(path))
        return load_model(path)
    except TypeError as error:  # classes that Keras does not know
        raise RunError(
            f"{path} cannot be loaded ({first_line(error)}): import the "
            "module of its layers first, or pass the model itself"
        ) from error
    except (OSError, ValueError, zipfile.BadZipFile, RunError) as error:
        rule = f"must hold a model: {first_line(error)}"
        raise RunError(f"{path} {rule}") from error


def _open_signatures(loaded: Any, stages: list[str]) -> tuple[list[str], Call]:
    draw = loaded.signatures.get("serving_default")
    if draw is None:
        raise ValueError(
            "the SavedModel has no signature serving_default: write it by "
            "model.export(folder), or pass a function"
        )
    activate = loaded.signatures.get("activations")
    own = sorted(activate.structured_outputs) if activate else []
    names = stages or [name for name in own if name != IMAGE]
    if missing := sorted(set(names) - set(own)):
        raise ValueError(f"the SavedModel has no stages {', '.join(missing)}")
    arguments = draw.structured_input_signature[1]
    if len(arguments) != 1:
        raise ValueError(
            f"the SavedModel takes {len(arguments)} inputs "
            f"({', '.join(sorted(arguments))}): pass a function of factors "
            "[n, F] that calls it"
        )
    (argument,) = arguments

    # Of tfcomp's exports, whose activations have the image that is drawn.
    has_image = "geometry" in loaded.signatures and IMAGE in own

    # A signature does not keep the variables of its model.
    def call(factors: tf.Tensor, owner: Any = loaded) -> Mapping[str, Any]:
        found = activate(factors=factors) if names else {}
        if names and has_image:
            return found
        return {**found, IMAGE: _pick_image(draw(**{argument: factors}))}

    return names, call


def _pick_image(outputs: Any) -> Any:
    if isinstance(outputs, tuple | list):
        raise ValueError(
            f"the model returns {len(outputs)} outputs: pass a function that "
            "returns one of them"
        )
    if not isinstance(outputs, Mapping):
        return outputs
    return outputs[IMAGE] if IMAGE in outputs else [*outputs.values()][-1]


def _call_numpy(
    function: Callable[[np.ndarray], Any], names: list[str]
) -> Call:
    """Wraps a function of arrays, to be called from within TensorFlow."""
    shapes: dict[str, tuple[int, ...]] = {}

    def evaluate(factors: np.ndarray) -> list[np.ndarray]:
        outputs = function(factors)
        if not isinstance(outputs, Mapping):
            outputs = {IMAGE: outputs}
        if missing := [name for name in names if name not in outputs]:
            raise ValueError(f"the model gives no {', '.join(missing)}")
        return [_to_array(n, outputs[n], len(factors)) for n in names]

    def call(factors: tf.Tensor) -> Mapping[str, tf.Tensor]:
        if tf.executing_eagerly():  # also learns the shapes
            found = dict(zip(names, evaluate(factors.numpy()), strict=True))
            shapes.update({n: array.shape[1:] for n, array in found.items()})
            return {n: tf.constant(array) for n, array in found.items()}
        types = [tf.float32] * len(names)
        values = tf.numpy_function(evaluate, [factors], types)
        return fix_shapes(dict(zip(names, values, strict=True)), shapes)

    return call


def fix_shapes(
    outputs: Mapping[str, tf.Tensor], shapes: Mapping[str, tuple[int, ...]]
) -> dict[str, tf.Tensor]:
    """Declares the shapes of outputs, [n, ...]."""
    return {
        name: tf.ensure_shape(value, (None, *shapes[name]))
        for name, value in outputs.items()
    }


def _to_array(name: str, value: Any, num_rows: int) -> np.ndarray:
    if isinstance(value, tuple | list) and len(value) != num_rows:
        raise ValueError(
            f"the model returns {len(value)} outputs: return the images, or a "
            "dictionary with 'image' and named stages"
        )
    try:
        array = np.asarray(value)
    except (RuntimeError, TypeError) as error:  # a tensor of PyTorch
        cure = "return tensor.detach().cpu().float().numpy()"
        raise ValueError(f"{name} must be an array: {cure}") from error
    check_output(name, array.shape, array.dtype, num_rows)
    return array.astype(np.float32)


def check_output(
    name: str, shape: tuple[int, ...], dtype: np.dtype, num_rows: int
) -> None:
    """Raises a ValueError if rows or type of an output are invalid."""
    if dtype.kind == "c":
        raise ValueError(f"{name} must be real, got {dtype}: return its .real")
    if dtype.kind not in "buif":
        raise ValueError(f"{name} must be an array of numbers, got {dtype}")
    if not shape or shape[0] != num_rows:
        got = f"{shape[0]} rows" if shape else "a number"
        raise ValueError(
            f"{name} must have a row for each of {num_rows} combinations, got "
            f"{got}: return [n, ...] for factors [n, F]"
        )
