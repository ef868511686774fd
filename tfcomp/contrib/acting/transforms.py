"""Transforms of the acting decoder: pose terms of values, summed."""

import math
from collections.abc import Mapping, Sequence

import keras
import numpy as np
import tensorflow as tf
from numpy import ndarray as Array

from tfcomp.contrib.acting import first_poses
from tfcomp.contrib.acting.first_poses import CANVAS, POSE_TERMS

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
