"""Wraps any model as a Keras model with named stages, as tfcomp's own have."""

import dataclasses
import math
import sys
from collections.abc import Sequence
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from tfcomp.config.errors import ConfigError
from tfcomp.datasets import Dataset
from tfcomp.datasets.dataset import MAX_AVERAGED
from tfcomp.datasets.splits import choose_rows
from tfcomp.models.loading import (
    IMAGE,
    Activate,
    Call,
    check_output,
    open_model,
)
from tfcomp.models.registry import (
    JacobianFn,
    evaluate_in_batches,
    make_input,
)

INPUTS = ("values", "classes", "unit")
MAX_NAMED = 3
COMPARED = 8  # points at which two calls are compared
# Share of the range of the true images by which outputs may leave it.
MARGIN = 0.5


class Stage(keras.layers.Layer):
    """Makes a tensor a stage of a model.

    Input shape:
        A list of the tensor, `(batch, ...)`, and of the stages before it,
        which puts them first among the layers of the model.

    Output shape:
        `(batch, ...)`: the first tensor, unchanged.
    """

    is_stage = True

    def call(self, inputs: list[keras.KerasTensor]) -> keras.KerasTensor:
        """Passes the first tensor on.

        Args:
            inputs: The tensor, and the stages before it.
        """
        return inputs[0]


def wrap_model(
    model: Any,
    dataset: Dataset,
    stages: Sequence[str],
    inputs: str,
) -> keras.Model:
    """Wraps a model as a Keras model with stages and `image`.

    Args:
        model: A model as for `open_model`.
        dataset: The data whose factors it takes and whose images it draws.
        stages: Names of stages; empty for all that the model itself names.
        inputs: How it takes factors: `"values"`, `"classes"` (indices of
            values) or `"unit"` (scaled to [0, 1]).

    Raises:
        ValueError: If the model cannot be called so, or has no such stage.
    """
    if inputs not in INPUTS:
        raise ValueError(f"inputs must be one of {INPUTS}, got {inputs!r}")
    _check_input(model, dataset)
    stage_names = list(stages)
    opened = open_model(model, stage_names)
    names, call, differentiate = opened
    layer = _Outside(
        call,
        differentiate,
        dataset,
        inputs,
        names,
    )
    factors = make_input(dataset)
    outputs = layer(factors)

    before: list[keras.KerasTensor] = []
    for name in [*names, IMAGE]:  # in this order among the layers
        stage = Stage(name=name)
        tensors = [outputs[name], *before]
        before = [stage(tensors)]
    images = before[0]
    return keras.Model(factors, images, name="outside")


def _check_input(model: Any, dataset: Dataset) -> None:
    """Raises a ConfigError for a Keras model that takes images, not factors."""
    if not isinstance(model, keras.Model):
        return
    inputs = getattr(model, "inputs", None) or []
    if len(inputs) != 1:
        return
    shape = inputs[0].shape[1:]
    if len(shape) < 2:
        return
    count = len(dataset.space)
    rule = (
        f"must take factors [n, {count}] and draw images; encoders, of images, "
        "are for tfcomp.evaluate_encoder"
    )
    raise ConfigError("model", rule, f"inputs of shape {tuple(shape)}")


