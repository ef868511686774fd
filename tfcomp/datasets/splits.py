"""Training table and evaluation points, with their invariants.

ID and OOD partition the combinations that exist: the grid or a part of it.
"""

import math
import re
from dataclasses import dataclass

import numpy as np

from tfcomp.config.errors import ConfigError
from tfcomp.config.run_config import RunConfig
from tfcomp.datasets.factors import FactorSpace, number_rows
from tfcomp.datasets.regions import Region, parse_region

MAX_DRAWS = 1000
SHARES = 16  # of an image of mean weight in a pass
MAX_ANALYZED = 4096  # points, where scores are over all (--eval_points=0)


@dataclass(frozen=True)
class Points:
    """Factor combinations [n, F], and masks [n]: held out, ID but untrained."""

    factors: np.ndarray
    is_ood: np.ndarray
    is_test: np.ndarray

    def __len__(self) -> int:
        return len(self.factors)

    def __getitem__(self, rows: np.ndarray) -> "Points":
        return Points(self.factors[rows], self.is_ood[rows], self.is_test[rows])

    @property
    def subsets(self) -> dict[str, np.ndarray]:
        """Masks of `id`, `ood`, and `id_test` if there are such points."""
        test = {"id_test": self.is_test} if self.is_test.any() else {}
        return {"id": ~self.is_ood, "ood": self.is_ood, **test}


@dataclass(frozen=True)
class Splits:
    """Factor tables of one dataset, float32 values, columns as the space."""

    train: np.ndarray  # examples, [n, F]
    points: Points  # of analyses: all existing combinations, or a sample
    # Factors with a value that occurs in the region but never in training.
    # With any, the split does not test composition.
    hidden: tuple[str, ...]
    is_complete: bool = True  # numbers of points can be reshaped to the space
    existing: Points | None = None  # all combinations; None if the points are
    is_streamed: bool = False  # scores are over all existing combinations

    @property
    def grid(self) -> np.ndarray:
        return self.points.factors

    @property
    def is_ood(self) -> np.ndarray:
        return self.points.is_ood

    @property
    def is_id(self) -> np.ndarray:
        return ~self.points.is_ood

    @property
    def all(self) -> Points:
        """All existing combinations."""
        return self.existing or self.points

    @property
    def scored(self) -> Points:
        """The points that scores cover."""
        return self.all if self.is_streamed else self.points


def make_splits(
    space: FactorSpace,
    region: Region,
    train: np.ndarray,
    eval_points: int | None = None,
    cells: np.ndarray | None = None,
    train_all: bool = False,
) -> Splits:
    """Checks the invariants and derives the evaluation masks.

    Args:
        train: Training table [n, F]; NaN where a factor is absent.
        eval_points: The most points that are evaluated, as the flag has it;
            None is no limit.
        cells: The combinations that exist [n, F], in the order of the grid;
            by default all.
        train_all: True if training may contain combinations of the region.

    Raises:
        ConfigError: If the region leaves no ID or (unless it is `none`) no
            OOD grid point.
        ValueError: If a training example lies in the region.
    """
    every, is_ood = _apply(region, space, cells)
    leaks = np.flatnonzero(region.contains(train))
    if leaks.size and not train_all:
        raise ValueError(
            f"{leaks.size} training examples lie in the region "
            f"{region.spec}, the first is {train[leaks[0]].tolist()}"
        )
    trained, index = space.to_index(train), space.to_index(every)
    columns = zip(space.names, trained.T, index[is_ood].T, strict=True)
    hidden = tuple(n for n, old, new in columns if np.setdiff1d(new, old).size)
    # Of a table, values as they are: several may be nearest to one of the grid.
    pair = (trained, index) if cells is None else (train, every)
    numbers = number_rows(np.concatenate(pair))
    is_known = np.isin(numbers[len(train) :], numbers[: len(train)])
    points = Points(every, is_ood, ~is_ood & ~is_known)
    is_whole = len(points) == math.prod(space.shape)
    if is_whole and cells is not None:
        is_whole = np.array_equal(space.to_place(every), range(len(points)))
    limit = MAX_ANALYZED if eval_points == 0 else eval_points or len(points)
    if len(points) <= limit:
        return Splits(train, points, hidden, is_whole)
    shown, is_streamed = points[sample_rows(is_ood, limit)], eval_points == 0
    return Splits(train, shown, hidden, False, points, is_streamed)


