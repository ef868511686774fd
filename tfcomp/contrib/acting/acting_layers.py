"""Layers of the acting decoder: pose terms are summed, and canvases drawn.

`FactorTransforms` sums the pose terms of the values of an object's factors.
`Draw` turns, scales and moves canvases, and lays them over each other, as a
spatial transformer (Jaderberg et al. 2015): the point of a canvas that a pixel
shows is found by undoing the pose, and read by bilinear interpolation.
"""

import math
from collections.abc import Mapping, Sequence

import keras
import numpy as np
import tensorflow as tf
from numpy import ndarray as Array

from tfcomp.contrib.acting import first_poses
from tfcomp.contrib.acting.first_poses import (
    CANVAS,
    FIRST_SIZE,
    POSE_TERMS,
    list_places,
)

FINE = 32  # pixels along a side, up to which an image has subpixels
EMPTY = -12.0  # logit outside of a canvas
# Learning rates relative to `--learning_rate`; else 1.
RATES = {
    "template": 2.5,
    "angle": 0.25,
}
# Speed of shrinking, relative to positions.
SHRINK = {
    "template": 3.0,
    "angle": 0.5,
}
# The smallest spread of a term in use.
SPREAD = {"template": 0.05}
SMALLEST = 0.01  # of other terms
LEFT = 4  # one in four candidates is trained to the end
ORDER = (*first_poses.POSE, "color", "template")  # of outputs


def render_shares(
    pose: tf.Tensor,
    canvas: tf.Tensor,
    shape: tuple[int, int],
    subpixels: int,
) -> tf.Tensor:
    """Renders the share of each pixel that an object covers.

    The object is turned and scaled about its middle, then moved.

    Args:
        pose: x, y, angle and log size, [n, 4]; 1 is the shorter side.
        canvas: The object as logits, [n, K, K].
        shape: Rows and columns of the image.
        subpixels: Samples along a side of a pixel.

    Returns:
        Shares from 0 to 1, [n, rows, columns].
    """
    rows, columns = shape
    side = min(rows, columns)
    x_places = list_places(columns, side, subpixels)
    y_places = list_places(rows, side, subpixels)
    grids = np.meshgrid(x_places, y_places)
    places = np.stack(grids, axis=-1)
    places = places.reshape(-1, 2)
    pixels = tf.constant(places, tf.float32)
    center_x = pose[:, :1]
    center_y = pose[:, 1:2]
    turn = pose[:, 2:3]
    log_size = pose[:, 3:]
    x = pixels[:, 0] - center_x  # [n, samples]
    y = pixels[:, 1] - center_y

    shrink = tf.exp(-log_size)
    cos = tf.cos(turn) * shrink
    sin = tf.sin(turn) * shrink
    across = cos * x + sin * y
    down = cos * y - sin * x
    logits = sample(canvas, x=across, y=down)

    # Logits count pixels to an outline, so that edges of large objects are not
    # wider than edges of small ones.
    size = tf.exp(log_size)
    logits = logits * size / FIRST_SIZE
    shares = tf.sigmoid(logits)
    sizes = (-1, rows, subpixels, columns, subpixels)
    shares = tf.reshape(shares, sizes)
    samples = (2, 4)
    return tf.reduce_mean(shares, axis=samples)


def sample(canvas: tf.Tensor, x: tf.Tensor, y: tf.Tensor) -> tf.Tensor:
    """Reads canvases at places, by bilinear interpolation.

    Args:
        canvas: Logits, [n, K, K].
        x: Places from -1 to 1, [n, m].
        y: Places from -1 to 1, [n, m].

    Returns:
        Logits [n, m], `EMPTY` outside of the canvas.
    """
    side = canvas.shape[-1]
    margin = (1, 2)
    margins = [(0, 0), margin, margin]
    logits_over_empty = canvas - EMPTY
    padded = tf.pad(logits_over_empty, margins)

    # The four neighbors of a place lie side by side: one lookup, and one sum
    # in its gradient.
    last = side + 2
    neighbors = [
        padded[:, :last, :last],
        padded[:, :last, 1:],
        padded[:, 1:, :last],
        padded[:, 1:, 1:],
    ]
    corners = tf.stack(neighbors, axis=-1)  # [n, K + 2, K + 2, 4]

    scale = (side - 1) / 2
    across = (x + 1) * scale
    along = (y + 1) * scale
    right, column = _split(across + 1, side)
    up, row = _split(along + 1, side)
    count = tf.shape(canvas)[0]
    number = tf.range(count)
    number = number[:, None]
    place = number * last**2
    place += row * last
    place += column
    corners = tf.reshape(corners, (-1, 4))
    logits = tf.gather(corners, place)

    # A tensor for 1 - right would change the last bits of gradients.
    down = 1 - up
    weights = [
        down * (1 - right),
        down * right,
        up * (1 - right),
        up * right,
    ]
    weight = tf.stack(weights, axis=-1)
    weighted = logits * weight
    total = tf.reduce_sum(weighted, axis=-1)
    return total + EMPTY


