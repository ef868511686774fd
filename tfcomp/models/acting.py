"""Forced rendering for factors without an axis in the image: they act.

Every value i of a factor f has a pose p_fi = (x, y, angle, log size), a
template T_fi of logits on a small canvas, and, where images have several
channels, a color c_fi. They add up over the factors of an object:

    p = p_0 + sum_f p_f,   T = T_0 + sum_f T_f,   c = sigmoid(c_0 + sum_f c_f)

The canvas is turned, scaled and then moved (`tfcomp.models.canvas`), its
sigmoid is the share of a pixel that the object covers, and objects (`--groups`,
from front to back) are laid over the background.

Poses have many poor optima, and templates can explain any small training set.
So
- `--candidates` trainings run side by side, and the shortest description is
  kept: the training error plus `--channel_price` for each channel that a
  factor uses. Held-out combinations have no say.
- Images and targets are blurred at first, and the error is that after the best
  factor of brightness: else candidates end blank.
- From 20 to 75 % of training, each step shrinks what the values of a factor
  do in a channel towards their mean (the proximal step of a group penalty).
  The channels that are left then are trained on without it.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import keras
import numpy as np
import tensorflow as tf

from tfcomp.config.run_config import RunConfig
from tfcomp.datasets import Dataset
from tfcomp.datasets.factors import Factor, parse_groups
from tfcomp.models import canvas
from tfcomp.models.acting_rules import (
    CANVAS,
    CHANNELS,
    POSE,
    count_subpixels,
    parse_channels,
)
from tfcomp.models.encodings import make_encoding, stack_groups

# Widths of first ramps of ordered factors.
RAMPS = {"x": 0.7, "y": 0.7, "angle": 0.15, "size": 0.3}
NOISE, FIRST_SIZE = 0.02, 0.45
TEMPLATE_RATE = 2.5  # how much faster logits learn than poses
# How much faster than positions channels shrink.
SHRINK = {"template": 7.5, "angle": 0.5}
SPREAD = {"template": 0.05}  # below it, a channel is not in use; else .01
BLUR = 2.5 / 16  # first width, in sides of the image
MEMORY = 0.98  # of the running training error


def build_acting(config: RunConfig, dataset: Dataset) -> keras.Model:
    """The decoder of this module."""
    model, space = config.model, dataset.space
    rows, columns, colors = dataset.image_shape
    spec = model.groups or "+".join(space.names)
    groups = parse_groups(spec, space)
    channels = parse_channels(model.channels, colors)
    factors = keras.Input((len(space),), dtype="float32", name="factors")
    encoding = make_encoding(config, space)
    codes = encoding.split(encoding(factors))
    parts = []
    for number, group in enumerate(groups):
        code = keras.layers.Concatenate(dtype="float32", name=f"units_{number}")
        acts = Acts(
            [
                [factor.name, factor.size, _find_kind(factor)]
                for factor in (space.factors[column] for column in group)
            ],
            channels,
            model.candidates,
            colors,
            seed=[config.training.seed, number],
            dtype="float32",
            name=f"acts_{number}",
        )
        parts.append(acts(code([codes[column] for column in group])))
    background = find_background(dataset)
    draw = Draw(
        dataset.image_shape,
        [float(value) for value in background],
        is_white=len(groups) == 1 and colors == 1,
        dtype="float32",
        name="image",
    )
    acting = ActingModel(factors, draw(stack_groups(parts, "stage_0")))
    training = config.training
    passes = -(-len(dataset.splits.train) // training.batch_size)
    steps = training.epochs * (training.steps_per_epoch or passes)
    acting.plan(steps, model.shrink, model.channel_price)
    return acting


def _find_kind(factor: Factor) -> str:
    if factor.categorical:
        return "categorical"
    return "periodic" if factor.periodic else "ordered"


def find_background(dataset: Dataset) -> np.ndarray:
    """The value of each channel where nothing is drawn, [C].

    Without a known background it is the median of training pixels.
    """
    colors = dataset.image_shape[2]
    if dataset.has_background:
        return np.full(colors, dataset.background)
    table = dataset.splits.train
    images = dataset.render_array(table[:: len(table) // 256 + 1])
    return np.median(images.reshape(-1, colors), axis=0)


@keras.saving.register_keras_serializable(package="tfcomp")
class Acts(keras.layers.Layer):
    """What the values of the factors of an object add up to.

    Args:
        factors: Of each factor its name, the number of values, and whether
            it is `ordered`, `periodic` or `categorical`.
        channels: Some of `CHANNELS` that they may use.
        candidates: Number R of trainings side by side.
        colors: Channels C of the image.
        seed: Of the first weights.

    Input shape: codes [n, U], the units of all factors.
    Output shape: [n, 4 + C + K^2], of the candidate `chosen`.
    """

    def __init__(
        self,
        factors: Sequence[Sequence],
        channels: Sequence[str],
        candidates: int,
        colors: int,
        seed: Sequence[int] = (0,),
        **kwargs,
    ) -> None:
        super().__init__(**kwargs)
        self.factors = [tuple(factor) for factor in factors]
        self.channels, self.candidates = tuple(channels), candidates
        self.colors, self.seed = colors, list(seed)
        sizes = [size for _, size, _ in self.factors]
        owner = np.repeat(np.arange(len(sizes)), sizes)
        same = owner[:, None] == owner
        self.mean = (same / same.sum(axis=1)).astype(np.float32)  # [U, U]

    def build(self, input_shape: tuple) -> None:
        rng = np.random.default_rng(self.seed)
        self.base, self.moves, self.kept = {}, {}, {}
        for channel in CHANNELS:
            base, moves = self._draw_start(channel, rng)
            self.base[channel] = self._add(f"{channel}_0", base)
            if channel in self.channels:
                kept = np.ones((*moves.shape[:2], 1))
                self.moves[channel] = self._add(channel, moves)
                self.kept[channel] = self._add(f"{channel}_kept", kept, False)
        self.chosen = self._add("chosen", np.zeros(()), False)
        self.errors = self._add("errors", np.ones(self.candidates), False)

    def call(self, inputs: tf.Tensor) -> tf.Tensor:
        chosen = tf.cast(self.chosen, tf.int32)
        return tf.concat(
            [
                self._act(c, inputs, tf.gather(self.base[c], chosen))
                if c not in self.moves
                else self._act(
                    c,
                    inputs,
                    tf.gather(self.base[c], chosen),
                    tf.gather(self.moves[c], chosen),
                )
                for c in (*POSE, "color", "template")
            ],
            axis=-1,
        )

    def act_all(self, code: tf.Tensor) -> tf.Tensor:
        """As `call`, of all candidates: [R, n, 4 + C + K^2]."""
        return tf.concat(
            [
                self._act(c, code, self.base[c], self.moves.get(c))
                for c in (*POSE, "color", "template")
            ],
            axis=-1,
        )

    def _act(
        self,
        channel: str,
        code: tf.Tensor,
        base: tf.Tensor,
        moves: tf.Tensor | None = None,
    ) -> tf.Tensor:
        shape = (*base.shape[:-2], tf.shape(code)[0], base.shape[-1])
        total = tf.broadcast_to(tf.convert_to_tensor(base), shape)
        if moves is not None:
            total = total + tf.matmul(code, tf.convert_to_tensor(moves))
        return total * TEMPLATE_RATE if channel == "template" else total

    def spreads(self, channel: str) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
        """What the values of a factor do in a channel.

        Returns:
            Means [R, U, D] of the factor of each unit, differences from them,
            and their root mean squares [R, U, 1], in the units of the channel.
        """
        moves = tf.convert_to_tensor(self.moves[channel])
        mean = tf.matmul(self.mean, moves)
        rest = moves - mean
        squares = tf.reduce_mean(tf.square(rest), axis=-1, keepdims=True)
        spread = tf.sqrt(tf.matmul(self.mean, squares))
        scale = TEMPLATE_RATE if channel == "template" else 1.0
        return mean, rest, spread * scale

    def shrink(self, amount: tf.Tensor, is_over: tf.Tensor) -> None:
        """Shrinks differences by an amount; prunes when that `is_over`."""
        for channel, moves in self.moves.items():
            mean, rest, spread = self.spreads(channel)
            less = amount * SHRINK.get(channel, 1.0)
            factor = tf.nn.relu(1.0 - less / tf.maximum(spread, 1e-9))
            kept = tf.convert_to_tensor(self.kept[channel])
            is_used = tf.cast(
                spread * factor > SPREAD.get(channel, 0.01), kept.dtype
            )
            kept = tf.where(is_over, kept, is_used)
            self.kept[channel].assign(kept)
            moves.assign(mean + rest * tf.where(is_over, kept, factor))

    def count_channels(self) -> tf.Tensor:
        """Channels in use, summed over factors, of each candidate [R]."""
        share = tf.constant(np.diag(self.mean), tf.float32)[:, None]
        return tf.add_n(
            [
                tf.reduce_sum(tf.convert_to_tensor(kept) * share, axis=(1, 2))
                for kept in self.kept.values()
            ]
        )

    def forget_others(self) -> None:
        """Sets all candidates but the chosen one to zero; they draw nothing."""
        chosen = np.arange(self.candidates) == int(self.chosen.numpy())
        for part in (self.base, self.moves, self.kept):
            for weight in part.values():
                weight.assign(tf.where(chosen[:, None, None], weight, 0.0))

    def measure(self) -> dict[str, dict[str, float]]:
        """By factor, the spread of its values in each channel in use."""
        chosen = int(self.chosen.numpy())
        starts = np.cumsum([0, *(size for _, size, _ in self.factors)])
        spreads = {c: self.spreads(c)[2][chosen, :, 0] for c in self.moves}
        return {
            name: {
                channel: float(spread[start])
                for channel, spread in spreads.items()
                if self.kept[channel][chosen, start, 0] > 0
                and float(spread[start]) > SPREAD.get(channel, 0.01)
            }
            for (name, _, _), start in zip(self.factors, starts, strict=False)
        }

    def get_config(self) -> dict:
        own = {
            "factors": [list(factor) for factor in self.factors],
            "channels": list(self.channels),
            "candidates": self.candidates,
            "colors": self.colors,
            "seed": self.seed,
        }
        return {**super().get_config(), **own}

    def _draw_start(
        self, channel: str, rng: np.random.Generator
    ) -> tuple[np.ndarray, np.ndarray]:
        """First weights: [R, 1, D], and [R, U, D] around them."""
        count, units = self.candidates, len(self.mean)
        depth = {"template": CANVAS**2, "color": self.colors}.get(channel, 1)
        base = np.zeros((count, 1, depth))
        moves = NOISE * rng.normal(size=(count, units, depth))
        if channel == "size":
            base += np.log(FIRST_SIZE)
        if channel == "color":
            base += 1.0
        if channel == "template":
            x = np.linspace(-1, 1, CANVAS) ** 2
            base = base + (3 - 8 * (x[:, None] + x)).ravel()
            base = base + 0.1 * rng.normal(size=base.shape)
            return base / TEMPLATE_RATE, moves / TEMPLATE_RATE
        starts = [
            self._draw_ramp(channel, size, kind, rng)
            for _, size, kind in self.factors
        ]
        return base, moves + np.concatenate(starts, axis=1)

    def _draw_ramp(
        self, channel: str, size: int, kind: str, rng: np.random.Generator
    ) -> np.ndarray:
        """First poses of the values of a factor, [R, V, 1].

        Ordered and periodic factors start on ramps of random slopes. In every
        second candidate, a periodic factor starts with a full turn.
        """
        ramp = np.linspace(-1, 1, size) * (kind != "categorical")
        slopes = rng.normal(size=(self.candidates, 1, 1))
        start = RAMPS.get(channel, 0.0) * slopes * ramp[:, None]
        if (channel, kind) == ("angle", "periodic"):
            turn = 2 * np.pi * np.arange(size) / size
            start[::2] = np.sign(slopes[::2]) * turn[:, None]
        return start

    def _add(
        self, name: str, start: np.ndarray, trainable: bool = True
    ) -> keras.Variable:
        def initialize(shape: tuple, dtype: Any = None) -> tf.Tensor:
            return tf.constant(start, dtype)

        weight = self.add_weight(
            start.shape, initialize, trainable=trainable, name=name
        )
        # Checkpoints find what is an attribute, and nothing in dictionaries.
        setattr(self, f"weight_{name}", weight)
        return weight


@keras.saving.register_keras_serializable(package="tfcomp")
class Draw(keras.layers.Layer):
    """Draws objects [n, G, 4 + C + K^2] in front of each other.

    Args:
        image_shape: Rows, columns and channels.
        background: Value of each channel where there is nothing.
        is_white: Whether an object is the opposite of the background rather
            than of its own color.

    Output shape: [n, *image_shape].
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
        self.background, self.is_white = list(background), is_white

    def call(self, inputs: tf.Tensor) -> tf.Tensor:
        rows, columns, colors = self.image_shape
        groups, depth = inputs.shape[1:]
        flat = tf.reshape(inputs, (-1, depth))
        shares = canvas.draw_shares(
            flat[:, :4],
            tf.reshape(flat[:, 4 + colors :], (-1, CANVAS, CANVAS)),
            (rows, columns),
            count_subpixels((rows, columns)),
        )
        shares = tf.reshape(shares, (-1, groups, rows, columns))
        background = tf.constant(self.background, tf.float32)
        shown = tf.sigmoid(inputs[:, :, 4 : 4 + colors])
        if self.is_white:
            shown = tf.zeros_like(shown) + (1.0 - background)
        return canvas.compose(shares, shown, background)

    def get_config(self) -> dict:
        own = {
            "image_shape": list(self.image_shape),
            "background": self.background,
            "is_white": self.is_white,
        }
        return {**super().get_config(), **own}


