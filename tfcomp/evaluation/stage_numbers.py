"""What several sections need of every stage, from one look at it.

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
from tfcomp.analysis.tuning import compute_marginals
from tfcomp.analysis.tuning import compute_tuning
from tfcomp.analysis.tuning import compute_unit_maps
from tfcomp.analysis.tuning import join_tunings
from tfcomp.analysis.tuning import select_units

SHOWN_UNITS = 4


@dataclass(frozen=True)
class StageNumbers:
    """One stage.

    Attributes:
        tuning: Variance and shares of every unit.
        units: The units that are shown, [k].
        maps: Their activations over the grid, [k, *shape].
        marginals: Their mean activation per factor, [k, size] each.
        features: The points with all distances kept, [n, n].
    """

    tuning: Tuning
    units: np.ndarray
    maps: np.ndarray
    marginals: list[np.ndarray]
    features: np.ndarray


class StageReducer:
    """Reduces the blocks of a stage while they pass by.

    Args:
        shape: Size of the grid per factor.
        is_ood: Which grid points are held out, [n].
    """

    def __init__(self, shape: tuple[int, ...], is_ood: np.ndarray) -> None:
        self._shape = shape
        self._is_ood = is_ood
        self._tunings: list[Tuning] = []
        self._candidates: list[np.ndarray] = []
        self._columns: list[np.ndarray] = []
        self._num_units = 0

    def reduce(self, blocks: Iterable[np.ndarray]) -> StageNumbers:
        """Numbers of the stage whose units are in the blocks."""
        features = rotate_blocks(self._watch(blocks), self._is_ood)
        tuning = join_tunings(self._tunings)
        units, maps = self._choose()
        marginals = compute_marginals(maps)
        return StageNumbers(tuning, units, maps, marginals, features)

    def _watch(self, blocks: Iterable[np.ndarray]) -> Iterator[np.ndarray]:
        for block in blocks:
            tuning = compute_tuning(block, self._shape)
            chosen = select_units(block, tuning, SHOWN_UNITS)
            self._tunings.append(tuning)
            self._candidates.append(chosen + self._num_units)
            self._columns.append(block[:, chosen])
            self._num_units += block.shape[1]
            yield block

    def _choose(self) -> tuple[np.ndarray, np.ndarray]:
        # Of several blocks, the best of each compete.
        columns = np.concatenate(self._columns, axis=1)
        tuning = compute_tuning(columns, self._shape)
        chosen = select_units(columns, tuning, SHOWN_UNITS)
        units = np.concatenate(self._candidates)[chosen]
        return units, compute_unit_maps(columns, self._shape, chosen)
