"""Activations of a stage over the whole grid, in blocks of units.

On a grid of 64 x 64 points, a stage of 64 channels has 4 GB of activations:
a large stage is computed several times, and each time some units are kept.
"""

from __future__ import annotations

from collections.abc import Iterable
from collections.abc import Iterator

import keras
import numpy as np
import tensorflow as tf

from tfcomp.analysis import evaluate_in_batches
from tfcomp.models.stages import list_stages
from tfcomp.models.stages import make_stage_model

# Size of a block. Every further one repeats the work of all stages before.
MAX_BYTES = 2**31
# Several small stages are computed at once, up to this size together.
MAX_GROUP_BYTES = 2**29


class StageBlocks:
    """One stage of a model; its functions are traced once.

    Args:
        model: A model with named stages.
        stage: Name of the stage.
        num_points: Number of grid points.
    """

    def __init__(self, model: keras.Model, stage: str, num_points: int) -> None:
        self._activate = make_stage_model(model, [stage])
        self._stage = stage
        shape = model.get_layer(stage).output.shape[1:]
        self.num_units = int(np.prod(shape))
        size = max(1, MAX_BYTES // (4 * num_points))
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


class StageReader:
    """All stages of a model in order; its functions are traced once.

    One look at every stage costs less than with `StageBlocks` for each, where
    every stage repeats the work of those before it.

    Args:
        model: A model with named stages.
        num_points: Number of grid points.
    """

    def __init__(self, model: keras.Model, num_points: int) -> None:
        self._blocks: dict[str, StageBlocks] = {}
        self._functions = []
        for group in _group_stages(model, num_points):
            if len(group) == 1:
                blocks = StageBlocks(model, group[0], num_points)
                self._blocks[group[0]] = blocks
            activate = make_stage_model(model, group)
            self._functions.append((group, tf.function(activate.__call__)))

    def iterate(
        self, grid: np.ndarray
    ) -> Iterator[tuple[str, int, Iterable[np.ndarray]]]:
        """The name of a stage, its number of units, and its blocks.

        A block is [n, units of the block], float32.

        Args:
            grid: Factor values [n, F].
        """
        for group, function in self._functions:
            if group[0] in self._blocks:
                blocks = self._blocks[group[0]]
                yield group[0], blocks.num_units, blocks.compute(grid)
                continue
            values = evaluate_in_batches(function, grid)
            for stage in group:
                flat = values.pop(stage).reshape(len(grid), -1)
                yield stage, flat.shape[1], [flat]


def _group_stages(model: keras.Model, num_points: int) -> list[list[str]]:
    groups: list[list[str]] = []
    left = 0
    for stage in list_stages(model):
        units = np.prod(model.get_layer(stage).output.shape[1:])
        size = 4 * num_points * int(units)
        if not groups or size > left:
            groups.append([])
            left = MAX_GROUP_BYTES
        groups[-1].append(stage)
        left -= size
    return groups
