"""Training table and exhaustive evaluation grid, with their invariants.

ID and OOD partition the grid; no training example lies in the region.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tfcomp.config.errors import ConfigError
from tfcomp.config.run_config import RunConfig
from tfcomp.datasets.factors import FactorSpace
from tfcomp.datasets.regions import Region

MAX_DRAWS = 1000
MIN_DRAWN = 1000
MAX_MISSES = 10**6


@dataclass(frozen=True)
class Splits:
    """Factor tables of one dataset, float32 values, columns as the space.

    Attributes:
        train: Examples that training draws from, [n, F].
        grid: Every combination of the space, [prod(shape), F].
        is_ood: Which grid points are held out, bool [prod(shape)].
        is_test: Which ID grid points training does not contain, bool.
        hidden: Factors of which some value inside the region never occurs
            in training; not empty means that the split is no test of
            composition.
    """

    train: np.ndarray
    grid: np.ndarray
    is_ood: np.ndarray
    is_test: np.ndarray
    hidden: tuple[str, ...]

    @property
    def is_id(self) -> np.ndarray:
        """Which grid points are in distribution."""
        return ~self.is_ood


def make_splits(
    space: FactorSpace, region: Region, train: np.ndarray
) -> Splits:
    """Checks the invariants and derives the evaluation masks.

    Args:
        space: The factors.
        region: Held-out combinations.
        train: Training table [n, F]; NaN where a factor is absent.

    Raises:
        ConfigError: If the region leaves no ID or (unless it is `none`) no
            OOD grid point.
        ValueError: If a training example lies in the region.
    """
    grid = space.grid()
    is_ood = region.contains(grid)
    _check_region(region, is_ood)
    leaks = np.flatnonzero(region.contains(train))
    if leaks.size:
        raise ValueError(
            f"{leaks.size} training examples lie in the region "
            f"{region.spec}, the first is {train[leaks[0]].tolist()}"
        )
    seen = _contains_rows(space.to_index(train), space.to_index(grid))
    hidden = _hidden_factors(space, grid[is_ood], train)
    return Splits(train, grid, is_ood, ~is_ood & ~seen, hidden)


def draw_training_table(
    config: RunConfig, space: FactorSpace, region: Region
) -> np.ndarray:
    """The training positions that the flags ask for, [n, F].

    Grid coordinates: all ID cells, or `num_train` of them without
    repetition. Continuous ones: uniform in the space outside the region.
    The draw depends on the seed alone.

    Raises:
        ConfigError: If `num_train` exceeds the ID cells, or the region
            leaves no room for continuous positions.
    """
    grid = space.grid()
    is_ood = region.contains(grid)
    _check_region(region, is_ood)
    cells = grid[~is_ood]
    count = config.data.num_train or len(cells)
    rng = np.random.default_rng([config.training.seed, 0])
    if config.data.coordinates == "continuous":
        return _sample_outside(space, region, count, rng)
    return draw_cells(cells, count, "num_train", rng)


def draw_cells(
    cells: np.ndarray, count: int, flag: str, rng: np.random.Generator
) -> np.ndarray:
    """Some rows of `cells`, each at most once, in grid order.

    Args:
        cells: Factor combinations [n, F] in grid order.
        count: How many to draw.
        flag: The flag that asks for so many, for the error.
        rng: Source of random numbers.

    Raises:
        ConfigError: If there are not so many.
    """
    if count > len(cells):
        rule = f"must be at most the {len(cells)} ID cells"
        raise ConfigError(flag, rule, count)
    chosen = rng.choice(len(cells), size=count, replace=False)
    return cells[np.sort(chosen)]


def _sample_outside(
    space: FactorSpace, region: Region, count: int, rng: np.random.Generator
) -> np.ndarray:
    kept = np.empty((0, len(space)), np.float32)
    # The region leaves at least one grid cell free, yet its free volume can
    # be nothing but a border.
    for number in range(MAX_DRAWS):
        if number * max(count, MIN_DRAWN) >= MAX_MISSES and not len(kept):
            break  # millions of points a draw take minutes to find nothing
        points = space.sample(max(count, MIN_DRAWN), rng)
        kept = np.concatenate([kept, points[~region.contains(points)]])
        if len(kept) >= count:
            return kept[:count]
    rule = "must leave room between grid cells for continuous coordinates"
    raise ConfigError("region", rule, region.spec)


def _check_region(region: Region, is_ood: np.ndarray) -> None:
    if is_ood.all():
        rule = "must leave at least one combination to train on"
        raise ConfigError("region", rule, region.spec)
    if not is_ood.any() and region.spec != "none":
        rule = "must hold out at least one combination (or be none)"
        raise ConfigError("region", rule, region.spec)


def _contains_rows(rows: np.ndarray, queries: np.ndarray) -> np.ndarray:
    # A row is one number: sets of tuples would take gigabytes. Indices start
    # at -1, for an absent factor.
    shape = queries.max(axis=0, initial=0) + 2
    known, asked = (
        np.ravel_multi_index((r + 1).T, shape) for r in (rows, queries)
    )
    return np.isin(asked, known)


def _hidden_factors(
    space: FactorSpace, ood: np.ndarray, train: np.ndarray
) -> tuple[str, ...]:
    hidden = []
    for column, factor in enumerate(space):
        needed = factor.to_index(ood[:, column])
        trained = factor.to_index(train[:, column])
        if np.setdiff1d(needed, trained).size:
            hidden.append(factor.name)
    return tuple(hidden)
