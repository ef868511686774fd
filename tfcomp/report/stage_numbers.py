"""What several sections need of every stage, from one look at it.

The activations of a convolution stage fill hundreds of megabytes: they are
reduced to this and dropped before the next stage is computed.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tfcomp.analysis.probes import rotate_features
from tfcomp.analysis.tuning import Tuning
from tfcomp.analysis.tuning import compute_marginals
from tfcomp.analysis.tuning import compute_tuning
from tfcomp.analysis.tuning import compute_unit_maps
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
        features: The points with all distances kept, [n, at most n].
    """

    tuning: Tuning
    units: np.ndarray
    maps: np.ndarray
    marginals: list[np.ndarray]
    features: np.ndarray


def reduce_stage(
    activations: np.ndarray, shape: tuple[int, ...], is_ood: np.ndarray
) -> StageNumbers:
    """Reduces activations [n, units] over a grid of the given shape."""
    tuning = compute_tuning(activations, shape)
    units = select_units(activations, tuning, SHOWN_UNITS)
    maps = compute_unit_maps(activations, shape, units)
    return StageNumbers(
        tuning,
        units,
        maps,
        compute_marginals(maps),
        rotate_features(activations, is_ood),
    )
