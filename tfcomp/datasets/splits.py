"""Training table and evaluation points, with their invariants.

ID and OOD partition the combinations that exist: the grid or a part of it.
"""

import math
import re
from dataclasses import dataclass

import numpy as np
from numpy import ndarray as Array

from tfcomp.config.errors import ConfigError
from tfcomp.config.run_config import RunConfig
from tfcomp.datasets.factors import FactorSpace, number_rows
from tfcomp.datasets.regions import Region, parse_region

MAX_DRAWS = 1000
SHARES = 16  # of an image of mean weight in a pass
MAX_REPEATS = 64  # of an image in a pass, with `--balance`
MAX_ANALYZED = 4096  # points, where scores are over all (--eval_points=0)


@dataclass(frozen=True)
class Points:
    """Combinations of factors, some of them held out.

    Attributes:
        factors: Factor values, float32 [n, F].
        is_ood: Mask of the held-out ones, [n].
        is_test: Mask of ID combinations that training lacks, [n].
    """

    factors: Array
    is_ood: Array
    is_test: Array

    def __len__(self) -> int:
        return len(self.factors)

    def __getitem__(self, rows: Array) -> "Points":
        return Points(
            factors=self.factors[rows],
            is_ood=self.is_ood[rows],
            is_test=self.is_test[rows],
        )

    @property
    def subsets(self) -> dict[str, Array]:
        """Masks of `id`, `ood`, and `id_test` if there are such points."""
        masks = {
            "id": ~self.is_ood,
            "ood": self.is_ood,
        }
        if self.is_test.any():
            masks["id_test"] = self.is_test
        return masks


@dataclass(frozen=True)
class Splits:
    """Training examples and evaluation points of a dataset.

    Attributes:
        train: Factor values of the training examples, float32 [n, F].
        points: What analyses look at: all existing combinations, or a sample.
        hidden: Values, by factor, that occur in the region but never in
            training. With any, the split does not test composition.
        is_complete: True if numbers of points can be reshaped to the grid.
        existing: All combinations that exist; None if the points are these.
        is_streamed: True if scores are over all existing combinations.
    """

    train: Array
    points: Points
    hidden: dict[str, list[str]]
    is_complete: bool = True
    existing: Points | None = None
    is_streamed: bool = False

    @property
    def grid(self) -> Array:
        return self.points.factors

    @property
    def is_ood(self) -> Array:
        return self.points.is_ood

    @property
    def is_id(self) -> Array:
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
    train: Array,
    eval_points: int | None = None,
    cells: Array | None = None,
    train_all: bool = False,
) -> Splits:
    """Derives the evaluation points of a training table.

    Args:
        space: The factors.
        region: What is held out.
        train: Factor values of the training examples [n, F]; NaN where a
            factor is absent.
        eval_points: The largest number of points that analyses look at. With
            0 that is `MAX_ANALYZED`, and scores are over all. None is no
            limit.
        cells: The combinations that exist [n, F], in the order of the grid;
            by default all.
        train_all: True if training may contain combinations of the region.

    Raises:
        ConfigError: If the region leaves no ID or (unless it is `none`) no
            OOD grid point.
        ValueError: If a training example lies in the region.
    """
    every, is_ood = _apply(region, space, cells)
    if not train_all:
        _check_leaks(region, train)

    train_index = space.to_index(train)
    index = space.to_index(every)
    hidden = _find_hidden(space, train_index, index[is_ood])
    if cells is None:
        is_trained = _occur(index, train_index)
    else:
        # Several combinations of a table may be nearest to one of the grid.
        is_trained = _occur(every, train)
    points = Points(
        factors=every,
        is_ood=is_ood,
        is_test=~is_ood & ~is_trained,
    )

    if eval_points is None:
        limit = len(points)
    elif eval_points == 0:
        limit = MAX_ANALYZED
    else:
        limit = eval_points
    if len(points) <= limit:
        is_complete = cells is None or _is_grid(space, every)
        return Splits(train, points, hidden, is_complete)
    return Splits(
        train=train,
        points=points[sample_rows(is_ood, limit)],
        hidden=hidden,
        is_complete=False,
        existing=points,
        is_streamed=eval_points == 0,
    )


