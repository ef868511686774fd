"""Columns of classes, made into factors, with checks of all that is given."""

import dataclasses
import re
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy import ndarray as Array

from tfcomp.config.settings import CONTROLS
from tfcomp.datasets.factors import Factor
from tfcomp.datasets.table_columns import (
    TableError,
    number_cells,
    number_close,
    split_head,
)

KINDS = ("ordered", "periodic", "categorical", "continuous")
SPARSE = 1000  # classes above must be present, at least half of them
MAX_TEXT = 100  # characters of a name
MAX_SHOWN = 10  # values in an error
MAX_SIZE = 10**5  # classes of a factor
FACTOR_NAME = r"""[^\s,:/&|'"]+"""
EVEN = 1e-4  # of the least step: values that differ less are evenly spaced


@dataclass
class Description:
    """A column of a table, and what a user says of it.

    Attributes:
        name: The name of the factor.
        kind: As `FactorTable` takes it; "" chooses by `levels`.
        levels: Names of the classes, or none.
        values: Values of the classes, or of the images; None for the classes.
        is_by_image: True for a value for each image, False for each level.
        unit: Unit of the values.
        size: The number of classes; 0 for those that occur.
        numbers: Its classes [n], or cells (a pandas column) to be numbered.
    """

    name: str
    kind: str
    levels: tuple[str, ...]
    values: Array | None
    is_by_image: bool
    unit: str
    size: int
    numbers: Any


@dataclass(frozen=True, eq=False)
class FactorColumn:
    """A factor, and its value in each image.

    Attributes:
        factor: The factor.
        values: Its values, [n].
        origin: What was subtracted from the values that a user gave.
    """

    factor: Factor
    values: Array
    origin: float = 0.0


def check_classes(classes: Any, num_images: int | None) -> None:
    """Checks the shape and type of classes, and their number.

    Args:
        classes: The classes, which should be [n, F]; or a data frame.
        num_images: The number of images, n; None without images.

    Raises:
        TableError: If they break a rule.
    """
    if classes.ndim != 2 or not classes.size:
        rule = "must be [n, F], classes[:, None] for one factor"
        raise TableError("classes", rule, list(classes.shape))
    if num_images not in (None, len(classes)):
        rule = f"must have a row for each of the {num_images} images"
        raise TableError("classes", rule, len(classes))
    if isinstance(classes, Array) and classes.dtype.kind not in "buif":
        rule = "must be integers, names of classes go to levels"
        raise TableError("classes", rule, classes.dtype)


def describe_columns(
    classes: Any,
    options: dict[str, Any],
    ignore: Collection[str] = (),
) -> dict[str, Description]:
    """Checks the options of a `FactorTable`, and sorts them by column.

    Args:
        classes: The classes of images, [n, F], or a data frame.
        options: `names`, `sizes`, `kinds`, `values`, `levels` and `units` as
            `FactorTable` takes them, each may be None.
        ignore: Names of columns that are left out.

    Returns:
        What is said of each other column, by the name of the factor.

    Raises:
        TableError: For a list of another length, and texts that are no names.
    """
    count = classes.shape[1]
    values = options["values"]
    is_by_image = getattr(values, "shape", None) == classes.shape
    if is_by_image:
        options = options | {"values": values.T}
    if options["names"] is None:
        names = [f"factor_{number}" for number in range(count)]
        options = options | {"names": names}
    lists = {}
    for field in ("names", "kinds", "levels", "values", "units", "sizes"):
        lists[field] = _read_list(field, options[field], count)

    cells = classes
    if not isinstance(classes, Array):
        cells = classes.iloc
    ignored = {split_head(name)[0] for name in ignore}
    left_out = set()
    descriptions: dict[str, Description] = {}
    for column in range(count):
        name, kind = split_head(lists["names"][column])
        if name in ignored:
            left_out.add(name)
            continue

        _check_name(name, descriptions)
        unit = str(lists["units"][column] or "")
        _read_texts("names and units", [name, unit])
        descriptions[name] = Description(
            name=name,
            kind=str(lists["kinds"][column] or kind),
            levels=_read_levels(name, lists["levels"][column]),
            values=_read_numbers(name, lists["values"][column]),
            is_by_image=is_by_image,
            unit=unit,
            size=_read_size(name, lists["sizes"][column]),
            numbers=cells[:, column],
        )

    unknown = sorted(ignored - left_out)
    if unknown or not descriptions:
        rule = f"must be some of {', '.join([*left_out, *descriptions])}"
        raise TableError("ignore", rule, ", ".join(unknown) or "all")
    return descriptions


