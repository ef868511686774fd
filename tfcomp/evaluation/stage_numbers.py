"""What the report shows of a stage.

The activations of a convolution stage fill hundreds of megabytes: they come
in blocks of units, are reduced to this, and dropped.
"""

from __future__ import annotations

from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tfcomp.analysis.features import compute_rows
from tfcomp.analysis.manifolds import Components
from tfcomp.analysis.manifolds import compute_components
from tfcomp.analysis.tuning import Tuning
from tfcomp.analysis.tuning import combine_units
from tfcomp.analysis.tuning import compute_tuning
from tfcomp.analysis.tuning import decompose_units
from tfcomp.analysis.tuning import select_units

SHOWN_UNITS = 4


@dataclass(frozen=True)
class StageNumbers:
    """One stage.

    Attributes:
        tuning: Of all its units; None without a complete grid, as the maps.
        units: The units that are shown, [k].
        maps: Their activations over the grid, [k, *shape].
        probe: The scores of its linear probe.
        components: All its principal components, which keep all distances.
    """

    tuning: Tuning | None
    units: np.ndarray
    maps: np.ndarray | None
    probe: dict[str, float | None]
    components: Components


def reduce_stage(
    blocks: Iterable[np.ndarray],
    num_units: int,
    shape: Sequence[int] | None,
    is_ood: np.ndarray,
    probe: Callable[[np.ndarray], dict[str, float | None]],
) -> StageNumbers:
    """Reduces the blocks of a stage while they pass by, once.

    Args:
        blocks: Its activations, [n, units of the block] each.
        num_units: How many there are in all blocks.
        shape: Size of the grid per factor; None if it is not complete.
        is_ood: Which grid points are held out, [n].
        probe: Scores of what `compute_rows` gives.
    """
    if shape is None:
        rows = compute_rows(blocks, num_units, is_ood)
        units, components = np.zeros(0, int), compute_components(rows)
        return StageNumbers(None, units, None, probe(rows), components)
    decomposed: list[tuple[np.ndarray, np.ndarray]] = []
    candidates: list[int] = []
    columns: list[np.ndarray] = []

    def watch() -> Iterator[np.ndarray]:
        start = 0
        for block in blocks:
            decomposed.append(decompose_units(block, shape))
            variance = decomposed[-1][0]
            chosen = select_units(block, variance, SHOWN_UNITS)
            candidates.extend(start + chosen)
            columns.append(block[:, chosen])
            start += block.shape[1]
            yield block
            del block  # or it would stay until the next one is there

    rows = compute_rows(watch(), num_units, is_ood)
    # Of several blocks, the best of each compete.
    best = np.concatenate(columns, axis=1)
    variance = compute_tuning(best, shape).variance
    chosen = select_units(best, variance, SHOWN_UNITS)
    maps = best[:, chosen].T.astype(np.float64, order="C").reshape(-1, *shape)
    return StageNumbers(
        combine_units(decomposed, shape),
        np.array(candidates, int)[chosen],
        maps,
        probe(rows),
        compute_components(rows),
    )


def measure_stage(
    blocks: Iterable[np.ndarray],
    num_units: int,
    shape: Sequence[int] | None,
    num_points: int,
    probe: Callable[[np.ndarray], float | None],
) -> tuple[Tuning | None, float | None]:
    """The tuning of a stage and its probe over all of so many points.

    Arguments are those of `reduce_stage`; `probe` gets rows in whose
    normalization every point takes part.
    """
    decomposed: list[tuple[np.ndarray, np.ndarray]] = []

    def watch() -> Iterator[np.ndarray]:
        for block in blocks:
            if shape is not None:
                decomposed.append(decompose_units(block, shape))
            yield block
            del block  # or it would stay until the next one is there

    held_out = np.zeros(num_points, bool)
    score = probe(compute_rows(watch(), num_units, held_out))
    return shape and combine_units(decomposed, shape), score
