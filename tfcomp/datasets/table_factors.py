"""Columns of classes, made into factors."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tfcomp.datasets import table_checks
from tfcomp.datasets.factors import Factor
from tfcomp.datasets.table_checks import SPARSE, TableError

KINDS = ("ordered", "periodic", "categorical", "continuous")
CONTINUOUS = "continuous"  # with `:16` for 16 bins
UNEVEN = 0.1  # of the least step: steps that differ more tell no period
ROUNDING = 1e-7  # of the range: closer values differ by rounding alone


@dataclass(frozen=True, eq=False)
class FactorColumn:
    """A factor, and what it is in each image.

    Attributes:
        factor: The factor.
        index: Its level in each image, int [n]; of a continuous factor the
            nearest one.
        values: Its value in each image, [n].
        is_continuous: True if values lie between levels.
    """

    factor: Factor
    index: np.ndarray
    values: np.ndarray
    is_continuous: bool


def make_factors(
    classes: np.ndarray, num_images: int, options: dict[str, Any], bins: int
) -> list[FactorColumn]:
    """Makes a factor of each column of classes.

    Args:
        classes: The classes of images, [n, F].
        num_images: The number of images, n.
        options: `values`, `names`, `sizes`, `kinds`, `levels` and `units` as
            `FactorTable` takes them, each may be None.
        bins: The default number of bins of a continuous factor.

    Raises:
        TableError: If classes or options break a rule.
    """
    table_checks.check_shape(classes, num_images)
    num_factors = classes.shape[1]
    options = dict(options)
    if options["names"] is None:
        options["names"] = [f"factor_{i}" for i in range(num_factors)]
    is_by_image = getattr(options["values"], "shape", None) == classes.shape
    if is_by_image:
        options["values"] = options["values"].T
    rows = _transpose(options, num_factors)
    names = [str(row["names"]) for row in rows]
    table_checks.check_names(names)
    table_checks.check_texts("units", [str(row["units"] or "") for row in rows])

    columns = []
    for number, row in enumerate(rows):
        numbers = classes[:, number]
        kind, _, size = str(row["kinds"]).partition(":")
        if kind == CONTINUOUS:
            size = size or str(bins)
            columns.append(_make_continuous(numbers, row, is_by_image, size))
        else:
            index = table_checks.check_classes(numbers, number)
            columns.append(_make_ordered(index, row, is_by_image))
    index = np.stack([column.index for column in columns], axis=1)
    table_checks.check_one_hot(names, index)
    return columns


def set_kinds(
    names: Sequence[str] | None,
    kinds: Sequence[str] | None,
    factors: Sequence[str],
) -> list[str | None]:
    """Lists the kinds of all columns; `factors` may set some.

    Args:
        names: The names of all columns.
        kinds: Their kinds, or None.
        factors: Names of some columns, also with a kind as `x:continuous`.
    """
    if names is None:
        raise TableError("names", "must be given to name factors", None)
    by_name: dict[str, str | None] = dict.fromkeys(names)
    by_name |= dict(zip(names, kinds or (), strict=False))
    for factor in factors:
        name, _, kind = factor.partition(":")
        if name not in by_name:
            rule = f"must be among {', '.join(map(str, names)) or 'none'}"
            raise TableError("factors", rule, name)
        if kind:
            by_name[name] = kind
    return list(by_name.values())


def _transpose(options: dict[str, Any], count: int) -> list[dict[str, Any]]:
    """Turns lists by option into a dictionary of options for each factor."""
    rows: list[dict[str, Any]] = [dict.fromkeys(options) for _ in range(count)]
    for field, given in options.items():
        if given is None:
            continue
        table_checks.check_list(field, "must be a list", given)
        if len(given) != count:
            rule = f"must have one entry for each of the {count} factors"
            raise TableError(field, rule, len(given))
        for row, entry in zip(rows, given, strict=True):
            row[field] = entry
    return rows


def _make_continuous(
    numbers: np.ndarray, row: dict[str, Any], is_by_image: bool, size: str
) -> FactorColumn:
    """Makes a factor with evenly spaced bins."""
    name = str(row["names"])
    if row["levels"] is not None:  # classes in the order of the file
        rule = f"of {name} must be numbers where kinds has continuous"
        raise TableError("values", rule, str(row["levels"])[:100])

    values = np.asarray(numbers, float)
    if row["values"] is not None:
        values = np.asarray(row["values"], float)
        if not is_by_image:
            values = values[table_checks.check_classes(numbers, 0)]
    if not np.isfinite(values).all() or np.ptp(values) == 0:
        got = "NaN" if np.isnan(values).any() else values[0]
        raise TableError("values", f"of {name} must be finite and differ", got)
    if not size.isdecimal() or not 2 <= int(size) <= SPARSE:
        raise TableError("bins", f"of {name} must be 2 to {SPARSE}", size)

    factor = Factor(
        name,
        size=int(size),
        low=float(np.float32(values.min())),
        high=float(np.float32(values.max())),
        unit=str(row["units"] or ""),
    )
    index = factor.to_index(values)
    return FactorColumn(factor, index, values, is_continuous=True)


def _make_ordered(
    index: np.ndarray, row: dict[str, Any], is_by_image: bool
) -> FactorColumn:
    """Makes a factor of classes: an ordered, periodic or categorical one."""
    name = str(row["names"])
    size = _read_size(index, row)
    names = _read_levels(size, row)
    values = _read_values(size, row, index if is_by_image else None)
    default = "categorical" if names and values is None else "ordered"
    kind, _, text = str(row["kinds"] or default).partition(":")
    if kind not in KINDS:
        raise TableError("kinds", f"of {name} must be one of {KINDS}", kind)
    is_categorical = kind == "categorical"
    is_periodic = kind == "periodic"
    period = _read_period(name, text)

    if is_categorical and values is not None:
        # Names that happen to be numbers, or are too long for float32.
        if not (np.diff(values.astype(np.float32)) > 0).all():
            names = names or tuple(f"{value:.15g}" for value in values)
            values = None
    if values is None:
        # A period is divided among the classes.
        step = period / size if is_periodic and period else 1.0
        values = np.arange(size) * step
    _check_rising(name, values)

    low = float(values[0])
    if size == 1:  # `FactorTable` leaves it out
        factor = Factor(name, 1, low, high=low + 1)
        return FactorColumn(factor, index, values[index], is_continuous=False)
    high = float(values[-1])
    if is_periodic:
        high = _find_period_end(name, values, period)
    even = np.linspace(low, high, size, endpoint=not is_periodic)
    is_even = np.allclose(
        values, even, rtol=0, atol=1e-4 * np.diff(values).min()
    )
    factor = Factor(
        name,
        size,
        low,
        high,
        unit=str(row["units"] or ""),
        periodic=is_periodic,
        categorical=is_categorical,
        levels=() if is_even else tuple(values.tolist()),
        names=names,
    )
    return FactorColumn(
        factor, index, values=factor.values()[index], is_continuous=False
    )


def _check_rising(name: str, values: np.ndarray) -> None:
    """Refuses values that do not rise in float32, in which models get them."""
    steps = np.diff(values.astype(np.float32))
    wrong = np.flatnonzero(~(np.isfinite(steps) & (steps > 0)))
    if wrong.size:
        rule = f"of {name} must be finite and rise with its classes"
        pair = f"{values[wrong[0]]:g}, then {values[wrong[0] + 1]:g}"
        raise TableError("values", rule, pair)


def _find_period_end(name: str, values: np.ndarray, period: float) -> float:
    """Finds the value that equals the first one; `period` is 0 if unknown."""
    low, high = float(values[0]), float(values[-1])
    if period:
        end = low + period
    else:
        steps = np.diff(values.astype(np.float32))
        if np.ptp(steps) > UNEVEN * np.diff(values).min():
            rule = f"of {name} must have the period of its uneven values"
            raise TableError("kinds", f"{rule} (periodic:360)", "periodic")
        end = high + (high - low) / (len(values) - 1)
    if end < high - 1e-6 * abs(high):
        rule = f"of {name} must have a period of at least {high - low:g}"
        rule += ", the range of its values"
        raise TableError("kinds", rule, f"{period:g}")
    return end


def _read_size(index: np.ndarray, row: dict[str, Any]) -> int:
    size = row["sizes"]
    least = int(index.max()) + 1
    if size is None:
        return least
    most = max(SPARSE, 2 * least)
    is_number = isinstance(size, int | float | np.number)
    if not is_number or not least <= size <= most or size % 1:
        rule = f"of {row['names']} must be an integer from {least} to {most:,}"
        raise TableError("sizes", rule, size)
    return int(size)


def _read_levels(size: int, row: dict[str, Any]) -> tuple[str, ...]:
    name, levels = row["names"], row["levels"]
    if levels is None:
        return ()
    table_checks.check_list("levels", f"of {name} must be a list", levels)
    names = tuple(map(str, levels))
    table_checks.check_texts("levels", names)
    if len(names) not in (0, size):
        rule = f"of {name} must be {size} names"
        raise TableError("levels", rule, len(names))
    return names


def _read_values(
    size: int, row: dict[str, Any], index: np.ndarray | None
) -> np.ndarray | None:
    """Reads the value of each class; with an index, they are by image."""
    if row["values"] is None:
        return None
    values = np.asarray(row["values"])
    if values.dtype.kind not in "buif":
        raise TableError("values", "must be numbers", values.dtype)
    values = values.astype(float)
    if index is not None:
        return _find_values(values, index, row["names"], size)
    if values.ndim == 1 and np.isnan(values[size:]).all():  # padded
        values = values[:size]
    if values.shape != (size,):
        rule = f"of {row['names']} must be {size} numbers"
        raise TableError("values", rule, list(values.shape))
    return values


def _find_values(
    values: np.ndarray, index: np.ndarray, name: str, size: int
) -> np.ndarray:
    """Finds the value of each class, [size], in the values of images, [n]."""
    present, first, places = np.unique(
        index, return_index=True, return_inverse=True
    )
    class_values = values[first]
    expected = class_values[places]
    finite = np.nan_to_num(values, posinf=0.0, neginf=0.0)
    rounding = ROUNDING * np.ptp(finite)
    differs = ~(np.abs(values - expected) <= rounding)  # NaN differs
    if differs.any():
        row = int(differs.argmax())
        rule = f"of {name} must be one for class {index[row]}"
        got = f"{expected[row]} and {values[row]} (image {row})"
        raise TableError("values", rule, got)
    if len(present) < size:
        rule = f"of {name} must be given for all {size} classes"
        raise TableError("values", rule, f"{len(present)} in the images")
    return class_values


def _read_period(name: str, text: str) -> float:
    """Reads the number behind `periodic:`, 0 if there is none."""
    if not text:
        return 0.0
    try:
        period = float(text)
    except ValueError:
        period = np.nan
    if not 0 < period < np.inf:
        rule = f"of {name} must have a positive number as its period"
        raise TableError("kinds", rule, text)
    return period
