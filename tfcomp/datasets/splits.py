"""What is trained and what is held out: table, points, and equal images.

ID and OOD partition the combinations that exist: the grid or a part of it.
A split alone does not tell how far held-out images are from training. A square
that turns by 90 degrees is the same image: a held-out combination with such a
*copy* in training needs no composition, and no decoder can learn two values of
a factor apart whose training images are equal (`find_copies`).
"""

import hashlib
import math
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy import ndarray as Array

from tfcomp.config.errors import ConfigError
from tfcomp.config.run_config import RunConfig
from tfcomp.datasets.factors import (
    FactorSpace,
    find_rows,
    number_columns,
    number_rows,
    number_values,
)
from tfcomp.datasets.regions import Region, parse_region

MAX_DRAWS = 1000
SHARES = 16  # of an image of mean weight in a pass
MAX_REPEATS = 64  # of an image in a pass, with `--balance`
MAX_ANALYZED = 4096  # points, where scores are over all (--eval_points=0)
# Families of regions with more or fewer combinations in training.
COVERAGE = re.compile(
    r"(random:)(0?\.\d+(?:,0?\.\d+)*)"
    r"|(uselis:\d+:|orthotopic:)(\d+(?:,\d+)*)"
)
# Rounding moves up by this share of a gray level, or noise would split images
# with pixels halfway between two levels, which sprites at the half have.
SHIFT = 0.1

# Renders combinations [n, F] in parts.
RenderParts = Callable[[Array], Iterable[Array]]
# Groups of values of a factor, an array each, by the factor's name.
Aliases = dict[str, list[Array]]


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
    def subsets(self) -> dict[str, Array]:
        """Masks of ID and of OOD points of the grid, [n] each."""
        return {
            "id": self.is_id,
            "ood": self.is_ood,
        }

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
    held_out = index[is_ood]
    hidden = _find_hidden(space, train_index, held_out)
    if cells is None:
        places = find_rows(index, train_index)
    else:
        # Several combinations of a table may be nearest to one of the grid.
        places = find_rows(every, train)
    points = Points(
        factors=every,
        is_ood=is_ood,
        is_test=~is_ood & (places < 0),
    )

    limit = _choose_limit(eval_points, len(points))
    if len(points) <= limit:
        return Splits(
            train=train,
            points=points,
            hidden=hidden,
            is_complete=cells is None or _is_grid(space, every),
        )
    sample = sample_rows(is_ood, limit)
    return Splits(
        train=train,
        points=points[sample],
        hidden=hidden,
        is_complete=False,
        existing=points,
        is_streamed=eval_points == 0,
    )


def _choose_limit(eval_points: int | None, count: int) -> int:
    """Chooses how many points analyses look at, at most.

    Args:
        eval_points: As in `make_splits`.
        count: The number of points.
    """
    if eval_points is None:
        return count
    if eval_points == 0:
        return MAX_ANALYZED
    return eval_points


