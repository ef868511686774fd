"""Wraps any model as a Keras model with named stages, as tfcomp's own have."""

import dataclasses
import math
import sys
from collections.abc import Sequence
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from tfcomp.datasets import Dataset
from tfcomp.datasets.dataset import MAX_AVERAGED
from tfcomp.datasets.splits import choose_rows
from tfcomp.models import open_models
from tfcomp.models.open_models import IMAGE
from tfcomp.models.registry import make_input
from tfcomp.models.stages import JacobianFn, Stage, evaluate_in_batches

INPUTS = ("values", "classes", "unit")
MAX_NAMED = 3
COMPARED = 8  # points at which two calls are compared
# Share of the range of the true images by which outputs may leave it.
MARGIN = 0.5


def wrap_model(
    model: Any,
    dataset: Dataset,
    stages: Sequence[str],
    inputs: str,
) -> keras.Model:
    """Wraps a model as a Keras model with stages and `image`.

    Args:
        model: A model as for `open_models.open_model`.
        dataset: The data whose factors it takes and whose images it draws.
        stages: Names of stages; empty for all that the model itself names.
        inputs: How it takes factors: `"values"`, `"classes"` (indices of
            values) or `"unit"` (scaled to [0, 1]).

    Raises:
        ValueError: If the model cannot be called so, or has no such stage.
    """
    if inputs not in INPUTS:
        raise ValueError(f"inputs must be one of {INPUTS}, got {inputs!r}")
    names, call, differentiate = open_models.open_model(model, list(stages))
    layer = _Outside(call, differentiate, dataset, inputs, names)
    factors = make_input(dataset)
    outputs = layer(factors)

    before: list[keras.KerasTensor] = []
    for name in [*names, IMAGE]:  # in this order among the layers
        stage = Stage(name=name)
        before = [stage([outputs[name], *before])]
    return keras.Model(factors, before[0], name="outside")


class _Outside(keras.layers.Layer):
    """Calls a model with factors in the form that it takes."""

    def __init__(
        self,
        call: open_models.Call,
        differentiate: open_models.Activate | None,
        dataset: Dataset,
        inputs: str,
        names: list[str],
    ) -> None:
        super().__init__(name="outside", dtype="float32")
        self._call = call
        self._inputs = inputs
        self._space = dataset.space
        self._image_shape = dataset.image_shape

        ends = [factor.values()[[0, -1]] for factor in self._space]
        first, last = np.array(ends, np.float32).T
        self._low = np.zeros(len(first), np.float32)
        self._scale = np.float32(1)
        if inputs == "unit":
            span = last - first
            self._low = first
            self._scale = 1 / np.maximum(span, np.float32(1e-30))

        self._shapes = self._probe_shapes(dataset, [*names, IMAGE])
        self._slopes = None
        if inputs != "classes" and differentiate is not None:
            point = np.zeros((1, len(first)), np.float32)
            try:
                differentiate(point)
                self._slopes = differentiate
            except ValueError:
                pass  # some modules have no derivatives

    def _probe_shapes(
        self,
        dataset: Dataset,
        names: list[str],
    ) -> dict[str, tuple[int, ...]]:
        """Calls the model once; returns the shapes of outputs without n."""
        # Three rows: a model that returns one image for any batch shows it.
        num_rows = 3
        grid = dataset.splits.grid
        rows = np.arange(num_rows) % len(grid)
        factors = tf.constant(grid[rows])
        outputs = self._call(self._convert(factors))

        shapes = {}
        for name in names:
            value = tf.convert_to_tensor(outputs[name])
            shape = tuple(value.shape)
            dtype = np.dtype(value.dtype.as_numpy_dtype)
            open_models.check_output(name, shape, dtype, num_rows)
            shapes[name] = shape[1:]
        _to_images(outputs[IMAGE], self._image_shape)
        return shapes

    @property
    def jacobian_fn(self) -> JacobianFn | None:
        """Exact Jacobians by other software, a column for each factor."""
        if self._slopes is None:
            return None
        return self._differentiate

    def _differentiate(
        self,
        _: Any,
        factors: tf.Tensor,
    ) -> dict[str, tf.Tensor]:
        def compute(values: np.ndarray) -> list[np.ndarray]:
            assert self._slopes is not None
            slopes = self._slopes(values)
            arrays = []
            for name in self._shapes:
                arrays.append(slopes[name].astype(np.float32))
            return arrays

        inputs = self._convert(factors)
        types = [tf.float32] * len(self._shapes)
        slopes = tf.numpy_function(compute, [inputs], types)

        jacobians = {}
        for name, slope in zip(self._shapes, slopes, strict=True):
            units = math.prod(self._shapes[name])
            slope = tf.ensure_shape(slope, (None, units, len(self._space)))
            jacobians[name] = slope * self._scale
        return jacobians

    def call(self, factors: tf.Tensor) -> dict[str, tf.Tensor]:
        """Evaluates the model on factors [n, F] as it takes them."""
        inputs = self._convert(factors)
        values = self._call(inputs)

        outputs = {}
        for name, shape in self._shapes.items():
            value = tf.cast(values[name], tf.float32)
            outputs[name] = tf.ensure_shape(value, (None, *shape))
        outputs[IMAGE] = _to_images(outputs[IMAGE], self._image_shape)
        return outputs

    def _convert(self, factors: tf.Tensor) -> tf.Tensor:
        """Converts factor values [n, F] to the form that the model takes."""
        if self._inputs != "classes":
            return (factors - self._low) * self._scale
        index = tf.numpy_function(self._space.to_index, [factors], tf.int64)
        index = tf.cast(index, tf.float32)
        return tf.ensure_shape(index, factors.shape)


