"""Wraps any model as a Keras model with named stages, like those of tfcomp.

Exact derivatives pass through Keras models and SavedModels, and come from
`torch.func` for modules of PyTorch. Functions of NumPy arrays have differences
over the grid (`find_nondifferentiable`).
"""

import dataclasses
import sys
import zipfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from tfcomp.analysis.jacobians import JacobianFn, evaluate_in_batches
from tfcomp.config.errors import RunError, first_line
from tfcomp.datasets import Dataset
from tfcomp.datasets.factors import FactorSpace
from tfcomp.evaluation.loading import load_model, load_run
from tfcomp.evaluation.output_contract import (
    check_output,
    leave_out,
    list_notes,
    to_array,
)
from tfcomp.evaluation.torch_modules import TorchModule, is_module
from tfcomp.models.stages import Stage, list_stages, make_stage_model
from tfcomp.storage.run_folder import FLAGS_FILE

INPUTS = ("values", "classes", "unit")
IMAGE = "image"
# From factors [n, F] to named activations [n, ...], images among them.
Call = Callable[[tf.Tensor], Mapping[str, Any]]


def wrap_model(
    model: Any, dataset: Dataset, stages: Sequence[str], inputs: str
) -> keras.Model:
    """Returns a Keras model with these stages and `image`.

    Arguments are as in `tfcomp.evaluate`.

    Raises:
        ValueError: If inputs are none of `INPUTS`, a stage does not exist, or
            images are not of the data's size.
        RunError: If there is no model at a path.
    """
    if inputs not in INPUTS:
        raise ValueError(f"inputs must be one of {INPUTS}, got {inputs!r}")
    names, call = open_model(model, list(stages))
    layer = _Outside(call, dataset, inputs, names)
    size = len(dataset.space)
    factors = keras.Input((size,), dtype="float32", name="factors")
    outputs = layer(factors)
    before: list[keras.KerasTensor] = []
    for name in [*names, IMAGE]:  # in this order among the layers
        before = [Stage(name=name)([outputs[name], *before])]
    return keras.Model(factors, before[0], name="outside")


def check_outputs(
    dataset: Dataset, model: keras.Model, samples: int
) -> tuple[Dataset, np.ndarray]:
    """Computes the images at all points of the grid, and checks them.

    Returns:
        The data with notes on odd images (also printed on standard error),
        without combinations whose images are not finite; and the images of the
        others.

    Raises:
        ValueError: If images are finite at no ID combination.
    """
    call = tf.function(lambda f: {IMAGE: model(f)}, autograph=False)

    def draw(points: np.ndarray) -> np.ndarray:
        return evaluate_in_batches(call, points)[IMAGE]

    before = len(dataset.notes)
    dataset, images = leave_out(dataset, draw(dataset.splits.grid), draw)
    notes = list_notes(dataset, images, draw, samples)
    dataset = dataclasses.replace(dataset, notes=(*dataset.notes, *notes))
    for note in dataset.notes[before:]:
        print(f"note: {note}", file=sys.stderr)
    return dataset, images


class _Outside(keras.layers.Layer):
    """Calls a model with factors in the form that it takes."""

    def __init__(
        self, call: Call, dataset: Dataset, inputs: str, names: list[str]
    ) -> None:
        super().__init__(name="outside", dtype="float32")
        self._call, self._inputs = call, inputs
        self._space, self._image_shape = dataset.space, dataset.image_shape
        # Three rows: a model that returns one image for any batch shows it.
        factors = dataset.splits.grid[np.arange(3) % len(dataset.splits.grid)]
        probe = self._run(tf.constant(factors))
        for name, value in probe.items():
            dtype = value.dtype.as_numpy_dtype
            check_output(name, tuple(value.shape), np.dtype(dtype), 3)
        self._shapes = {n: tuple(probe[n].shape[1:]) for n in [*names, IMAGE]}
        self._slopes = getattr(call, "differentiate", None)
        if self._slopes and (inputs == "classes" or not self._try_slopes()):
            self._slopes = None

    @property
    def jacobian_fn(self) -> JacobianFn | None:
        """Exact Jacobians by other software, a column for each factor."""
        return self._slopes and self._differentiate

    def _differentiate(
        self, _: Any, factors: tf.Tensor
    ) -> dict[str, tf.Tensor]:
        assert self._slopes is not None
        values = _convert(factors, self._space, self._inputs)
        scale = _find_scale(self._space, self._inputs)
        return {name: j * scale for name, j in self._slopes(values).items()}

    def _try_slopes(self) -> bool:
        """Checks whether PyTorch can differentiate the module."""
        try:
            self._differentiate(None, tf.zeros((1, len(self._space))))
        except ValueError:
            return False
        return True

    def call(self, factors: tf.Tensor) -> dict[str, tf.Tensor]:
        outputs = self._run(factors)
        cast = {n: tf.cast(outputs[n], tf.float32) for n in self._shapes}
        return _fix_shapes(cast, self._shapes)

    def compute_output_spec(
        self, factors: keras.KerasTensor
    ) -> dict[str, keras.KerasTensor]:
        return {
            name: keras.KerasTensor((None, *shape), "float32")
            for name, shape in self._shapes.items()
        }

    def _run(self, factors: tf.Tensor) -> dict[str, tf.Tensor]:
        outputs = dict(self._call(_convert(factors, self._space, self._inputs)))
        outputs[IMAGE] = _to_images(outputs[IMAGE], self._image_shape)
        return outputs


