"""Reads the activations of stages over a grid, and reduces them."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import keras
import numpy as np
import tensorflow as tf

from tfcomp.analysis.effective_rank import compute_participation
from tfcomp.analysis.features import compute_rows
from tfcomp.analysis.jacobians import evaluate_in_batches
from tfcomp.analysis.manifolds import Components, compute_components
from tfcomp.analysis.tuning import Tuning, compute_tuning, select_units
from tfcomp.models.stages import list_stages, make_stage_model

# Several small stages are computed at once, up to this size together.
MAX_GROUP_BYTES = 2**29
SHOWN_UNITS = 4
MAX_COMPONENTS = 50  # that a browser shows


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
        self._groups = [
            (group, _make_function(model, group))
            for group in _group_stages(self.sizes, num_points)
        ]

    def iterate(self, grid: np.ndarray) -> Iterator[tuple[str, np.ndarray]]:
        """Yields names of stages and activations [n, units] at points."""
        for group, function in self._groups:
            activations = evaluate_in_batches(function, grid)
            for name in group:
                yield name, activations.pop(name).reshape(len(grid), -1)


def _make_function(
    model: keras.Model, group: list[str]
) -> Callable[[tf.Tensor], dict[str, tf.Tensor]]:
    activate = make_stage_model(model, group)
    return tf.function(lambda f: dict(activate(f)), autograph=False)


def _group_stages(sizes: dict[str, int], num_points: int) -> list[list[str]]:
    groups: list[list[str]] = []
    left = 0
    for stage, units in sizes.items():
        size = 4 * num_points * units
        if not groups or size > left:
            groups.append([])
            left = MAX_GROUP_BYTES
        groups[-1].append(stage)
        left -= size
    return groups


@dataclass(frozen=True)
class StageNumbers:
    """Results of one stage; tuning and maps are None without a whole grid."""

    tuning: Tuning | None
    units: np.ndarray  # that are shown, [k]
    maps: np.ndarray | None  # activations of these over the grid, [k, *shape]
    probe: dict[str, float | None]
    components: Components
    ranks: dict[str, float | None]  # participation ratios over ID and OOD


def reduce_stage(
    activations: np.ndarray,
    shape: Sequence[int] | None,
    is_ood: np.ndarray,
    probe: Callable[[np.ndarray], dict[str, float | None]],
) -> StageNumbers:
    """Reduces activations [n, units] to the numbers of a stage.

    Args:
        activations: Activations at the points of a grid.
        shape: The shape of the grid; None if it is not complete.
        is_ood: Which points are held out, [n].
        probe: From the rows of `compute_rows` to scores.
    """
    rows = compute_rows(activations, is_ood)
    ranks = {
        name: compute_participation(rows, chosen)
        for name, chosen in (("id", ~is_ood), ("ood", is_ood))
    }
    reduced = probe(rows), compute_components(rows, MAX_COMPONENTS), ranks
    if shape is None:
        return StageNumbers(None, np.zeros(0, int), None, *reduced)
    tuning = compute_tuning(activations, shape)
    units = select_units(activations, tuning.variance, SHOWN_UNITS)
    maps = activations[:, units].T.astype(np.float64, order="C")
    return StageNumbers(tuning, units, maps.reshape(-1, *shape), *reduced)