def _to_images(images: Any, shape: tuple[int, int, int]) -> tf.Tensor:
    """Converts images [n, C, H, W], [n, H, W] or flat ones to [n, H, W, C]."""
    images = tf.convert_to_tensor(images)
    rows, columns, channels = shape
    size = tuple(images.shape[1:])

    if size == shape:
        return images
    if size == (channels, rows, columns):
        return tf.transpose(images, (0, 2, 3, 1))

    is_gray = channels == 1 and size == (rows, columns)
    is_flat = size == (math.prod(shape),)
    if not is_gray and not is_flat:
        raise ValueError(
            f"the model must draw images {list(shape)}, got {list(size)}"
        )
    return tf.reshape(images, (-1, *shape))


def check_outputs(
    dataset: Dataset,
    model: keras.Model,
    samples: int,
) -> tuple[Dataset, np.ndarray]:
    """Draws all images of a model, and notes what is odd about them.

    Args:
        dataset: The data.
        model: A model of `wrap_model`.
        samples: How often scores evaluate the model, to average.

    Returns:
        The data with the notes, which are printed too, and the images.

    Raises:
        ValueError: If an image is not finite.
    """
    call = tf.function(lambda factors: {IMAGE: model(factors)}, autograph=False)
    grid = dataset.splits.grid
    images = evaluate_in_batches(call, grid)[IMAGE]
    _check_finite(images, dataset)
    notes = _list_notes(dataset, images)

    # Of one size: rounding may depend on the size of a batch.
    first = evaluate_in_batches(call, grid[:COMPARED])[IMAGE]
    second = evaluate_in_batches(call, grid[:COMPARED])[IMAGE]
    is_same = np.allclose(
        first,
        second,
        rtol=1e-3,
        atol=1e-4,
        equal_nan=True,
    )
    if samples > 1:
        notes.append(
            f"scores are means of {samples} evaluations; pages, tables and "
            "pictures show the first"
        )
    elif not is_same:
        notes.append("images differ from call to call: samples=10 averages")

    for note in notes:
        print(f"note: {note}", file=sys.stderr)
    dataset = dataclasses.replace(dataset, notes=(*dataset.notes, *notes))
    return dataset, images


def _check_finite(images: np.ndarray, dataset: Dataset) -> None:
    flat = images.reshape(len(images), -1)
    is_finite = np.isfinite(flat).all(axis=1)
    if is_finite.all():
        return

    grid = dataset.splits.grid
    missing = dataset.space.to_index(grid[~is_finite])
    names = "; ".join(map(dataset.space.name_point, missing[:MAX_NAMED]))
    raise ValueError(
        f"images must be finite, they are not at {len(missing):,} of "
        f"{len(grid):,} combinations, such as {names}: leave these out of "
        "the data, or return numbers there"
    )


def _list_notes(dataset: Dataset, images: np.ndarray) -> list[str]:
    """Compares the range of images with the range of the true ones."""
    grid = dataset.splits.grid
    points = grid[choose_rows(len(grid), MAX_AVERAGED)]
    truth, _ = dataset.render_all(points, MAX_AVERAGED)
    darkest = float(truth.min())
    brightest = float(truth.max())
    low = float(images.min())
    high = float(images.max())

    margin = MARGIN * (brightest - darkest)
    is_too_dark = low < darkest - margin
    is_too_bright = high > brightest + margin
    if not is_too_dark and not is_too_bright:
        return []

    guess = "logits?"
    if low >= 0 and high > 100:
        guess = "0 to 255? (/ 255)"
    elif low >= -1.01 and high <= 1.01:
        guess = "-1 to 1? ((images + 1) / 2)"
    return [
        f"outputs from {low:.3g} to {high:.3g}, images from {darkest:.3g} "
        f"to {brightest:.3g}: {guess}"
    ]