def _split(place: tf.Tensor, side: int) -> tuple[tf.Tensor, tf.Tensor]:
    """Returns the part behind the comma, and the cell in a padded canvas."""
    last = side + 1.0
    place = tf.clip_by_value(place, 0.0, last)
    cell = tf.floor(place)
    start = tf.stop_gradient(cell)
    fraction = place - start
    index = tf.cast(cell, tf.int32)
    return fraction, index


def compose(
    shares: tf.Tensor,
    colors: tf.Tensor,
    background: tf.Tensor,
) -> tf.Tensor:
    """Lays objects over a background; the first one is in front.

    Args:
        shares: What objects cover of pixels, [n, G, rows, columns].
        colors: Colors of objects, [n, G, C].
        background: A color, [C].

    Returns:
        Images [n, rows, columns, C].
    """
    count = shares.shape[1]
    pixels = shares[:, :, :, :, None]
    first = pixels[:, 0]
    image = tf.zeros_like(first) + background
    for number in reversed(range(count)):
        share = pixels[:, number]
        color = colors[:, number, None, None, :]
        change = color - image
        image = image + share * change
    return image


def blur(images: tf.Tensor, width: tf.Tensor) -> tf.Tensor:
    """Blurs images by a Gaussian whose weights sum to 1.

    Args:
        images: Images [n, rows, columns, C].
        width: The standard deviation in pixels; below 0.1 nothing is blurred.
    """
    rows, columns = images.shape[1:3]
    across_rows = _make_kernel(rows, width)
    across_columns = _make_kernel(columns, width)
    images = tf.einsum("nrck,rs->nsck", images, across_rows)
    return tf.einsum("nrck,cs->nrsk", images, across_columns)


def _make_kernel(count: int, width: tf.Tensor) -> tf.Tensor:
    """Returns what each of some pixels gives to each other, [count, count]."""
    width = tf.maximum(width, 0.1)
    places = tf.range(count, dtype=tf.float32)
    others = places[:, None]
    distances = others - places
    steps = distances / width
    squares = tf.square(steps)
    kernel = tf.exp(-0.5 * squares)
    root = math.sqrt(2 * math.pi)
    area = width * root
    divisor = tf.maximum(area, 1.0)
    return kernel / divisor


@keras.saving.register_keras_serializable(package="tfcomp")
class Draw(keras.layers.Layer):
    """Renders objects [n, G, 4 + C + K^2] over a background.

    Args:
        image_shape: Rows, columns and channels C of an image.
        background: The color of the background, [C].
        is_white: Whether objects are opposite the background, whatever their
            colors.
        **kwargs: Arguments of `keras.layers.Layer`.
    """

    def __init__(
        self,
        image_shape: Sequence[int],
        background: Sequence[float],
        is_white: bool,
        **kwargs,
    ) -> None:
        super().__init__(**kwargs)
        self.image_shape = tuple(image_shape)
        self.background = list(background)
        self.is_white = is_white

    def call(
        self,
        inputs: tf.Tensor,
        subpixels: int | None = None,
    ) -> tf.Tensor:
        """Renders images [n, rows, columns, C].

        Args:
            inputs: Pose, color and template of each object.
            subpixels: Samples along a side of a pixel; by default 2 for images
                of at most `FINE` pixels along a side, else 1.
        """
        rows, columns, colors = self.image_shape
        if subpixels is None:
            subpixels = 1
            if max(rows, columns) <= FINE:
                subpixels = 2

        groups, depth = inputs.shape[1:]
        objects = tf.reshape(inputs, (-1, depth))
        first_logit = 4 + colors
        templates = objects[:, first_logit:]
        canvas_shape = (-1, CANVAS, CANVAS)
        canvases = tf.reshape(templates, canvas_shape)
        shares = render_shares(
            pose=objects[:, :4],
            canvas=canvases,
            shape=(rows, columns),
            subpixels=subpixels,
        )
        sizes = (-1, groups, rows, columns)
        shares = tf.reshape(shares, sizes)

        background = tf.constant(self.background, tf.float32)
        color = inputs[:, :, 4:first_logit]
        color = tf.sigmoid(color)
        if self.is_white:
            opposite = 1.0 - background
            color = tf.zeros_like(color) + opposite
        return compose(shares, color, background)


