"""What the report shows of a stage besides its tuning.

The activations of a convolution stage fill hundreds of megabytes: they come
in blocks of units, are reduced to this, and dropped.
"""

from __future__ import annotations

from collections.abc import Iterable
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from tfcomp.analysis.features import rotate_blocks
from tfcomp.analysis.tuning import Tuning
from tfcomp.analysis.tuning import compute_tuning
from tfcomp.analysis.tuning import select_units

SHOWN_UNITS = 4


@dataclass(frozen=True)
class StageNumbers:
    """One stage.

    Attributes:
        units: The units that are shown, [k].
        maps: Their activations over the grid, [k, *shape].
        features: The points with all distances kept, [n, n].
    """

    units: np.ndarray
    maps: np.ndarray
    features: np.ndarray


def reduce_stage(
    blocks: Iterable[np.ndarray], tuning: Tuning, is_ood: np.ndarray
) -> StageNumbers:
    """Reduces the blocks of a stage while they pass by.

    Args:
        blocks: Its activations, [n, units of the block] each.
        tuning: Of all its units.
        is_ood: Which grid points are held out, [n].
    """
    candidates: list[int] = []
    columns: list[np.ndarray] = []

    def watch() -> Iterator[np.ndarray]:
        start = 0
        for block in blocks:
            variance = tuning.variance[start : start + block.shape[1]]
            chosen = select_units(block, variance, SHOWN_UNITS)
            candidates.extend(start + chosen)
            columns.append(block[:, chosen])
            start += block.shape[1]
            yield block

    features = rotate_blocks(watch(), is_ood)
    # Of several blocks, the best of each compete.
    best = np.concatenate(columns, axis=1)
    variance = compute_tuning(best, tuning.shape).variance
    chosen = select_units(best, variance, SHOWN_UNITS)
    maps = best[:, chosen].T.astype(np.float64, order="C")
    maps = maps.reshape(-1, *tuning.shape)
    units = np.array(candidates, int)[chosen]
    return StageNumbers(units, maps, features)