def _check_leaks(region: Region, train: Array) -> None:
    """Refuses training examples in the region."""
    leaks = np.flatnonzero(region.contains(train))
    if leaks.size:
        first = train[leaks[0]].tolist()
        raise ValueError(
            f"{leaks.size} training examples lie in the region "
            f"{region.spec}, the first is {first}"
        )


def _find_hidden(
    space: FactorSpace,
    train: Array,
    held_out: Array,
) -> dict[str, list[str]]:
    """Finds the held-out values that training lacks, by factor.

    Args:
        space: The factors.
        train: Grid indices of the training examples, [t, F].
        held_out: Grid indices of held-out combinations, [n, F].
    """
    hidden = {}
    for column, factor in enumerate(space):
        unseen = np.setdiff1d(held_out[:, column], train[:, column])
        if unseen.size:
            values = factor.values()[unseen]
            hidden[factor.name] = list(map(factor.describe, values))
    return hidden


def _occur(table: Array, others: Array) -> Array:
    """Marks the rows of [n, F] that are among other rows, [n]."""
    numbers = number_rows(np.concatenate([table, others]))
    rows, other_rows = np.split(numbers, [len(table)])
    return np.isin(rows, other_rows)


def _is_grid(space: FactorSpace, table: Array) -> bool:
    """Tells whether a table has every combination of the grid, in order."""
    size = math.prod(space.shape)
    if len(table) != size:
        return False
    places = space.to_place(table)
    return np.array_equal(places, np.arange(size))


def _apply(
    region: Region,
    space: FactorSpace,
    cells: Array | None,
) -> tuple[Array, Array]:
    """Returns the existing combinations, and the mask of the region's."""
    if cells is None:
        cells = space.grid()
    is_ood = region.contains(cells)
    if is_ood.all():
        rule = "must leave at least one combination to train on"
        raise ConfigError("region", rule, region.spec)
    if not is_ood.any() and region.spec != "none":
        rule = "must hold out at least one combination (or be none)"
        raise ConfigError("region", rule, region.spec)
    return cells, is_ood