@keras.saving.register_keras_serializable(package="tfcomp", name="Acts")
class FactorTransforms(keras.layers.Layer):
    """Sums the pose terms of the values of an object's factors.

    Maps codes [n, U], the units of all factors, to [n, 4 + C + K^2]: pose,
    color and template of the candidate `chosen`.

    Args:
        factors: Of each factor its name, the number of values, `ordered`,
            `periodic` or `categorical`, and the number of steps of its period
            if more than its values.
        channels: The pose terms, some of `POSE_TERMS`.
        candidates: The number R of trainings side by side.
        colors: The number C of channels of an image.
        seed: The seed of initial poses.
        starts: Measured initial poses, by term.
        **kwargs: Arguments of `keras.layers.Layer`.
    """

    def __init__(
        self,
        factors: Sequence[Sequence],
        channels: Sequence[str],
        candidates: int,
        colors: int,
        seed: Sequence[int] = (0,),
        starts: Mapping[str, first_poses.Start] | None = None,
        **kwargs,
    ) -> None:
        super().__init__(**kwargs)
        self.factors = [tuple(factor) for factor in factors]
        self.channels = tuple(channels)
        self.candidates = candidates
        self.colors = colors
        self.seed = list(seed)
        self._starts = starts or {}

        # The matrix that takes means over the values of each factor.
        sizes = [factor[1] for factor in self.factors]
        numbers = np.arange(len(sizes))
        owner = np.repeat(numbers, sizes)
        is_same = owner[:, None] == owner
        counts = is_same.sum(axis=1)
        mean = is_same / counts  # [U, U]
        self.mean = mean.astype(np.float32)

    def build(self, input_shape: tuple) -> None:
        """Makes the poses of all candidates, and the terms that move them.

        Args:
            input_shape: The shape of codes, `(batch, U)`.
        """
        rng = np.random.default_rng(self.seed)
        self.base: dict[str, keras.Variable] = {}
        self.moves: dict[str, keras.Variable] = {}
        self.kept: dict[str, keras.Variable] = {}
        depths = {
            "template": CANVAS**2,
            "color": self.colors,
        }
        for term in POSE_TERMS:
            base, moves = first_poses.sample_poses(
                term,
                depth=depths.get(term, 1),
                factors=self.factors,
                count=self.candidates,
                start=self._starts.get(term),
                rng=rng,
            )
            rate = RATES.get(term, 1.0)
            first_base = base / rate
            self.base[term] = self._add(f"{term}_0", first_base)
            if term in self.channels:
                first_moves = moves / rate
                is_kept = np.ones_like(moves[:, :, :1])
                self.moves[term] = self._add(term, first_moves)
                self.kept[term] = self._add_state(f"{term}_kept", is_kept)

        count = self.candidates
        num_left = math.ceil(count / LEFT)
        errors = np.ones(count)
        left = np.arange(num_left)
        nothing = np.zeros(())
        self.chosen = self._add_state("chosen", nothing)
        self.errors = self._add_state("errors", errors)
        self.left = self._add_state("left", left)

    def call(self, inputs: tf.Tensor) -> tf.Tensor:
        """Sums the terms of the candidate that training has chosen.

        Args:
            inputs: Codes of the factors, [n, U].
        """
        candidate = tf.cast(self.chosen, tf.int32)
        return self.act(inputs, candidate)

    def act(self, code: tf.Tensor, candidates: tf.Tensor) -> tf.Tensor:
        """Sums the terms of candidates.

        Args:
            code: The units of all factors, [n, U].
            candidates: Numbers of candidates, [...].

        Returns:
            Pose, color and template, [..., n, 4 + C + K^2].
        """
        parts = []
        for term in ORDER:
            base = self.base[term]
            total = tf.gather(base, candidates)
            if term in self.moves:
                moves = self.moves[term]
                moves = tf.gather(moves, candidates)
                total += tf.matmul(code, moves)
            else:
                count = tf.shape(code)[0]
                total += tf.zeros((count, 1))
            rate = RATES.get(term, 1.0)
            scaled = total * rate
            parts.append(scaled)
        return tf.concat(parts, axis=-1)

    def spreads(self, term: str) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
        """Returns how far the values of a factor are apart in a term.

        Args:
            term: One of the terms that move.

        Returns:
            The mean over the values of a factor, [R, U, D], the difference of
            each value from it, [R, U, D], and the spread, [R, U, 1]: the root
            mean square of these differences.
        """
        moves = tf.convert_to_tensor(self.moves[term])
        mean = tf.matmul(self.mean, moves)
        rest = moves - mean
        squares = tf.square(rest)
        squares = tf.reduce_mean(
            squares,
            axis=-1,
            keepdims=True,
        )
        means = tf.matmul(self.mean, squares)
        spread = tf.sqrt(means)
        rate = RATES.get(term, 1.0)
        spread = spread * rate
        return mean, rest, spread

    def shrink(self, amount: tf.Tensor, is_over: tf.Tensor) -> None:
        """Shrinks differences between the values of a factor.

        Args:
            amount: How far the spread shrinks, before `SHRINK`.
            is_over: True after the last shrinking: what is pruned stays so.
        """
        for term, moves in self.moves.items():
            mean, rest, spread = self.spreads(term)
            speed = SHRINK.get(term, 1.0)
            step = amount * speed
            least = tf.maximum(spread, 1e-9)
            share = step / least
            rest_share = 1.0 - share
            factor = tf.nn.relu(rest_share)

            kept = tf.convert_to_tensor(self.kept[term])
            smallest = SPREAD.get(term, SMALLEST)
            is_wide = spread * factor > smallest
            is_used = tf.cast(is_wide, kept.dtype)
            kept = tf.where(is_over, kept, is_used)

            self.kept[term].assign(kept)
            factor = tf.where(is_over, kept, factor)
            changed = mean + rest * factor
            moves.assign(changed)

    def count_terms(self) -> tf.Tensor:
        """Returns the number of terms in use, of each candidate [R]."""
        diagonal = np.diag(self.mean)
        share = diagonal[:, None]
        counts = []
        for variable in self.kept.values():
            kept = tf.convert_to_tensor(variable)
            shares = kept * share
            count = tf.reduce_sum(shares, axis=(1, 2))
            counts.append(count)
        return tf.add_n(counts)

    def measure_factors(self) -> dict[str, dict[str, float]]:
        """Returns the spread of each term in use, by factor."""
        candidate = int(self.chosen.numpy())
        factors: dict[str, dict[str, float]] = {}
        unit = 0  # the first one of the factor
        for name, size, *_ in self.factors:
            spreads_by_term = {}
            for term, kept in self.kept.items():
                _, _, spreads = self.spreads(term)
                spread = spreads[candidate, unit, 0]
                spread = float(spread)
                smallest = SPREAD.get(term, SMALLEST)
                is_kept = kept[candidate, unit, 0] > 0
                if is_kept and spread > smallest:
                    spreads_by_term[term] = spread
            factors[name] = spreads_by_term
            unit += size
        return factors

    def get_config(self) -> dict:
        """Describes the layer; its poses are weights."""
        config = super().get_config()
        config["factors"] = [list(factor) for factor in self.factors]
        config["channels"] = list(self.channels)
        config["candidates"] = self.candidates
        config["colors"] = self.colors
        config["seed"] = self.seed
        return config

    def _add_state(self, name: str, start: Array) -> keras.Variable:
        """Adds a weight that is not trained."""
        return self._add(name, start, trainable=False)

    def _add(
        self,
        name: str,
        start: Array,
        trainable: bool = True,
    ) -> keras.Variable:
        """Adds a weight that starts as an array."""
        initializer = keras.initializers.Constant(start)
        weight = self.add_weight(
            start.shape,
            initializer,
            trainable=trainable,
            name=name,
        )
        # Checkpoints find attributes, and nothing in dictionaries.
        setattr(self, f"weight_{name}", weight)
        return weight


# Saved models name the weights of a layer by its class.
FactorTransforms.__name__ = "Acts"