def _apply(
    region: Region, space: FactorSpace, cells: np.ndarray | None
) -> tuple[np.ndarray, np.ndarray]:
    every = space.grid() if cells is None else cells
    is_ood = region.contains(every)
    if is_ood.all():
        rule = "must leave at least one combination to train on"
        raise ConfigError("region", rule, region.spec)
    if not is_ood.any() and region.spec != "none":
        rule = "must hold out at least one combination (or be none)"
        raise ConfigError("region", rule, region.spec)
    return every, is_ood


def sample_rows(is_ood: np.ndarray, count: int) -> np.ndarray:
    """Returns sorted rows of a fixed random sample, half OOD if possible."""
    rng = np.random.default_rng(0)
    ood, known = np.flatnonzero(is_ood), np.flatnonzero(~is_ood)
    num_ood = min(len(ood), max(count // 2, count - len(known)))
    chosen = [
        rng.choice(rows, min(size, len(rows)), replace=False)
        for rows, size in ((ood, num_ood), (known, max(count - num_ood, 1)))
    ]
    return np.sort(np.concatenate(chosen))


def choose_rows(count: int, limit: int) -> np.ndarray:
    """Returns at most `limit` sorted row numbers, always the same ones."""
    if count <= limit:
        return np.arange(count)
    return np.sort(np.random.default_rng(0).choice(count, limit, replace=False))


def draw_training_table(
    config: RunConfig,
    space: FactorSpace,
    region: Region,
    cells: np.ndarray | None = None,
) -> np.ndarray:
    """Draws the training positions of a run, [n, F], by its seed."""
    if config.data.train_all:
        region = parse_region("none", space)
    every, is_ood = _apply(region, space, cells)
    cells = every[~is_ood]
    count = config.data.num_train or len(cells)
    rng = np.random.default_rng([config.training.seed, 0])
    if config.data.coordinates == "grid":
        return draw_cells(cells, count, "num_train", rng)
    kept = np.empty((0, len(space)), np.float32)
    # The region leaves a grid cell free, but its free volume can be nothing.
    for _ in range(MAX_DRAWS):
        points = space.sample(max(count, MAX_DRAWS), rng)
        kept = np.concatenate([kept, points[~region.contains(points)]])
        if len(kept) >= count:
            return kept[:count]
    rule = "must leave room between grid cells for continuous coordinates"
    raise ConfigError("region", rule, region.spec)


def draw_cells(
    cells: np.ndarray, count: int, flag: str, rng: np.random.Generator
) -> np.ndarray:
    """Draws rows of `cells` [n, F], each at most once, in their order."""
    if count > len(cells):
        rule = f"must be at most the {len(cells)} ID cells"
        raise ConfigError(flag, rule, count)
    return cells[np.sort(rng.choice(len(cells), size=count, replace=False))]


def weigh(table: np.ndarray, space: FactorSpace, pairs: str) -> np.ndarray:
    """Returns weights of rows of factor values, [n], the largest is 1.

    A pair `a,b:s` gives exp(-(a - b)^2 / (2 s^2)), of values that are scaled
    to 0..1; several pairs (`a,b:.4;a,c:.2`) are multiplied. Absent values
    (NaN) count as equal to any.
    """
    scales = np.array([max(f.high - f.low, 1e-30) for f in space])
    unit = (table - [f.low for f in space]) / scales
    logs = np.zeros(len(table))  # of inverse weights, which may underflow
    for pair in pairs.split(";"):
        match = re.fullmatch(r"([^,:]+),([^,:]+):(\d*\.?\d+)", pair.strip())
        names = match.groups()[:2] if match else ()
        width = float(match[3]) if match else 0.0
        if not {*names} <= {*space.names} or len({*names}) < 2 or not width:
            rule = f"must be a,b:0.4 for two of {', '.join(space.names)}"
            raise ConfigError("correlation", rule, pair)
        first, second = (unit[:, space.names.index(name)] for name in names)
        apart = np.nan_to_num(first - second)
        logs += np.square(apart) / (2 * width**2)
    return np.exp(logs.min() - logs)


def repeat_rows(weights: np.ndarray) -> np.ndarray:
    """Returns rows, sorted, row i about w_i / mean(w) * `SHARES` times."""
    ends = np.cumsum(weights) / np.sum(weights)
    count = SHARES * len(ends)
    rows = np.searchsorted(ends, (np.arange(count) + 0.5) / count)
    return np.minimum(rows, len(ends) - 1)
