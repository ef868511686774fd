"""Activations of a stage over the whole grid, in blocks of units.

On a grid of 64 x 64 points, a stage of 64 channels has 4 GB of activations:
a large stage is computed several times, and each time some units are kept.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence

import keras
import numpy as np
import tensorflow as tf

from tfcomp.analysis import evaluate_in_batches
from tfcomp.models.stages import list_stages, make_stage_model

# Size of a block. Every further one repeats the work of all stages before.
MAX_BYTES = 2**31
# Several small stages are computed at once, up to this size together.
MAX_GROUP_BYTES = 2**29


class StageReader:
    """Some or all stages of a model, in order; functions are traced once."""

    def __init__(
        self,
        model: keras.Model,
        num_points: int,
        stages: Sequence[str] | None = None,
    ) -> None:
        names = list_stages(model) if stages is None else stages
        self.sizes = {
            name: int(np.prod(model.get_layer(name).output.shape[1:]))
            for name in names
        }
        # Groups of stages, each with one function or with one per block.
        self._passes = [
            (group, list(_make_functions(model, group, self.sizes, num_points)))
            for group in _group_stages(self.sizes, num_points)
        ]

    def iterate(
        self, grid: np.ndarray
    ) -> Iterator[tuple[str, int, Iterable[np.ndarray]]]:
        """The name of a stage, its number of units, and its blocks.

        A block is [n, units of the block], float32; the grid is [n, F].
        """
        for group, functions in self._passes:
            passes = (evaluate_in_batches(fn, grid) for fn in functions)
            if len(functions) > 1:
                (name,) = group
                yield (
                    name,
                    self.sizes[name],
                    (found.pop(name) for found in passes),
                )
                continue
            values = next(passes)
            for name in group:
                yield name, self.sizes[name], [values.pop(name)]


def _make_functions(
    model: keras.Model,
    group: list[str],
    sizes: dict[str, int],
    num_points: int,
) -> Iterator[Callable]:
    """Functions from factors to units [n, units of the block] by stage."""
    activate = make_stage_model(model, group)
    size = max(1, MAX_BYTES // (4 * num_points))
    for start in range(0, max(sizes[name] for name in group), size):

        def evaluate(factors: tf.Tensor, start: int = start) -> dict:
            return {
                name: tf.reshape(h, (-1, sizes[name]))[:, start : start + size]
                for name, h in activate(factors).items()
            }

        yield tf.function(evaluate)


def _group_stages(sizes: dict[str, int], num_points: int) -> list[list[str]]:
    groups: list[list[str]] = []
    left = 0
    for stage, units in sizes.items():
        size = 4 * num_points * units
        if not groups or size > left:
            groups.append([])
            left = min(MAX_GROUP_BYTES, MAX_BYTES)
        groups[-1].append(stage)
        left -= size
    return groups
