"""Activations of a stage over the whole grid, in blocks of units.

On a grid of 64 x 64 points, a stage of 64 channels has 4 GB of activations:
a large stage is computed several times, and each time some units are kept.
"""

from __future__ import annotations

from collections.abc import Iterator

import keras
import numpy as np
import tensorflow as tf

from tfcomp.analysis import evaluate_in_batches
from tfcomp.models.stages import make_stage_model

MAX_BYTES = 2**28


class StageBlocks:
    """One stage of a model; its functions are traced once.

    Args:
        model: A model with named stages.
        stage: Name of the stage.
        num_points: Number of grid points.
        max_bytes: Size of a block.
    """

    def __init__(
        self,
        model: keras.Model,
        stage: str,
        num_points: int,
        max_bytes: int = MAX_BYTES,
    ) -> None:
        self._activate = make_stage_model(model, [stage])
        self._stage = stage
        shape = model.get_layer(stage).output.shape[1:]
        self.num_units = int(np.prod(shape))
        size = max(1, max_bytes // (4 * num_points))
        self._starts = range(0, self.num_units, size)
        self._functions = [
            tf.function(self._make(start, start + size))
            for start in self._starts
        ]

    def compute(self, grid: np.ndarray) -> Iterator[np.ndarray]:
        """Blocks of activations [n, units of the block], float32."""
        for function in self._functions:
            yield evaluate_in_batches(function, grid)["block"]

    def _make(self, start: int, stop: int):
        def activate(factors: tf.Tensor) -> dict[str, tf.Tensor]:
            values = self._activate(factors)[self._stage]
            flat = tf.reshape(values, (-1, self.num_units))
            return {"block": flat[:, start:stop]}

        return activate
