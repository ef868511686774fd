"""Activations of a stage over the whole grid, in blocks of units.

A stage of 64 channels has 4 GB of activations on a grid of 64 x 64 points: a
large one is computed several times, for some of its units each time.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import keras
import numpy as np
import tensorflow as tf

from tfcomp.analysis import evaluate_in_batches
from tfcomp.analysis.effective_rank import compute_participation
from tfcomp.analysis.features import compute_rows
from tfcomp.analysis.manifolds import Components, compute_components
from tfcomp.analysis.tuning import (
    Tuning,
    combine_units,
    compute_tuning,
    decompose_units,
    select_units,
)
from tfcomp.models.stages import list_stages, make_stage_model

# Size of a block. Every further one repeats the work of all stages before.
MAX_BYTES = 2**31
# Several small stages are computed at once, up to this size together.
MAX_GROUP_BYTES = 2**29
SHOWN_UNITS = 4
# They hold what anyone will look at, and what is sent to a browser.
MAX_COMPONENTS = 50


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
        """The name of a stage, its number of units, and its blocks, float32 [n,
        units of the block]; the grid is [n, F]."""
        for group, functions in self._passes:
            passes = (evaluate_in_batches(fn, grid) for fn in functions)
            if len(functions) > 1:
                (name,) = group
                blocks = (found.pop(name) for found in passes)
                yield name, self.sizes[name], blocks
                continue
            values = next(passes)
            for name in group:
                yield name, self.sizes[name], [values.pop(name)]


def _make_functions(
    model: keras.Model, group: list[str], sizes: dict[str, int], num_points: int
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

        yield tf.function(evaluate, autograph=False)


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


@dataclass(frozen=True)
class StageNumbers:
    """One stage, its linear probe and its first principal components; tuning
    and maps are None without a complete grid."""

    tuning: Tuning | None
    units: np.ndarray  # those that are shown, [k]
    maps: np.ndarray | None  # their activations over the grid, [k, *shape]
    probe: dict[str, float | None]
    components: Components
    ranks: dict[str, float | None]  # participation ratios over ID and OOD


def reduce_stage(
    blocks: Iterable[np.ndarray],
    num_units: int,
    shape: Sequence[int] | None,
    is_ood: np.ndarray,
    probe: Callable[[np.ndarray], dict[str, float | None]],
) -> StageNumbers:
    """Reduces the blocks of a stage while they pass by, once; arguments are
    those of `compute_rows`, which `probe` scores, and a complete shape."""
    decomposed: list[tuple[np.ndarray, np.ndarray]] = []
    candidates: list[int] = []
    columns: list[np.ndarray] = []

    def watch(block: np.ndarray) -> None:
        start = sum(len(variance) for variance, _ in decomposed)
        decomposed.append(decompose_units(block, shape))
        chosen = select_units(block, decomposed[-1][0], SHOWN_UNITS)
        candidates.extend(start + chosen)
        columns.append(block[:, chosen])

    if shape is not None:
        blocks = _pass_by(blocks, watch)
    rows = compute_rows(blocks, num_units, is_ood)
    ranks = {
        name: compute_participation(rows, chosen)
        for name, chosen in (("id", ~is_ood), ("ood", is_ood))
    }
    found = probe(rows), compute_components(rows, MAX_COMPONENTS), ranks
    if shape is None:
        return StageNumbers(None, np.zeros(0, int), None, *found)
    # Of several blocks, the best of each compete.
    best = np.concatenate(columns, axis=1)
    variance = compute_tuning(best, shape).variance
    chosen = select_units(best, variance, SHOWN_UNITS)
    maps = best[:, chosen].T.astype(np.float64, order="C").reshape(-1, *shape)
    units = np.array(candidates, int)[chosen]
    return StageNumbers(combine_units(decomposed, shape), units, maps, *found)


def show_units(blocks: Iterable[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """The units that `reduce_stage` would show, [k], and their activations at
    all points [k, n]."""
    numbers, columns, start = [], [], 0
    for block in blocks:
        chosen = select_units(block, block.var(axis=0), SHOWN_UNITS)
        numbers.extend(start + chosen)
        columns.append(block[:, chosen])
        start += block.shape[1]
    best = np.concatenate(columns, axis=1)
    chosen = select_units(best, best.var(axis=0), SHOWN_UNITS)
    return np.array(numbers, int)[chosen], best[:, chosen].T


def measure_stage(
    blocks: Iterable[np.ndarray],
    num_units: int,
    shape: Sequence[int] | None,
    num_points: int,
    probe: Callable[[np.ndarray], float | None],
) -> tuple[Tuning | None, float | None]:
    """The tuning of a stage and its probe over so many points, which all take
    part in the normalization; arguments are those of `reduce_stage`."""
    decomposed: list[tuple[np.ndarray, np.ndarray]] = []
    if shape is not None:
        blocks = _pass_by(
            blocks, lambda b: decomposed.append(decompose_units(b, shape))
        )
    rows = compute_rows(blocks, num_units, np.zeros(num_points, bool))
    return shape and combine_units(decomposed, shape), probe(rows)


def _pass_by(
    blocks: Iterable[np.ndarray], watch: Callable[[np.ndarray], None]
) -> Iterator[np.ndarray]:
    for block in blocks:
        watch(block)
        yield block
        del block  # or it would stay until the next one is there