def _check_name(name: str, others: Collection[str]) -> None:
    """Refuses a name that regions cannot hold, or that is taken."""
    if name in others:
        rule = f"must differ (--ignore={name} leaves both out)"
        raise TableError("names", rule, f"{name} twice")
    if re.fullmatch(FACTOR_NAME, name) is None:
        rule = "must be words without , : / & | and quotes"
        raise TableError("names", rule, ascii(name))


def _read_list(field: str, given: Any, count: int) -> list[Any]:
    """Reads a list with an entry for each factor; without one, of None."""
    if given is None:
        return [None] * count
    _check_list(field, given)
    if len(given) != count:
        rule = f"must have one entry for each of the {count} factors"
        raise TableError(field, rule, len(given))
    return list(given)


def _check_list(field: str, given: Any) -> None:
    has_length = hasattr(given, "__len__") and not isinstance(given, str)
    if not has_length or not getattr(given, "ndim", 1):
        raise TableError(field, "must be a list", repr(given))


def _read_levels(name: str, given: Any) -> tuple[str, ...]:
    """Reads the names of classes, which must differ."""
    if given is None:
        return ()
    field = f"levels of {name}"
    levels = _read_texts(field, given)
    if len({*levels}) < len(levels):
        raise TableError(field, "must differ", ", ".join(levels))
    return levels


def _read_texts(field: str, given: Any) -> tuple[str, ...]:
    """Reads short texts without characters that a terminal interprets."""
    _check_list(field, given)
    texts = tuple(str(text) for text in given)
    for text in texts:
        if len(text) > MAX_TEXT or CONTROLS.search(text):
            rule = f"must have at most {MAX_TEXT} printable characters"
            raise TableError(field, rule, ascii(text[:MAX_TEXT]))
    return texts


def _read_size(name: str, size: Any) -> int:
    """Reads how many classes a factor has, 0 if it is not given."""
    if size is None:
        return 0
    is_number = isinstance(size, int | float | np.number)
    if not is_number or not 1 <= size <= MAX_SIZE or size % 1:
        rule = f"of {name} must be an integer from 1 to {MAX_SIZE:,}"
        raise TableError("sizes", rule, size)
    return int(size)


def _read_numbers(name: str, given: Any) -> Array | None:
    if given is None:
        return None
    numbers = np.asarray(given)
    if numbers.dtype.kind not in "buif" or numbers.ndim != 1:
        got = f"{numbers.dtype} {list(numbers.shape)}"
        raise TableError("values", f"of {name} must be a list of numbers", got)
    return numbers.astype(float)


def make_factor(description: Description, bins: int) -> FactorColumn:
    """Makes a factor of a column.

    Args:
        description: The column, and what is said of it.
        bins: The default number of bins of a continuous factor.

    Raises:
        TableError: If classes or the description break a rule.
    """
    kind, _, number = description.kind.partition(":")
    if not isinstance(description.numbers, Array):
        description = _number_cells(description, kind)
    if not kind:
        has_names = description.levels and description.values is None
        kind = "categorical" if has_names else "ordered"
    if kind not in KINDS:
        rule = f"of {description.name} must be one of {KINDS}"
        raise TableError("kinds", rule, kind)
    if kind == "continuous":
        return _make_continuous(description, number or str(bins))
    return _make_discrete(description, kind, number)