def _check_leaks(region: Region, train: Array) -> None:
    """Refuses training examples in the region."""
    is_leak = region.contains(train)
    leaks = train[is_leak]
    if len(leaks):
        first = leaks[0].tolist()
        raise ValueError(
            f"{len(leaks)} training examples lie in the region "
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
        held_out_levels = held_out[:, column]
        train_levels = train[:, column]
        unseen = np.setdiff1d(held_out_levels, train_levels)
        if unseen.size:
            values = factor.values()
            names = map(factor.describe, values[unseen])
            hidden[factor.name] = list(names)
    return hidden


def _is_grid(space: FactorSpace, table: Array) -> bool:
    """Tells whether a table has every combination of the grid, in order."""
    size = math.prod(space.shape)
    if len(table) != size:
        return False
    places = space.to_place(table)
    expected = np.arange(size)
    return np.array_equal(places, expected)


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
    ood_rows = np.flatnonzero(is_ood)
    id_rows = np.flatnonzero(~is_ood)
    lacking = count - len(id_rows)
    num_ood = max(count // 2, lacking)
    num_ood = min(num_ood, len(ood_rows))
    num_id = max(count - num_ood, 1)
    num_id = min(num_id, len(id_rows))

    ood_sample = rng.choice(ood_rows, num_ood, replace=False)
    id_sample = rng.choice(id_rows, num_id, replace=False)
    rows = np.concatenate([ood_sample, id_sample])
    return np.sort(rows)


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
    seeds = [config.training.seed, 0]
    rng = np.random.default_rng(seeds)
    if config.data.coordinates == "grid":
        return draw_cells(
            cells,
            count,
            "num_train",
            rng,
        )

    return _sample_free(
        space,
        region,
        count,
        rng,
    )


def _sample_free(
    space: FactorSpace,
    region: Region,
    count: int,
    rng: np.random.Generator,
) -> Array:
    """Samples points outside of a region, float32 [count, F].

    Args:
        space: The factors.
        region: What is held out.
        count: The number of points.
        rng: The generator.

    Raises:
        ConfigError: If the region leaves no room between grid cells.
    """
    shape = (0, len(space))
    train = np.empty(shape, np.float32)
    num_points = max(count, MAX_DRAWS)
    # The region leaves a grid cell free, but its free volume can be nothing.
    for _ in range(MAX_DRAWS):
        points = space.sample(num_points, rng)
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
    rows = rng.choice(
        len(cells),
        size=count,
        replace=False,
    )
    rows = np.sort(rows)
    return cells[rows]


def weigh_correlated(
    table: Array,
    space: FactorSpace,
    pairs: str,
) -> Array:
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
    ranges = high - low
    unit = (table - low) / ranges

    logs = np.zeros(len(table))  # of inverse weights, which may underflow
    for pair in pairs.split(";"):
        first, second, width = _parse_pair(pair, space)
        distance = unit[:, first] - unit[:, second]
        distance = np.nan_to_num(distance)
        squares = np.square(distance)
        logs += squares / (2 * width**2)
    least = logs.min()
    return np.exp(least - logs)


def _parse_pair(
    pair: str,
    space: FactorSpace,
) -> tuple[int, int, float]:
    """Parses `a,b:s` into two columns and the width s."""
    names = ", ".join(space.names)
    rule = f"must be a,b:0.4 for two of {names}"
    error = ConfigError("correlation", rule, pair)
    match = re.fullmatch(r"([^,:]+),([^,:]+):(\d*\.?\d+)", pair.strip())
    if match is None:
        raise error

    first, second, text = match.groups()
    width = float(text)
    are_factors = first in space.names and second in space.names
    if not are_factors or first == second or width <= 0:
        raise error
    column = space.names.index(first)
    other = space.names.index(second)
    return column, other, width


def repeat_rows(weights: Array) -> Array:
    """Returns rows, sorted, row i about w_i / mean(w) * `SHARES` times."""
    total = np.sum(weights)
    ends = np.cumsum(weights) / total
    count = SHARES * len(ends)
    starts = np.arange(count)
    middles = (starts + 0.5) / count
    rows = np.searchsorted(ends, middles)
    last = len(ends) - 1
    return np.minimum(rows, last)


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
        num_values = int(np.count_nonzero(counts))
        average = len(present) / max(num_values, 1)
        rarity = average / counts[present]
        times[is_present] = np.maximum(times[is_present], rarity)

    repeats = np.rint(times)
    repeats = np.clip(repeats, 1, MAX_REPEATS)
    repeats = repeats.astype(int)
    rows = np.arange(len(table))
    return np.repeat(rows, repeats)


def list_regions(coverage: str) -> list[str]:
    """Lists regions that differ in the share of combinations in training.

        random:.1,.2,.4     training has this share of all combinations; each
                            seed draws its own; larger shares have more
        uselis:8:1,2,4      training combines a block with k others (of n = 8)
        orthotopic:0,1,2    in training at most k factors reach their thresholds

    A region says what is held out: coverage .1 is the region `random:0.9`.

    Args:
        coverage: The text of `--coverage`, as `random:.1,.2,.4`.

    Returns:
        A region for each value, as `random:0.9`, without seeds.

    Raises:
        ConfigError: If the text has another form.

    Example:
        >>> list_regions("uselis:8:1,4")
        ['uselis:8:1', 'uselis:8:4']
    """
    match = COVERAGE.fullmatch(coverage)
    if match is None:
        rule = (
            "must be random:.1,.2 (shares in training), uselis:8:1,2,4 or "
            "orthotopic:0,1,2"
        )
        raise ConfigError("coverage", rule, coverage)
    random, shares, kind, numbers = match.groups()
    if random is None:
        parts = numbers.split(",")
        return [f"{kind}{number}" for number in parts]

    regions = []
    for text in shares.split(","):
        held_out = 1 - float(text)
        regions.append(f"{random}{held_out:.9g}")
    return regions


def add_seed(region: str, seed: int) -> str:
    """Returns the region of a seed.

    Args:
        region: One of `list_regions`.
        seed: Of a training; a random region is drawn by it.
    """
    if region.startswith("random:"):
        return f"{region}:{seed}"
    return region


def remove_seed(region: str, seed: int) -> str:
    """Returns the region that `add_seed` took.

    Args:
        region: What `add_seed` returned.
        seed: The seed that it was given.
    """
    if region.startswith("random:"):
        return region.removesuffix(f":{seed}")
    return region


@dataclass(frozen=True)
class Copies:
    """Equal images of a split.

    Attributes:
        is_copy: Mask of all combinations, [n]: held out, although training has
            an equal image.
        summary: The entry `copies` of `metrics.json`, empty without equal
            images. `num_repeated` counts training combinations whose image
            another one has, too.
        aliases: Values with equal training images wherever all other factors
            are equal, by factor.
    """

    is_copy: Array
    summary: dict[str, Any]
    aliases: Aliases = field(default_factory=dict)


def find_copies(
    render: RenderParts,
    space: FactorSpace,
    splits: Splits,
) -> Copies:
    """Compares held-out and training images, by hashes of their gray levels.

    Args:
        render: From factor values [n, F] to parts of the n images, in order.
        space: The factors.
        splits: Training examples, and all combinations that exist.
    """
    points = splits.all
    is_ood = points.is_ood
    held_out = points.factors[is_ood]
    train_rows = number_rows(splits.train)
    _, first = np.unique(train_rows, return_index=True)
    train = splits.train[first]

    table = np.concatenate([train, held_out])
    numbers = _number_images(render, table)
    num_train = len(train)
    images = numbers[:num_train]
    held_out_images = numbers[num_train:]

    is_copy = is_ood.copy()
    is_copy[is_ood] = np.isin(held_out_images, images)
    counts = _count_equal(images)
    is_repeated = counts > 1
    has_equal = is_copy.any() or is_repeated.any()
    if not has_equal:
        return Copies(is_copy, summary={})

    aliases = _list_aliases(space, train, images)
    summary = {
        "num_copies": int(is_copy.sum()),
        "num_held_out": int(is_ood.sum()),
        "num_repeated": int(is_repeated.sum()),
        "aliases": _name_values(space, aliases),
    }
    return Copies(is_copy, summary, aliases)


def _count_equal(numbers: Array) -> Array:
    """Counts how often each of the numbers occurs, [n]."""
    counts = np.bincount(numbers)
    return counts[numbers]


def _number_images(render: RenderParts, table: Array) -> Array:
    """Returns equal numbers for equal images, [n], by hashes of 64 bits."""
    hashes: list[int] = []
    for images in render(table):
        hashes += map(_hash_image, images)
    return number_values(np.array(hashes, np.uint64))


def _hash_image(image: Array) -> int:
    """Hashes gray levels, 255 of them from 0 to 1, [H, W, C] or [n, H, W, C].

    So images are equal up to half a level: noise of 1e-6 does not hide a copy.
    """
    levels = 255 * image.astype(np.float64)
    rounded = np.rint(levels + SHIFT)
    pixels = rounded.astype(np.int32)
    if pixels.ndim == 3:
        digest = _digest(pixels.data)
    else:
        # All images of a combination, in any order. Digests are sorted, since
        # NumPy takes .1 s to sort images of 64 x 64 pixels.
        digests = {_digest(part.data) for part in pixels}
        digest = _digest(b"".join(sorted(digests)))
    return int.from_bytes(digest, "little")


def _digest(content: Any) -> bytes:
    """Hashes bytes to 8 bytes."""
    code = hashlib.blake2b(content, digest_size=8)
    return code.digest()


def _list_aliases(
    space: FactorSpace,
    train: Array,
    images: Array,
) -> Aliases:
    """Returns values with equal images wherever all else is equal.

    Args:
        space: The factors.
        train: Distinct training combinations, [n, F].
        images: Equal numbers for equal images, [n].
    """
    places = number_columns(train)
    # The hash of a row is the sum of hashes of its values, modulo 2^64.
    shape = (places.max() + 1, len(space))
    rng = np.random.default_rng(0)
    codes = rng.integers(2**64, size=shape, dtype=np.uint64)
    hashes = np.take_along_axis(codes, places, axis=0)  # [n, F]
    totals = hashes.sum(axis=1)

    aliases: Aliases = {}
    for column, factor in enumerate(space):
        others = totals - hashes[:, column]
        groups = _group_values(
            values=train[:, column],
            context=number_values(others),
            images=images,
        )
        if groups:
            aliases[factor.name] = groups
    return aliases


def _group_values(
    values: Array,
    context: Array,
    images: Array,
) -> list[Array]:
    """Groups the values of one factor by equal images.

    Args:
        values: The value in each training combination, [n].
        context: Equal numbers where all other factors are equal, [n].
        images: Equal numbers for equal images, [n].

    Returns:
        Groups whose images are equal in all contexts that have both values.
    """
    pairs = np.stack([context, images], axis=1)
    context_images = number_rows(pairs)
    is_equal = _count_equal(context_images) > 1
    levels = np.unique(values[is_equal])
    rows = np.isin(values, levels)
    if not rows.any():
        return []

    values = values[rows]
    context = context[rows]
    context_images = context_images[rows]
    places = np.searchsorted(levels, values)
    num_equal = _count_pairs(context_images, places)
    num_shared = _count_pairs(context, places)
    is_apart = num_shared > num_equal
    is_related = (num_equal > 0) & ~is_apart

    groups = []
    for group in _connect(is_related):
        within = np.ix_(group, group)
        if not is_apart[within].any():
            groups.append(levels[group])
    return groups


def _count_pairs(groups: Array, levels: Array) -> Array:
    """Counts the groups that contain both levels, [V, V]."""
    from scipy import sparse

    ones = np.ones(len(levels), np.int64)
    places = (groups, levels)
    table = sparse.csr_array((ones, places))
    products = table.T @ table
    return products.toarray()


def _connect(is_related: Array) -> list[list[int]]:
    """Returns the groups of connected levels that have two or more."""
    from scipy.sparse import csgraph

    count, labels = csgraph.connected_components(
        is_related,
        directed=False,
    )
    groups = [np.flatnonzero(labels == label) for label in range(count)]
    return [group.tolist() for group in groups if len(group) > 1]


def _name_values(
    space: FactorSpace,
    aliases: Aliases,
) -> dict[str, list[str]]:
    """Returns the groups in words, as `0 = 180`."""
    named: dict[str, list[str]] = {}
    for name, groups in aliases.items():
        describe = space[name].describe
        named[name] = [" = ".join(map(describe, group)) for group in groups]
    return named