def sample_rows(is_ood: Array, count: int) -> Array:
    """Samples rows, the same in every call, sorted.

    Args:
        is_ood: Mask of the held-out rows, [n].
        count: The number of rows; half of them are held out, if possible.
    """
    rng = np.random.default_rng(0)
    ood = np.flatnonzero(is_ood)
    known = np.flatnonzero(~is_ood)
    num_ood = min(len(ood), max(count // 2, count - len(known)))
    num_known = min(len(known), max(count - num_ood, 1))

    ood = rng.choice(ood, num_ood, replace=False)
    known = rng.choice(known, num_known, replace=False)
    return np.sort(np.concatenate([ood, known]))


def choose_rows(count: int, limit: int) -> Array:
    """Samples rows, the same ones in every call.

    Args:
        count: The number of rows.
        limit: The largest number of rows that are chosen.

    Returns:
        Sorted rows.
    """
    if count <= limit:
        return np.arange(count)
    rng = np.random.default_rng(0)
    rows = rng.choice(count, limit, replace=False)
    return np.sort(rows)


def draw_training_table(
    config: RunConfig,
    space: FactorSpace,
    region: Region,
    cells: Array | None = None,
) -> Array:
    """Samples the training examples of a run by its seed.

    Args:
        config: Has the seed, `num_train`, `coordinates` and `train_all`.
        space: The factors.
        region: What is held out.
        cells: The combinations that exist [n, F]; by default the grid.

    Returns:
        Factor values, float32 [n, F].

    Raises:
        ConfigError: If there are too few combinations outside the region.
    """
    if config.data.train_all:
        region = parse_region("none", space)
    every, is_ood = _apply(region, space, cells)
    cells = every[~is_ood]
    count = config.data.num_train or len(cells)
    rng = np.random.default_rng([config.training.seed, 0])
    if config.data.coordinates == "grid":
        return draw_cells(cells, count, "num_train", rng)

    train = np.empty((0, len(space)), np.float32)
    # The region leaves a grid cell free, but its free volume can be nothing.
    for _ in range(MAX_DRAWS):
        points = space.sample(max(count, MAX_DRAWS), rng)
        is_free = ~region.contains(points)
        train = np.concatenate([train, points[is_free]])
        if len(train) >= count:
            return train[:count]
    rule = "must leave room between grid cells for continuous coordinates"
    raise ConfigError("region", rule, region.spec)


def draw_cells(
    cells: Array,
    count: int,
    flag: str,
    rng: np.random.Generator,
) -> Array:
    """Samples rows of a table, each at most once, in their order.

    Args:
        cells: Combinations [n, F], or numbers [n].
        count: The number of rows.
        flag: The flag that sets the count, for the error.
        rng: The generator.

    Raises:
        ConfigError: If there are fewer than `count`, which `flag` sets.
    """
    if count > len(cells):
        rule = f"must be at most the {len(cells)} ID cells"
        raise ConfigError(flag, rule, count)
    rows = rng.choice(len(cells), size=count, replace=False)
    return cells[np.sort(rows)]


def weigh(table: Array, space: FactorSpace, pairs: str) -> Array:
    """Weighs training examples so that factors correlate.

    A pair `a,b:s` gives exp(-(a - b)^2 / (2 s^2)), of values that are scaled
    to 0..1; several pairs (`a,b:.4;a,c:.2`) are multiplied. Absent values
    (NaN) count as equal to any.

    Args:
        table: Factor values, [n, F].
        space: The factors.
        pairs: The text of `--correlation`.

    Returns:
        Weights [n]; the largest is 1.

    Raises:
        ConfigError: If the text is not a list of pairs of factors.
    """
    low = np.array([factor.low for factor in space])
    high = np.array([factor.high for factor in space])
    unit = (table - low) / (high - low)

    logs = np.zeros(len(table))  # of inverse weights, which may underflow
    for pair in pairs.split(";"):
        first, second, width = _parse_pair(pair, space)
        apart = unit[:, first] - unit[:, second]
        squares = np.square(np.nan_to_num(apart))
        logs += squares / (2 * width**2)
    return np.exp(logs.min() - logs)


def _parse_pair(pair: str, space: FactorSpace) -> tuple[int, int, float]:
    """Parses `a,b:s` into two columns and the width s."""
    match = re.fullmatch(r"([^,:]+),([^,:]+):(\d*\.?\d+)", pair.strip())
    names = ", ".join(space.names)
    error = ConfigError(
        "correlation",
        f"must be a,b:0.4 for two of {names}",
        pair,
    )
    if match is None:
        raise error

    first, second, text = match.groups()
    width = float(text)
    is_pair = {first, second} <= {*space.names} and first != second
    if not is_pair or width <= 0:
        raise error
    column = space.names.index(first)
    other = space.names.index(second)
    return column, other, width


def repeat_rows(weights: Array) -> Array:
    """Returns rows, sorted, row i about w_i / mean(w) * `SHARES` times."""
    ends = np.cumsum(weights) / np.sum(weights)
    count = SHARES * len(ends)
    middles = (np.arange(count) + 0.5) / count
    rows = np.searchsorted(ends, middles)
    return np.minimum(rows, len(ends) - 1)


def repeat_rare(space: FactorSpace, table: Array) -> Array:
    """Returns rows, each as often as its rarest value is below average.

    Args:
        space: The factors.
        table: Factor values of the training examples, [n, F].
    """
    times = np.ones(len(table))
    for index in space.to_index(table).T:
        is_present = index >= 0
        present = index[is_present]
        counts = np.bincount(present)
        num_values = max(int(np.count_nonzero(counts)), 1)
        average = len(present) / num_values
        rarity = average / counts[present]
        times[is_present] = np.maximum(times[is_present], rarity)

    repeats = np.clip(np.rint(times), 1, MAX_REPEATS).astype(int)
    return np.repeat(np.arange(len(table)), repeats)
