"""Transforms of the acting decoder: pose terms of values, summed."""

from collections.abc import Mapping, Sequence

import keras
import numpy as np
import tensorflow as tf

from tfcomp.contrib.acting import first_poses
from tfcomp.contrib.acting.first_poses import CANVAS, POSE_TERMS

# Learning rates relative to `--learning_rate`; else 1.
RATES = {"template": 2.5, "angle": 0.25}
# Speed of shrinking, relative to positions.
SHRINK = {"template": 3.0, "angle": 0.5}
SPREAD = {"template": 0.05}  # smallest of a term in use; else .01
LEFT = 4  # one in four candidates is trained to the end
ORDER = (*first_poses.POSE, "color", "template")  # of outputs


@keras.saving.register_keras_serializable(package="tfcomp", name="Acts")
class FactorTransforms(keras.layers.Layer):
    """Sums the pose terms of the values of an object's factors.

    Maps codes [n, U], the units of all factors, to [n, 4 + C + K^2]: pose,
    color and template of the candidate `chosen`. A factor is its name, the
    number of values, `ordered`, `periodic` or `categorical`, and the number
    of steps of its period if more than its values.
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
        self.channels, self.candidates = tuple(channels), candidates
        self.colors, self.seed = colors, list(seed)
        self._starts = starts or {}
        sizes = [factor[1] for factor in self.factors]
        owner = np.repeat(np.arange(len(sizes)), sizes)
        same = owner[:, None] == owner
        self.mean = (same / same.sum(axis=1)).astype(np.float32)  # [U, U]

    def build(self, input_shape: tuple) -> None:
        rng = np.random.default_rng(self.seed)
        self.base, self.moves, self.kept = {}, {}, {}
        depths = {"template": CANVAS**2, "color": self.colors}
        for term in POSE_TERMS:
            base, moves = first_poses.draw_numbers(
                term,
                depths.get(term, 1),
                self.factors,
                self.candidates,
                self._starts.get(term),
                rng,
            )
            rate = RATES.get(term, 1.0)
            self.base[term] = self._add(f"{term}_0", base / rate)
            if term in self.channels:
                kept = np.ones((*moves.shape[:2], 1))
                self.moves[term] = self._add(term, moves / rate)
                self.kept[term] = self._add(f"{term}_kept", kept, False)
        self.chosen = self._add("chosen", np.zeros(()), False)
        self.errors = self._add("errors", np.ones(self.candidates), False)
        left = np.arange(-(-self.candidates // LEFT))
        self.left = self._add("left", left, False)

    def call(self, inputs: tf.Tensor) -> tf.Tensor:
        return self.act(inputs, tf.cast(self.chosen, tf.int32))

    def act(self, code: tf.Tensor, candidates: tf.Tensor) -> tf.Tensor:
        """Returns sums [..., n, 4 + C + K^2] of candidates [...]."""
        parts = []
        for term in ORDER:
            total = tf.gather(self.base[term], candidates)
            if term in self.moves:
                moves = tf.gather(self.moves[term], candidates)
                total += tf.matmul(code, moves)
            else:
                total += tf.zeros((tf.shape(code)[0], 1))
            parts.append(total * RATES.get(term, 1.0))
        return tf.concat(parts, axis=-1)

    def spreads(self, term: str) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
        """Returns means [R, U, D] of factors, differences, and spreads."""
        moves = tf.convert_to_tensor(self.moves[term])
        mean = tf.matmul(self.mean, moves)
        rest = moves - mean
        squares = tf.reduce_mean(tf.square(rest), axis=-1, keepdims=True)
        spread = tf.sqrt(tf.matmul(self.mean, squares))
        return mean, rest, spread * RATES.get(term, 1.0)

    def shrink(self, amount: tf.Tensor, is_over: tf.Tensor) -> None:
        """Shrinks differences by an amount; prunes when that `is_over`."""
        for term, moves in self.moves.items():
            mean, rest, spread = self.spreads(term)
            less = amount * SHRINK.get(term, 1.0)
            factor = tf.nn.relu(1.0 - less / tf.maximum(spread, 1e-9))
            kept = tf.convert_to_tensor(self.kept[term])
            is_used = tf.cast(
                spread * factor > SPREAD.get(term, 0.01), kept.dtype
            )
            kept = tf.where(is_over, kept, is_used)
            self.kept[term].assign(kept)
            moves.assign(mean + rest * tf.where(is_over, kept, factor))

    def count_terms(self) -> tf.Tensor:
        """Returns the number of terms in use, of each candidate [R]."""
        share = tf.constant(np.diag(self.mean), tf.float32)[:, None]
        kept = map(tf.convert_to_tensor, self.kept.values())
        return tf.add_n([tf.reduce_sum(k * share, axis=(1, 2)) for k in kept])

    def measure_factors(self) -> dict[str, dict[str, float]]:
        """Returns the spread of each term in use, by factor."""
        chosen = int(self.chosen.numpy())
        spreads = {c: self.spreads(c)[2][chosen, :, 0] for c in self.moves}
        found, start = {}, 0
        for name, size, *_ in self.factors:
            found[name] = {
                term: float(spread[start])
                for term, spread in spreads.items()
                if self.kept[term][chosen, start, 0] > 0
                and float(spread[start]) > SPREAD.get(term, 0.01)
            }
            start += size
        return found

    def get_config(self) -> dict:
        return {
            **super().get_config(),
            "factors": [list(factor) for factor in self.factors],
            "channels": list(self.channels),
            "candidates": self.candidates,
            "colors": self.colors,
            "seed": self.seed,
        }

    def _add(
        self, name: str, start: np.ndarray, trainable: bool = True
    ) -> keras.Variable:
        initializer = keras.initializers.Constant(start)
        weight = self.add_weight(
            start.shape, initializer, trainable=trainable, name=name
        )
        # Checkpoints find attributes, and nothing in dictionaries.
        setattr(self, f"weight_{name}", weight)
        return weight


# Saved models name the weights of a layer by its class.
FactorTransforms.__name__ = "Acts"
