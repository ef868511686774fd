"""Factor spaces: named factors of variation, their values and their grid.

A factor table is an array [n, F] of factor *values* in the factor's unit
(pixels, degrees), columns in the order of the space. An absent factor (a
stripe has only one coordinate) is NaN.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace

import numpy as np
from numpy import ndarray as Array

MAX_DIRECTIONS = 16  # ordered factors whose geometry is measured
CLOSE = 0.01  # of the smallest step: a number within it is a grid value


@dataclass(frozen=True)
class Factor:
    """One factor of variation with `size` values, mostly equally spaced.

    Attributes:
        name: Name used in regions and plots.
        size: The number of values, at least 1.
        low: First value.
        high: Last value; for a periodic factor the value that equals `low`
            again, `low` plus the period. It is not on the grid, unless
            `levels` end there.
        unit: Unit of the values, as `px`; "" if there is none.
        periodic: True if `high` is the same as `low`.
        categorical: True if the values are only names: no order, no
            derivative.
        levels: The values, rising, where they are not equally spaced.
        names: Names of the values, as `heart`, or none.
        continuous: True if points lie between the values, so that a bound of
            a region is not meant to be one of them.

    Raises:
        ValueError: If sizes do not fit, or values do not rise.

    Example:
        >>> Factor("angle", 4, 0.0, 360.0, periodic=True).values().tolist()
        [0.0, 90.0, 180.0, 270.0]
    """

    name: str
    size: int
    low: float
    high: float
    unit: str = ""
    periodic: bool = False
    categorical: bool = False
    levels: tuple[float, ...] = ()
    names: tuple[str, ...] = ()
    # Models that were saved earlier do not have it.
    continuous: bool = field(
        default=False,
        compare=False,
    )

    def __post_init__(self) -> None:
        for name in ("levels", "names"):
            # Lists where they come from JSON.
            items = tuple(getattr(self, name))
            object.__setattr__(self, name, items)
            if items and len(items) != self.size:
                rule = f"must have {self.size} levels and names, or none"
                raise ValueError(f"the factor {self.name} {rule}, got {items}")

        steps = np.diff(self.levels)
        if (steps <= 0).any():
            raise ValueError(f"levels of {self.name} must rise")
        is_range = self.low < self.high
        if self.size < 1 or not is_range:
            raise ValueError(
                f"the factor {self.name} must have a size of at least 1 and "
                f"low < high, got {self.size}, {self.low}, {self.high}"
            )

    def values(self) -> Array:
        """All grid values, float32 [size]."""
        if self.levels:
            return np.array(self.levels, np.float32)
        values = np.linspace(
            self.low,
            self.high,
            self.size,
            endpoint=not self.periodic,
        )
        return values.astype(np.float32)

    @property
    def step(self) -> float:
        """Distance of neighboring grid values, the mean one if they differ."""
        num_steps = max(self.size - 1, 1)
        if self.levels:
            first = self.levels[0]
            last = self.levels[-1]
            return (last - first) / num_steps
        if self.periodic:
            num_steps = self.size
        return (self.high - self.low) / num_steps

    @property
    def cycle(self) -> int:
        """Grid steps once around the period; 0 if there is no period.

        More than `size` where values leave a part of the period out.
        """
        if not self.periodic:
            return 0
        if not self.levels:
            return self.size
        if self.size == 1:
            return 1
        last = self.levels[-1]
        gap = self.high - last
        steps_back = round(gap / self.step)
        steps_back = max(1, steps_back)
        return self.size - 1 + steps_back

    @property
    def is_closed(self) -> bool:
        """True if the last value is a neighbor of the first one."""
        return self.periodic and self.cycle == self.size

    @property
    def label(self) -> str:
        """Axis label, as `x (px)`."""
        if not self.unit:
            return self.name
        return f"{self.name} ({self.unit})"

    def describe(self, value: float) -> str:
        """Returns the name of a value, or a number that a region accepts.

        Args:
            value: A value of the factor, in its unit.
        """
        if self.names:
            values = np.array(value)
            level = self.to_index(values)
            return self.names[int(level)]

        index = self.find_value(value)
        for digits in range(4, 9):
            text = f"{value:.{digits}g}"
            rounded = float(text)
            if self.find_value(rounded) == index:
                return text
        return f"{value:.9g}"  # which tells apart all numbers of 32 bits

    def describe_period(self) -> str:
        """Describes which value equals the first one, as `360 = 0 degrees`."""
        return f"{self.high:.4g} = {self.low:.4g} {self.unit}".strip()

    def name_level(self, index: int) -> str:
        """Returns name and grid value, as `shape heart` or `x 3`.

        Args:
            index: The index of the value on the grid.
        """
        values = self.values()
        value = float(values[index])
        return f"{self.name} {self.describe(value)}"

    @property
    def is_named_by_numbers(self) -> bool:
        """True if a name is a number, as of digits or instances."""
        return any(name.isdecimal() for name in self.names)

    def find_value(self, value: float) -> int:
        """Finds the grid value that a rounded number is meant to be.

        Args:
            value: A number within a hundredth of a step of a grid value.

        Returns:
            The index of the value, or -1.
        """
        values = self.values()
        values = values.astype(np.float64)
        steps = np.diff(values)
        step = steps.min(initial=self.step)
        distances = np.abs(values - value)
        nearest = int(distances.argmin())
        if distances[nearest] <= CLOSE * step:
            return nearest
        return -1

    def to_index(self, values: Array) -> Array:
        """Finds the nearest grid index of each value, int [n].

        Args:
            values: Values [n]; NaN where the factor is absent, whose index
                is -1.
        """
        values = np.asarray(values)
        if self.levels:
            index = self._search_levels(values)
        else:
            index = self._round_steps(values)
        is_absent = np.isnan(values) | np.isnan(index)
        places = np.where(is_absent, -1, index)
        return places.astype(int)

    def _round_steps(self, values: Array) -> Array:
        """Finds the nearest of equally spaced values; NaN where absent."""
        distances = values - self.low
        steps = np.round(distances / self.step)
        if self.periodic:
            steps = np.mod(steps, self.size)
        last = self.size - 1
        return np.clip(steps, 0, last)

    def _search_levels(self, values: Array) -> Array:
        """Finds the nearest level, by the middles between neighbors."""
        if self.periodic:
            values = self._wrap(values)
        levels = self.values()
        levels = levels.astype(np.float64)
        sums = levels[1:] + levels[:-1]
        middles = sums / 2
        # A table of values by levels would be large.
        return np.searchsorted(middles, values)

    def _wrap(self, values: Array) -> Array:
        """Moves values outside of the levels by periods to the nearest one."""
        levels = self.values()
        is_below = values < levels[0]
        is_above = values > levels[-1]
        is_outside = is_below | is_above

        start, period = self.find_wrap()
        offsets = np.mod(values - start, period)
        return np.where(is_outside, start + offsets, values)

    def find_wrap(self) -> tuple[float, float]:
        """Finds the middle between last and first value, and the period."""
        values = self.values()
        last = float(values[-1])
        gap = self.high - last
        middle = self.low - gap / 2
        period = self.high - self.low
        return middle, period


@dataclass(frozen=True)
class FactorSpace:
    """The product of several factors; its points are factor combinations.

    Attributes:
        factors: The factors, in the order of the columns of a factor table.
    """

    factors: tuple[Factor, ...]

    def __iter__(self) -> Iterator[Factor]:
        return iter(self.factors)

    def __len__(self) -> int:
        return len(self.factors)

    def __getitem__(self, name: str) -> Factor:
        column = self.names.index(name)
        return self.factors[column]

    @property
    def ordered(self) -> tuple[int, ...]:
        """Columns of the factors that have an order and derivatives."""
        columns = enumerate(self)
        return tuple(n for n, factor in columns if not factor.categorical)

    @property
    def directions(self) -> tuple[int, ...]:
        """Columns along which stages are differentiated: the ordered factors.

        None of more than `MAX_DIRECTIONS`: each takes a pass through the model.
        """
        if len(self.ordered) > MAX_DIRECTIONS:
            return ()
        return self.ordered

    @property
    def names(self) -> tuple[str, ...]:
        """Factor names in column order."""
        return tuple(factor.name for factor in self)

    @property
    def shape(self) -> tuple[int, ...]:
        """Grid size of every factor."""
        return tuple(factor.size for factor in self)

    def grid(self) -> Array:
        """All combinations, float32 [prod(shape), F], last factor fastest."""
        values = [factor.values() for factor in self]
        axes = np.meshgrid(*values, indexing="ij")
        columns = [axis.ravel() for axis in axes]
        return np.stack(columns, axis=1)

    def to_index(self, table: Array) -> Array:
        """Finds the nearest grid indices of a factor table.

        Args:
            table: Factor values, [n, F].

        Returns:
            Indices, int [n, F]; -1 where a factor is absent.
        """
        columns = map(Factor.to_index, self, table.T)
        return np.stack(list(columns), axis=1)

    def name_values(self, table: Array) -> dict[str, Array]:
        """Returns columns of a factor table, with names of levels.

        Args:
            table: Factor values, [n, F].
        """
        columns = {}
        for number, factor in enumerate(self):
            column = table[:, number]
            if factor.names:
                names = list(map(factor.describe, column))
                column = np.array(names)
            columns[factor.name] = column
        return columns

    def name_point(self, index: Sequence[int]) -> str:
        """Returns a combination in words, as `shape heart, x 3`.

        Args:
            index: The index of the value of each factor, [F].
        """
        levels = map(Factor.name_level, self, index)
        return ", ".join(levels)

    def to_place(self, table: Array) -> Array:
        """Finds the row of the grid of each combination.

        Args:
            table: Factor values, [n, F].

        Returns:
            Rows, int [n]; -1 where a factor is absent.
        """
        index = self.to_index(table)
        is_absent = (index < 0).any(axis=1)
        present = np.maximum(index, 0)
        columns = present.T
        places = np.ravel_multi_index(columns, self.shape)
        return np.where(is_absent, -1, places)

    def draw(
        self,
        count: int,
        rng: np.random.Generator,
    ) -> Array:
        """Samples random combinations of grid values.

        Args:
            count: The number of combinations.
            rng: The generator.

        Returns:
            Factor values, float32 [count, F].
        """
        columns = [rng.choice(factor.values(), count) for factor in self]
        return np.stack(columns, axis=1)

    def sample(
        self,
        count: int,
        rng: np.random.Generator,
    ) -> Array:
        """Samples uniform points; categories have values of the grid.

        Args:
            count: The number of points.
            rng: The generator.

        Returns:
            Factor values, float32 [count, F].
        """
        low = [factor.low for factor in self]
        high = [factor.high for factor in self]
        shape = (count, len(self))
        points = rng.uniform(low, high, size=shape)

        for column, factor in enumerate(self):
            if factor.categorical:
                levels = factor.values()
                points[:, column] = rng.choice(levels, count)
        return points.astype(np.float32)

    def to_dict(self) -> dict:
        """Plain data from which `from_dict` makes an equal space."""
        factors = [asdict(factor) for factor in self]
        return {"factors": factors}

    @classmethod
    def from_dict(cls, data: dict) -> "FactorSpace":
        """Restores a space: the inverse of `to_dict`.

        Args:
            data: The result of `to_dict`, which may have been JSON.
        """
        factors = [Factor(**fields) for fields in data["factors"]]
        return cls(tuple(factors))


def number_values(values: Array) -> Array:
    """Numbers values by their place among the sorted, distinct ones, [n]."""
    _, places = np.unique(values, return_inverse=True)
    return places


def number_columns(table: Array) -> Array:
    """Numbers the values of each column, [n, F]."""
    columns = [number_values(column) for column in table.T]
    return np.stack(columns, axis=1)


def number_rows(table: Array) -> Array:
    """Numbers the rows of [n, F] by their place among the sorted ones, [n].

    NaN equals NaN, unlike in `np.unique` over rows.
    """
    count = len(table)
    rows = np.zeros(count, np.int64)
    for column in table.T:
        places = number_values(column)
        last = places.max(initial=0)
        num_places = last + 1
        pairs = rows * num_places + places
        rows = number_values(pairs)
    return rows


def find_rows(asked: Array, table: Array) -> Array:
    """Finds rows among the rows of a table; NaN equals NaN.

    Args:
        asked: Rows, [n, F].
        table: The rows that are searched, [m, F].

    Returns:
        Places from 0 to m - 1, of equal rows the last; -1 where a row is
        absent, [n].
    """
    joined = np.concatenate([table, asked])
    numbers = number_rows(joined)
    count = len(table)
    places = np.full(len(joined), -1)
    places[numbers[:count]] = np.arange(count)
    return places[numbers[count:]]


def make_categories(
    name: str,
    levels: Sequence[float],
) -> Factor:
    """Makes a categorical factor of at least two values.

    Args:
        name: The name of the factor.
        levels: Its values, in any order.
    """
    rising = sorted(map(float, levels))
    return Factor(
        name,
        size=len(rising),
        low=rising[0],
        high=rising[-1],
        categorical=True,
        levels=tuple(rising),
    )


def make_pixel_space(grid_size: int) -> FactorSpace:
    """Makes positions: `x` and `y` from 0 to `grid_size` - 1 px."""
    last = float(grid_size - 1)
    x = Factor(
        "x",
        size=grid_size,
        low=0.0,
        high=last,
        unit="px",
    )
    y = replace(x, name="y")
    return FactorSpace((x, y))


def parse_groups(
    spec: str,
    space: FactorSpace,
) -> list[list[int]]:
    """Parses groups of factors into their columns.

    Args:
        spec: As `x_a+y_a,x_b+y_b`; if empty, each factor is a group.
        space: The factors.

    Raises:
        ValueError: If a factor is not named once.
    """
    if not spec:
        return [[column] for column in range(len(space))]

    names = re.split("[,+]", spec)
    if sorted(names) != sorted(space.names):
        factors = ", ".join(space.names)
        raise ValueError(
            f"must name each factor once ({factors}), as in x_a+y_a,x_b+y_b"
        )

    groups = []
    for text in spec.split(","):
        members = text.split("+")
        columns = map(space.names.index, members)
        groups.append(list(columns))
    return groups