def _fix_shapes(
    outputs: Mapping[str, tf.Tensor], shapes: Mapping[str, tuple[int, ...]]
) -> dict[str, tf.Tensor]:
    return {
        name: tf.ensure_shape(value, (None, *shapes[name]))
        for name, value in outputs.items()
    }


def _convert(factors: tf.Tensor, space: FactorSpace, inputs: str) -> tf.Tensor:
    """Converts factor values to the form that a model takes, [n, F]."""
    if inputs == "values":
        return factors
    if inputs == "classes":
        index = tf.numpy_function(space.to_index, [factors], tf.int64)
        return tf.ensure_shape(tf.cast(index, tf.float32), factors.shape)
    low = np.array([f.values()[0] for f in space], np.float32)
    return (factors - low) * _find_scale(space, inputs)


def _find_scale(space: FactorSpace, inputs: str) -> np.ndarray:
    """Returns the derivative of a model's inputs by factor values, [F]."""
    ends = np.array([f.values()[[0, -1]] for f in space], np.float32)
    if inputs == "values":
        return np.ones(len(space), np.float32)
    return 1 / np.maximum(ends[:, 1] - ends[:, 0], np.float32(1e-30))


def _to_images(images: Any, shape: tuple[int, int, int]) -> tf.Tensor:
    """Converts images [n, C, H, W], [n, H, W] or flat ones to [n, H, W, C]."""
    images = tf.convert_to_tensor(images)
    if images.dtype.is_complex:
        check_output(IMAGE, images.shape, np.dtype(complex), 0)
    images = tf.cast(images, tf.float32)
    rows, columns, channels = shape
    size = tuple(images.shape[1:])
    if size == (channels, rows, columns) != shape:
        return tf.transpose(images, (0, 2, 3, 1))
    if size not in (shape, (rows, columns), (rows * columns * channels,)):
        raise ValueError(
            f"the model must draw images {list(shape)}, got {list(size)}"
        )
    return tf.reshape(images, (-1, *shape))


def open_model(model: Any, stages: list[str]) -> tuple[list[str], Call]:
    """Returns the names of its stages, and a function to all outputs."""
    if isinstance(model, (str, Path)):
        model = _load(Path(model))
    if isinstance(model, keras.Model):
        _check_inputs(model)
        names = stages or [n for n in list_stages(model) if n != IMAGE]
        part = make_stage_model(model, names) if names else lambda f: {}
        return names, lambda f: {**part(f), IMAGE: _pick_image(model(f))}
    if hasattr(model, "signatures"):
        return _open_signatures(model, stages)
    if is_module(model):
        return stages, _call_torch(TorchModule(model, stages), stages)
    if not callable(model):
        raise ValueError(f"model must be a model or a function, got {model!r}")
    return stages, _call_numpy(model, [*stages, IMAGE])


def _check_inputs(model: keras.Model) -> None:
    """Raises ValueError for a model that takes other than factors [n, F]."""
    inputs = getattr(model, "inputs", None) or [None]
    if len(inputs) > 1:
        raise ValueError(
            f"the model takes {len(inputs)} inputs: pass a function of factors "
            "[n, F] that calls it, lambda f: model([f[:, :1], f[:, 1:]])"
        )


def _load(path: Path) -> Any:
    """Loads a model from a file, a SavedModel, or the folder of a run."""
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
    """Opens a SavedModel by `serving_default`, and `activations` of stages."""
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

    # A signature does not keep the variables of its model.
    def call(factors: tf.Tensor, owner: Any = loaded) -> Mapping[str, Any]:
        activations = activate(factors=factors) if names else {}
        image = _pick_image(draw(**{argument: factors}))
        return {**activations, IMAGE: image}

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
        return [to_array(n, outputs[n], len(factors)) for n in names]

    def call(factors: tf.Tensor) -> Mapping[str, tf.Tensor]:
        if tf.executing_eagerly():  # also learns the shapes
            arrays = map(tf.constant, evaluate(factors.numpy()))
            outputs = dict(zip(names, arrays, strict=True))
            shapes.update({n: tuple(a.shape[1:]) for n, a in outputs.items()})
            return outputs
        types = [tf.float32] * len(names)
        values = tf.numpy_function(evaluate, [factors], types)
        return _fix_shapes(dict(zip(names, values, strict=True)), shapes)

    return call


def _call_torch(module: TorchModule, stages: Sequence[str]) -> Call:
    """Wraps a module; `differentiate` of the function gives its Jacobians."""
    call = _call_numpy(module, [*stages, IMAGE])
    widths: dict[str, int] = {}

    def differentiate(factors: tf.Tensor) -> dict[str, tf.Tensor]:
        if not widths:
            probe = module.differentiate(np.zeros((1, factors.shape[1]), "f4"))
            widths.update({n: probe[n].shape[1] for n in [*stages, IMAGE]})
        names = list(widths)

        def compute(values: np.ndarray) -> list[np.ndarray]:
            slopes = module.differentiate(values)
            return [slopes[name].astype(np.float32) for name in names]

        types = [tf.float32] * len(names)
        columns = tf.numpy_function(compute, [factors], types)
        count = factors.shape[1]
        return {
            name: tf.ensure_shape(column, (None, widths[name], count))
            for name, column in zip(names, columns, strict=True)
        }

    call.differentiate = differentiate  # type: ignore[attr-defined]
    return call
