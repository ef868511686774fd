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
from tfcomp.models.stages import JacobianFn, Stage, evaluate_in_batches

INPUTS = ("values", "classes", "unit")
MAX_NAMED = 3
COMPARED = 8  # points at which two calls are compared
# Share of the range of the true images by which outputs may leave it.
MARGIN = 0.5


def wrap_model(
    model: Any, dataset: Dataset, stages: Sequence[str], inputs: str
) -> keras.Model:
    """Returns a Keras model with stages and `image`; see `tfcomp.evaluate`."""
    if inputs not in INPUTS:
        raise ValueError(f"inputs must be one of {INPUTS}, got {inputs!r}")
    names, call, differentiate = open_models.open_model(model, list(stages))
    layer = _Outside(call, differentiate, dataset, inputs, names)
    factors = keras.Input(
        (len(dataset.space),), dtype="float32", name="factors"
    )
    outputs = layer(factors)
    before: list[keras.KerasTensor] = []
    for name in [*names, IMAGE]:  # in this order among the layers
        before = [Stage(name=name)([outputs[name], *before])]
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
        self._call, self._inputs = call, inputs
        self._space, self._image_shape = dataset.space, dataset.image_shape
        ends = np.array([f.values()[[0, -1]] for f in self._space], np.float32)
        self._low, self._scale = np.zeros(len(ends), "f4"), np.float32(1)
        if inputs == "unit":
            self._low, size = ends[:, 0], ends[:, 1] - ends[:, 0]
            self._scale = 1 / np.maximum(size, np.float32(1e-30))
        # Three rows: a model that returns one image for any batch shows it.
        factors = dataset.splits.grid[np.arange(3) % len(dataset.splits.grid)]
        probe = self._run(tf.constant(factors))
        for name, value in probe.items():
            dtype = value.dtype.as_numpy_dtype
            open_models.check_output(
                name, tuple(value.shape), np.dtype(dtype), 3
            )
        self._shapes = {n: tuple(probe[n].shape[1:]) for n in [*names, IMAGE]}
        self._slopes = None if inputs == "classes" else differentiate
        try:  # some modules have no derivatives
            if self._slopes:
                self._slopes(np.zeros((1, len(ends)), np.float32))
        except ValueError:
            self._slopes = None

    @property
    def jacobian_fn(self) -> JacobianFn | None:
        """Exact Jacobians by other software, a column for each factor."""
        return self._slopes and self._differentiate

    def _differentiate(
        self, _: Any, factors: tf.Tensor
    ) -> dict[str, tf.Tensor]:
        def compute(values: np.ndarray) -> list[np.ndarray]:
            assert self._slopes is not None
            slopes = self._slopes(values)
            return [slopes[n].astype(np.float32) for n in self._shapes]

        types = [tf.float32] * len(self._shapes)
        found = tf.numpy_function(compute, [self._convert(factors)], types)
        count = len(self._space)
        return {
            n: tf.ensure_shape(j, (None, math.prod(shape), count)) * self._scale
            for j, (n, shape) in zip(found, self._shapes.items(), strict=True)
        }

    def call(self, factors: tf.Tensor) -> dict[str, tf.Tensor]:
        outputs = self._run(factors)
        cast = {n: tf.cast(outputs[n], tf.float32) for n in self._shapes}
        return open_models.fix_shapes(cast, self._shapes)

    def _run(self, factors: tf.Tensor) -> dict[str, tf.Tensor]:
        outputs = dict(self._call(self._convert(factors)))
        outputs[IMAGE] = _to_images(outputs[IMAGE], self._image_shape)
        return outputs

    def _convert(self, factors: tf.Tensor) -> tf.Tensor:
        if self._inputs != "classes":
            return (factors - self._low) * self._scale
        index = tf.numpy_function(self._space.to_index, [factors], tf.int64)
        return tf.ensure_shape(tf.cast(index, tf.float32), factors.shape)


def _to_images(images: Any, shape: tuple[int, int, int]) -> tf.Tensor:
    """Converts images [n, C, H, W], [n, H, W] or flat ones to [n, H, W, C]."""
    images = tf.convert_to_tensor(images)
    if images.dtype.is_complex:
        open_models.check_output(IMAGE, images.shape, np.dtype(complex), 0)
    images = tf.cast(images, tf.float32)
    rows, columns, channels = shape
    size = tuple(images.shape[1:])
    if size == (channels, rows, columns) != shape:
        return tf.transpose(images, (0, 2, 3, 1))
    count, gray = rows * columns * channels, (rows, columns)
    if size not in (shape, gray, (count,)) or math.prod(size) != count:
        raise ValueError(
            f"the model must draw images {list(shape)}, got {list(size)}"
        )
    return tf.reshape(images, (-1, *shape))


def check_outputs(
    dataset: Dataset, model: keras.Model, samples: int
) -> tuple[Dataset, np.ndarray]:
    """Returns the data with (printed) notes on odd images, and all images."""
    call = tf.function(lambda f: {IMAGE: model(f)}, autograph=False)
    grid, space = dataset.splits.grid, dataset.space
    images = evaluate_in_batches(call, grid)[IMAGE]
    is_finite = np.isfinite(images).reshape(len(images), -1).all(axis=1)
    if not is_finite.all():
        missing = space.to_index(grid[~is_finite])
        names = "; ".join(map(space.name_point, missing[:MAX_NAMED]))
        raise ValueError(
            f"images must be finite, they are not at {len(missing):,} of "
            f"{len(grid):,} combinations, such as {names}: leave these out of "
            "the data, or return numbers there"
        )
    notes = _list_notes(dataset, images)
    # Of one size: rounding may depend on the size of a batch.
    a, b = (evaluate_in_batches(call, grid[:COMPARED])[IMAGE] for _ in "ab")
    if samples > 1:
        mean = f"scores are means of {samples} evaluations"
        notes.append(f"{mean}; pages, tables and pictures show the first")
    elif not np.allclose(a, b, 1e-3, 1e-4, equal_nan=True):
        notes.append("images differ from call to call: samples=10 averages")
    for note in notes:
        print(f"note: {note}", file=sys.stderr)
    dataset = dataclasses.replace(dataset, notes=(*dataset.notes, *notes))
    return dataset, images


def _list_notes(dataset: Dataset, images: np.ndarray) -> list[str]:
    """Compares the range of images with the range of the true ones."""
    grid = dataset.splits.grid
    points = grid[choose_rows(len(grid), MAX_AVERAGED)]
    truth, _ = dataset.render_all(points, MAX_AVERAGED)
    darkest, brightest = float(truth.min()), float(truth.max())
    margin = MARGIN * (brightest - darkest)
    low, high = float(images.min()), float(images.max())
    if low >= darkest - margin and high <= brightest + margin:
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