def _number_cells(description: Description, kind: str) -> Description:
    """Numbers the cells of a column, which become its classes."""
    cells = description.numbers.rename(description.name)
    levels = number_cells(cells, kind)
    names = _read_texts(f"levels of {description.name}", levels.names)
    return dataclasses.replace(
        description,
        numbers=levels.index,
        values=levels.values,
        levels=names,
        unit=description.unit or levels.unit,
    )


def _make_continuous(description: Description, size: str) -> FactorColumn:
    """Makes a factor with evenly spaced bins, whose number is a text."""
    name = description.name
    if description.levels:  # classes in the order of the file
        rule = f"of {name} must be numbers where kinds has continuous"
        listed = ", ".join(description.levels)
        raise TableError("values", rule, listed[:MAX_TEXT])

    values = np.asarray(description.numbers, float)
    if description.values is not None:
        values = description.values
        if not description.is_by_image:
            index = _read_classes(description)
            values = _list_values(description, index, period=0)[index]
    origin = _find_origin(values, EVEN * np.ptp(values))
    values = values - origin
    low = values.min()
    high = values.max()
    if not np.isfinite(values).all() or low == high:
        rule = f"of {name} must be finite and differ"
        raise TableError("values", rule, f"{low} to {high}")
    if not size.isdecimal() or not 2 <= int(size) <= SPARSE:
        raise TableError("bins", f"of {name} must be 2 to {SPARSE}", size)

    factor = Factor(
        name,
        size=int(size),
        low=float(np.float32(low)),
        high=float(np.float32(high)),
        unit=description.unit,
        continuous=True,
    )
    return FactorColumn(factor, values, origin)


def _make_discrete(
    description: Description,
    kind: str,
    number: str,
) -> FactorColumn:
    """Makes an ordered, periodic or categorical factor.

    Args:
        description: The column.
        kind: The kind of the factor.
        number: The text of its period; empty if it is not given.
    """
    name = description.name
    period = 0.0
    if kind == "periodic" and number:
        period = _read_period(name, number)
    index = _read_classes(description)
    values = _list_values(description, index, period)
    steps = np.diff(values)
    origin = _find_origin(values, steps.min(initial=np.inf))
    values = values - origin
    _check_rising(name, values)
    low = float(values[0])
    if len(values) == 1:  # `FactorTable` leaves it out
        factor = Factor(
            name,
            1,
            low,
            high=low + 1,
        )
        return FactorColumn(factor, values[index])

    is_periodic = kind == "periodic"
    high = float(values[-1])
    if is_periodic:
        high = _find_end(name, values, period)
    even = np.linspace(
        low,
        high,
        len(values),
        endpoint=not is_periodic,
    )
    levels: tuple[float, ...] = ()
    if not _is_even(values, even):
        levels = tuple(values.tolist())
    factor = Factor(
        name,
        size=len(values),
        low=low,
        high=high,
        unit=description.unit,
        periodic=is_periodic,
        categorical=kind == "categorical",
        levels=levels,
        names=description.levels,
    )
    return FactorColumn(factor, factor.values()[index], origin)


def _find_origin(values: Array, precision: float) -> float:
    """Finds what must be subtracted from values, mostly 0.

    Models get 32-bit numbers, in which times such as 1,700,000,000 and one
    minute later are equal.

    Args:
        values: The values of a factor.
        precision: The smallest difference that counts.
    """
    if not np.isfinite(values).all():
        return 0.0  # which is refused later
    largest = np.abs(values).max()
    is_far = largest > 8 * np.ptp(values)
    is_lost = largest * np.finfo(np.float32).eps > precision
    if is_far and is_lost:
        return float(values.min())
    return 0.0


