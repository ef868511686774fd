"""Outputs over the donut grid whose verdict is known, by name.

The controls of the claims about images: what networks could draw at the
held-out positions, having learned true bumps of sigma 1 everywhere else.
"""

import numpy as np
from scipy.ndimage import gaussian_filter

from tests.analysis.planted import (
    hold_out,
    make_bumps,
    make_grid,
    make_space,
    superpose,
)

SIZE = 28
FULL_GRID = make_grid(SIZE, SIZE)
SPACE = make_space(SIZE, SIZE)
HOLE = hold_out(FULL_GRID, 6, 22)
# Every second held-out position is enough to tell, as on a chess board.
KEPT = ~HOLE | (FULL_GRID.sum(axis=1) % 2 == 0)
GRID = FULL_GRID[KEPT]
IS_OOD = HOLE[KEPT]
# To the nearest known position, which lies straight across.
DISTANCE = 9 - np.abs(GRID[IS_OOD] - 14).max(axis=1)
BUMPS = make_bumps(GRID, SIZE)
KNOWN = BUMPS[~IS_OOD]

SUPERPOSERS = ("means", "nearest of each", "random weights", "blurred means")
COMPOSERS = tuple(f"composer {width}" for width in (1, 1.5, 2, 3))
MEMORIES = ("nearest memory", "random memory", "random memories")
NOISE = ("noise",)


def plant(name: str) -> np.ndarray:
    """Outputs at all points of `GRID`, [n, SIZE, SIZE]: true bumps where known.

    A composer draws a bump of its width everywhere.
    """
    if name.startswith("composer"):
        width = float(name.split()[1])
        profiles = np.exp(
            -0.5 * (np.arange(SIZE) - GRID[..., None]) ** 2 / width**2
        )
        return np.einsum("nj,ni->nij", profiles[:, 0], profiles[:, 1])
    if name.endswith("means"):
        outputs = superpose(BUMPS, GRID, IS_OOD, {0: 1.0, 1: 1.0})
        blurred = gaussian_filter(outputs[IS_OOD], (0, 1, 1))
        outputs[IS_OOD] = (
            blurred if name == "blurred means" else outputs[IS_OOD]
        )
        return outputs
    rng = np.random.default_rng(0)
    outputs = BUMPS.copy()
    outputs[IS_OOD] = [DRAW[name](point, rng) for point in GRID[IS_OOD]]
    return outputs


def sum_nearest(point: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """The nearest memory with the same x, and the one with the same y."""
    offsets = np.abs(GRID[~IS_OOD] - point)
    distance = offsets.sum(axis=1, keepdims=True)
    nearest = np.where(offsets == 0, distance, np.inf).argmin(axis=0)
    return KNOWN[nearest].sum(axis=0)


def weigh_sharing(point: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """All memories with the same x or y, with random weights."""
    sharing = KNOWN[(GRID[~IS_OOD] == point).any(axis=1)]
    return np.tensordot(rng.random(len(sharing)), sharing, 1)


def copy_one(point: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """The nearest memory."""
    return KNOWN[np.linalg.norm(GRID[~IS_OOD] - point, axis=1).argmin()]


DRAW = {
    "nearest of each": sum_nearest,
    "random weights": weigh_sharing,
    "nearest memory": copy_one,
    "random memory": lambda point, rng: rng.choice(KNOWN),
    "random memories": lambda point, rng: rng.choice(KNOWN, 22).sum(axis=0),
    "noise": lambda point, rng: rng.normal(size=(SIZE, SIZE)),
}