class _Outside(keras.layers.Layer):
    """Calls a model with factors in the form that it takes."""

    def __init__(
        self,
        call: Call,
        differentiate: Activate | None,
        dataset: Dataset,
        inputs: str,
        names: list[str],
    ) -> None:
        super().__init__(name="outside", dtype="float32")
        self._call = call
        self._inputs = inputs
        self._space = dataset.space
        self._image_shape = dataset.image_shape

        num_factors = len(self._space)
        self._low = np.zeros(num_factors, np.float32)
        self._scale = np.float32(1)
        if inputs == "unit":
            ends = []
            for factor in self._space:
                values = factor.values()
                ends.append(values[[0, -1]])
            table = np.array(ends, np.float32)
            self._low = table[:, 0]
            span = table[:, 1] - self._low
            least = np.float32(1e-30)
            span = np.maximum(span, least)
            self._scale = 1 / span

        every_name = [*names, IMAGE]
        self._shapes = self._probe_shapes(dataset, every_name)
        self._slopes = None
        if inputs != "classes" and differentiate is not None:
            point = np.zeros((1, num_factors), np.float32)
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
        inputs = self._convert(factors)
        outputs = self._call(inputs)

        shapes = {}
        for name in names:
            value = tf.convert_to_tensor(outputs[name])
            shape = tuple(value.shape)
            dtype = np.dtype(value.dtype.as_numpy_dtype)
            check_output(
                name,
                shape,
                dtype,
                num_rows,
            )
            shapes[name] = shape[1:]
        images = outputs[IMAGE]
        _to_images(images, self._image_shape)
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
            """Computes Jacobians in the order of the model's outputs."""
            assert self._slopes is not None
            slopes = self._slopes(values)
            arrays = []
            for name in self._shapes:
                slope = slopes[name]
                array = slope.astype(np.float32)
                arrays.append(array)
            return arrays

        inputs = self._convert(factors)
        types = [tf.float32] * len(self._shapes)
        slopes = tf.numpy_function(compute, [inputs], types)
        slopes = tf.nest.flatten(slopes)  # one is no list in eager mode

        jacobians = {}
        by_name = zip(self._shapes, slopes, strict=True)
        num_factors = len(self._space)
        for name, slope in by_name:
            units = math.prod(self._shapes[name])
            shape = (None, units, num_factors)
            slope = tf.ensure_shape(slope, shape)
            if name == IMAGE:
                slope = self._order_pixels(slope)
            jacobians[name] = slope * self._scale
        return jacobians

    def _order_pixels(self, slope: tf.Tensor) -> tf.Tensor:
        """Orders the pixels of a Jacobian [n, pixels, F] as `_to_images`."""
        num_pixels, num_factors = slope.shape[1:]
        image_shape = self._shapes[IMAGE]

        # The derivative along each factor is an image.
        swapped = (0, 2, 1)
        columns = tf.transpose(slope, swapped)
        batch_shape = (-1, *image_shape)
        images = tf.reshape(columns, batch_shape)
        images = _to_images(images, self._image_shape)

        column_shape = (-1, num_factors, num_pixels)
        columns = tf.reshape(images, column_shape)
        return tf.transpose(columns, swapped)

    def call(self, factors: tf.Tensor) -> dict[str, tf.Tensor]:
        """Evaluates the model on factors [n, F] as it takes them."""
        inputs = self._convert(factors)
        values = self._call(inputs)

        outputs = {}
        for name, shape in self._shapes.items():
            value = values[name]
            value = tf.cast(value, tf.float32)
            value_shape = (None, *shape)
            outputs[name] = tf.ensure_shape(value, value_shape)
        images = outputs[IMAGE]
        outputs[IMAGE] = _to_images(images, self._image_shape)
        return outputs

    def _convert(self, factors: tf.Tensor) -> tf.Tensor:
        """Converts factor values [n, F] to the form that the model takes."""
        if self._inputs != "classes":
            shifted = factors - self._low
            return shifted * self._scale

        index = tf.numpy_function(
            self._space.to_index,
            inp=[factors],
            Tout=tf.int64,
        )
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
        channels_last = (0, 2, 3, 1)
        return tf.transpose(images, channels_last)

    is_gray = channels == 1 and size == (rows, columns)
    num_pixels = math.prod(shape)
    is_flat = size == (num_pixels,)
    if not is_gray and not is_flat:
        raise ValueError(
            f"the model must draw images {list(shape)}, got {list(size)}"
        )
    batch_shape = (-1, *shape)
    return tf.reshape(images, batch_shape)


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

    def draw(factors: tf.Tensor) -> dict[str, tf.Tensor]:
        """Draws images as the only stage."""
        return {IMAGE: model(factors)}

    call = tf.function(draw, autograph=False)
    grid = dataset.splits.grid
    images = evaluate_in_batches(call, grid)[IMAGE]
    _check_finite(images, dataset)
    notes = _list_notes(dataset, images)

    # Of one size: rounding may depend on the size of a batch.
    points = grid[:COMPARED]
    first = evaluate_in_batches(call, points)[IMAGE]
    second = evaluate_in_batches(call, points)[IMAGE]
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
    all_notes = (*dataset.notes, *notes)
    dataset = dataclasses.replace(dataset, notes=all_notes)
    return dataset, images


def _check_finite(images: np.ndarray, dataset: Dataset) -> None:
    num_points = len(images)
    flat = images.reshape(num_points, -1)
    is_number = np.isfinite(flat)
    is_finite = is_number.all(axis=1)
    if is_finite.all():
        return

    grid = dataset.splits.grid
    space = dataset.space
    missing = space.to_index(grid[~is_finite])
    examples = []
    for index in missing[:MAX_NAMED]:
        name = space.name_point(index)
        examples.append(name)
    names = "; ".join(examples)
    raise ValueError(
        f"images must be finite, they are not at {len(missing):,} of "
        f"{len(grid):,} combinations, such as {names}: leave these out of "
        "the data, or return numbers there"
    )


def _list_notes(dataset: Dataset, images: np.ndarray) -> list[str]:
    """Compares the range of images with the range of the true ones."""
    grid = dataset.splits.grid
    rows = choose_rows(len(grid), MAX_AVERAGED)
    points = grid[rows]
    truth, _ = dataset.render_all(points, MAX_AVERAGED)
    darkest = float(truth.min())
    brightest = float(truth.max())
    low = float(images.min())
    high = float(images.max())

    margin = MARGIN * (brightest - darkest)
    least = darkest - margin
    most = brightest + margin
    is_too_dark = low < least
    is_too_bright = high > most
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