def _list_values(
    description: Description,
    index: Array,
    period: float,
) -> Array:
    """Lists the values of the classes of a factor, [size].

    Args:
        description: The factor's column and its settings.
        index: The class of each image, [n].
        period: The period, which is divided among the classes; 0 if it is
            unknown or there is none.
    """
    name = description.name
    values = description.values
    size = max(int(index.max()) + 1, len(description.levels))
    if values is None:
        size = max(size, description.size)
        step = period / size if period else 1.0
        values = np.arange(size) * step
    elif description.is_by_image:
        values = _find_values(name, values, index)
    else:
        values = values[~np.isnan(values)]  # lists are padded
    if len(values) < size:
        rule = f"of {name} must be given for all {size} classes"
        raise TableError("values", rule, len(values))

    sizes = {
        "levels": len(description.levels),
        "sizes": description.size,
    }
    for field, size in sizes.items():
        if size not in (0, len(values)):
            rule = f"of {name} must fit its {len(values)} classes"
            raise TableError(field, rule, size)
    return values


def _find_values(
    name: str,
    values: Array,
    index: Array,
) -> Array:
    """Finds the value of each class in the values of images, [n]."""
    is_equal = number_close(values).index == index
    if not is_equal.all():
        row = int(is_equal.argmin())
        rule = f"of {name} must be one for each class, and rise with them"
        got = f"{values[row]} for class {index[row]} (image {row})"
        raise TableError("values", rule, got)
    _, first = np.unique(index, return_index=True)
    return values[first]


def _find_end(name: str, values: Array, period: float) -> float:
    """Finds the value of a periodic factor that equals its first one.

    Args:
        name: The name of the factor, for errors.
        values: Its values, rising, [size].
        period: Its period; 0 if it is one step more than even values.
    """
    low = float(values[0])
    high = float(values[-1])
    if period:
        end = low + period
        if end < high - 1e-6 * abs(high):
            rule = f"of {name} must have a period of at least {high - low:g}"
            raise TableError("kinds", rule, f"{period:g}")
        return end

    even = np.linspace(low, high, len(values))
    if not _is_even(values, even):
        rule = f"of {name} must have the period of its uneven values"
        raise TableError("kinds", f"{rule} (periodic:360)", "periodic")
    step = (high - low) / (len(values) - 1)
    return high + step


def _is_even(values: Array, even: Array) -> bool:
    tolerance = EVEN * np.diff(values).min()
    return np.allclose(
        values,
        even,
        rtol=0,
        atol=tolerance,
    )


def _read_classes(description: Description) -> Array:
    """Reads a column of classes as integers from 0, [n]."""
    name = description.name
    numbers = description.numbers
    is_class = (numbers >= 0) & (numbers % 1 == 0)  # NaN and infinity are none
    if not is_class.all():
        row = int(is_class.argmin())
        rule = f"of {name} must be integers from 0 unless continuous"
        raise TableError("classes", f"{rule} (image {row})", numbers[row])

    largest = numbers.max()
    num_classes = len(np.unique(numbers))
    if largest >= max(SPARSE, 2 * num_classes):
        rule = f"of {name} must be counted from 0 (np.unique)"
        raise TableError("classes", rule, largest)
    return numbers.astype(np.int64)


def _check_rising(name: str, values: Array) -> None:
    """Refuses values that do not rise in float32, in which models get them."""
    steps = np.diff(values.astype(np.float32))
    is_rising = (steps > 0).all()
    if not is_rising or not np.isfinite(values).all():
        rule = f"of {name} must be finite and rise with its classes"
        raise TableError("values", rule, values[:MAX_SHOWN].tolist())


def _read_period(name: str, text: str) -> float:
    """Reads the number behind `periodic:`."""
    try:
        period = float(text)
    except ValueError:
        period = np.nan
    if not 0 < period < np.inf:
        rule = f"of {name} must have a positive number as its period"
        raise TableError("kinds", rule, text)
    return period