class Plan(NamedTuple):
    """What training needs; Keras, which would save it, does not look inside."""

    steps: int
    shrink: float
    price: float
    acts: tuple[Acts, ...]
    codes: keras.Model
    draw: Draw


@keras.saving.register_keras_serializable(package="tfcomp")
class ActingModel(keras.Model):
    """A functional model that trains all its candidates at once.

    Which is `chosen` follows from the running training error and the number
    of channels in use, after each step.
    """

    def plan(self, steps: int, shrink: float, price: float) -> None:
        """Says how many steps there will be, and the weights of channels."""
        acts = tuple(x for x in self.layers if isinstance(x, Acts))
        codes = keras.Model(self.inputs[0], [layer.input for layer in acts])
        draw = self.get_layer("image")
        self._plan = Plan(steps, shrink, price, acts, codes, draw)

    def train_step(self, data: tuple) -> dict[str, tf.Tensor]:
        """One step of Adam for all candidates, then one of shrinking."""
        factors, truth, _ = keras.utils.unpack_x_y_sample_weight(data)
        step = tf.cast(self.optimizer.iterations, tf.float32)
        plan = self._plan
        done = step / float(plan.steps)
        with tf.GradientTape() as tape:
            errors = self.measure_errors(factors, truth, done)  # [R]
            loss = tf.reduce_sum(errors)
        weights = self.trainable_variables
        self.optimizer.apply(tape.gradient(loss, weights), weights)
        rate = tf.convert_to_tensor(self.optimizer.learning_rate)
        rising = tf.clip_by_value((done - 0.2) / 0.2, 0.0, 1.0)
        is_over = done >= 0.75
        amount = tf.where(is_over, 0.0, rate * plan.shrink * rising)
        for layer in plan.acts:
            layer.shrink(amount, is_over)
        used = tf.add_n([layer.count_channels() for layer in plan.acts])
        before = tf.convert_to_tensor(plan.acts[0].errors)
        running = before + (1 - MEMORY) * (errors - before)
        chosen = tf.argmin(running + plan.price * used)
        for layer in plan.acts:
            layer.errors.assign(running)
            layer.chosen.assign(tf.cast(chosen, tf.float32))
        self._loss_tracker.update_state(tf.gather(errors, chosen))
        return self.get_metrics_result()

    def measure_errors(
        self, factors: tf.Tensor, truth: tf.Tensor, done: tf.Tensor
    ) -> tf.Tensor:
        """Relative errors of all candidates, [R], means over the batch."""
        plan = self._plan
        codes = keras.tree.flatten(plan.codes(factors))
        acts = [
            layer.act_all(code)
            for layer, code in zip(plan.acts, codes, strict=True)
        ]
        objects = tf.stack(acts, axis=2)  # [R, n, G, D]
        count, depth = acts[0].shape[0], acts[0].shape[-1]
        drawn = plan.draw(tf.reshape(objects, (-1, len(acts), depth)))
        width = BLUR * min(truth.shape[1:3]) * (1 - 2 * done)
        background = tf.constant(plan.draw.background, tf.float32)
        shape = (-1, tf.reduce_prod(truth.shape[1:]))
        drawn, truth = (
            tf.reshape(canvas.blur(images - background, width), shape)
            for images in (drawn, truth)
        )
        drawn = tf.reshape(drawn, (count, -1, drawn.shape[-1]))
        power = tf.reduce_sum(drawn**2, axis=-1, keepdims=True)
        best = tf.reduce_sum(drawn * truth, axis=-1, keepdims=True)
        best = best / (power + 1e-3)
        drawn = drawn * tf.where(done < 0.6, best, 1.0)
        error = tf.reduce_sum((drawn - truth) ** 2, axis=-1)
        blank = tf.reduce_sum(truth**2, axis=-1) + 1e-3
        return tf.reduce_mean(error / blank, axis=1)


def forget_candidates(model: keras.Model) -> None:
    """Empties what training alone has used; the model draws the same."""
    for layer in model.layers:
        if isinstance(layer, Acts):
            layer.forget_others()


def measure_channels(model: keras.Model) -> dict[str, dict[str, float]]:
    """By factor, the channels in use and the spread of its values there.

    A spread is a root mean square over values: of x and y in halves of the
    shorter side, of angles in radians, of sizes in logarithms, of templates
    and colors in logits. Empty for other models.
    """
    layers = (x for x in model.layers if isinstance(x, Acts))
    return {n: c for layer in layers for n, c in layer.measure().items()}
