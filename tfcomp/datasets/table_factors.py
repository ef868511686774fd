"""Columns of classes, made into factors."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from tfcomp.datasets import table_checks
from tfcomp.datasets.factors import Factor
from tfcomp.datasets.table_checks import SPARSE, TableError

KINDS = ("ordered", "periodic", "categorical", "continuous")
CONTINUOUS = "continuous"  # with `:16` for 16 bins
UNEVEN = 0.1  # of the least step: steps that differ more tell no period
ROUNDING = 1e-7  # of the range: closer values differ by rounding alone


def make_factors(
    classes: np.ndarray, num_images: int, columns: dict[str, Any], bins: int
) -> tuple[list[Factor], np.ndarray, np.ndarray]:
    """Returns factors, their classes [n, F], and values [n, F], float32."""
    table_checks.check_shape(classes, num_images)
    if columns["names"] is None:
        columns["names"] = [f"factor_{i}" for i in range(classes.shape[1])]
    is_by_image = getattr(columns["values"], "shape", None) == classes.shape
    if is_by_image:
        columns["values"] = columns["values"].T
    rows = _transpose(columns, classes.shape[1])
    names = [str(row["names"]) for row in rows]
    table_checks.check_names(names)
    table_checks.check_texts("units", [str(row["units"] or "") for row in rows])
    made: list[tuple[Factor, np.ndarray, np.ndarray]] = []
    for number, (column, row) in enumerate(zip(classes.T, rows, strict=True)):
        kind, _, size = str(row["kinds"]).partition(":")
        if kind == CONTINUOUS:
            size = size or str(bins)
            factor, values = _make_continuous(column, row, is_by_image, size)
            index = factor.to_index(values)
        else:
            index = table_checks.check_classes(column, number)
            factor = _make_factor(index, row, is_by_image)
            values = factor.values()[index]
        made.append((factor, index, values))
    factors, numbers, exact = zip(*made, strict=True)
    table = np.stack(numbers, axis=1)
    table_checks.check_one_hot(names, table)
    return [*factors], table, np.stack(exact, axis=1).astype(np.float32)


def set_kinds(
    names: Sequence[str] | None,
    kinds: Sequence[str] | None,
    factors: Sequence[str],
) -> list[str | None]:
    """Returns the kinds of all columns, with kinds as in `x:continuous`."""
    if names is None:
        raise TableError("names", "must be given to name factors", None)
    known: dict[str, str | None] = dict.fromkeys(names)
    known |= dict(zip(names, kinds or (), strict=False))
    for factor in factors:
        name, _, kind = factor.partition(":")
        if name not in known:
            rule = f"must be among {', '.join(map(str, names)) or 'none'}"
            raise TableError("factors", rule, name)
        known[name] = kind or known[name]
    return list(known.values())


def _transpose(columns: dict[str, Any], count: int) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = [dict.fromkeys(columns) for _ in range(count)]
    for field, given in columns.items():
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
    column: np.ndarray, row: dict[str, Any], is_by_image: bool, size: str
) -> tuple[Factor, np.ndarray]:
    """Returns a factor with evenly spaced bins, and its numbers by image."""
    given, name = row["values"], str(row["names"])
    if row["levels"] is not None:  # classes in the order of the file
        rule = f"of {name} must be numbers where kinds has continuous"
        raise TableError("values", rule, str(row["levels"])[:100])
    numbers = np.asarray(column if given is None else given, float)
    if given is not None and not is_by_image:
        numbers = numbers[table_checks.check_classes(column, 0)]
    if not np.isfinite(numbers).all() or np.ptp(numbers) == 0:
        got = "NaN" if np.isnan(numbers).any() else numbers[0]
        raise TableError("values", f"of {name} must be finite and differ", got)
    if not size.isdecimal() or not 2 <= int(size) <= SPARSE:
        raise TableError("bins", f"of {name} must be 2 to {SPARSE}", size)
    low, high = (float(np.float32(f(numbers))) for f in (np.min, np.max))
    return Factor(name, int(size), low, high, str(row["units"] or "")), numbers


def _make_factor(
    classes: np.ndarray, row: dict[str, Any], is_by_image: bool
) -> Factor:
    name, unit = str(row["names"]), str(row["units"] or "")
    size = _read_size(classes, row)
    names = _read_levels(size, row)
    values = _read_values(size, row, classes if is_by_image else None)
    default = "categorical" if names and values is None else "ordered"
    kind, _, text = str(row["kinds"] or default).partition(":")
    if kind not in KINDS:
        raise TableError("kinds", f"of {name} must be one of {KINDS}", kind)
    is_periodic, period = kind == "periodic", _read_period(name, text)
    if kind == "categorical" and values is not None:
        # Names that happen to be numbers, or are too long for float32.
        if not (np.diff(values.astype(np.float32)) > 0).all():
            names, values = names or tuple(f"{v:.15g}" for v in values), None
    if values is None:
        # A period is divided among the classes.
        is_divided = is_periodic and period
        values = np.arange(size) * (period / size if is_divided else 1.0)
    # In float32 as well, in which models get them.
    steps = np.diff(values.astype(np.float32))
    falls = np.flatnonzero(~(np.isfinite(steps) & (steps > 0)))
    if falls.size:
        rule = f"of {name} must be finite and rise with its classes"
        pair = f"{values[falls[0]]:g}, then {values[falls[0] + 1]:g}"
        raise TableError("values", rule, pair)
    low = float(values[0])
    if size == 1:  # `FactorTable` leaves it out
        return Factor(name, 1, low, low + 1, unit)
    high, step = float(values[-1]), np.diff(values).min()
    if is_periodic and not period and np.ptp(steps) > UNEVEN * step:
        rule = f"of {name} must have the period of its uneven values"
        raise TableError("kinds", f"{rule} (periodic:360)", "periodic")
    if is_periodic:  # the value that equals the first one
        end = low + period if period else high + (high - low) / (size - 1)
        if end < high - 1e-6 * abs(high):
            rule = f"of {name} must have a period of at least {high - low:g}"
            rule += ", the range of its values"
            raise TableError("kinds", rule, f"{period:g}")
        high = end
    even = np.linspace(low, high, size, endpoint=not is_periodic)
    is_even = np.allclose(values, even, rtol=0, atol=1e-4 * step)
    given = () if is_even else tuple(values.tolist())
    kinds = is_periodic, kind == "categorical"
    return Factor(name, size, low, high, unit, *kinds, given, names)


def _read_size(classes: np.ndarray, row: dict[str, Any]) -> int:
    size, least = row["sizes"], int(classes.max()) + 1
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
    size: int, row: dict[str, Any], classes: np.ndarray | None
) -> np.ndarray | None:
    """Returns the value of each class; with classes, they are by image."""
    if row["values"] is None:
        return None
    values = np.asarray(row["values"])
    if values.dtype.kind not in "buif":
        raise TableError("values", "must be numbers", values.dtype)
    values = values.astype(float)
    if classes is not None:
        return _find_values(values, classes, row["names"], size)
    if values.ndim == 1 and np.isnan(values[size:]).all():  # padded
        values = values[:size]
    if values.shape != (size,):
        rule = f"of {row['names']} must be {size} numbers"
        raise TableError("values", rule, list(values.shape))
    return values


def _find_values(
    values: np.ndarray, classes: np.ndarray, name: str, size: int
) -> np.ndarray:
    """Returns the value of each class from the values of images."""
    present, first, place = np.unique(
        classes, return_index=True, return_inverse=True
    )
    found = values[first]
    finite = np.nan_to_num(values, posinf=0.0, neginf=0.0)
    rounding = ROUNDING * np.ptp(finite)
    differs = ~(np.abs(values - found[place]) <= rounding)  # NaN differs
    if differs.any():
        row = int(differs.argmax())
        rule = f"of {name} must be one for class {classes[row]}"
        got = f"{found[place][row]} and {values[row]} (image {row})"
        raise TableError("values", rule, got)
    if len(present) < size:
        rule = f"of {name} must be given for all {size} classes"
        raise TableError("values", rule, f"{len(present)} in the images")
    return found


def _read_period(name: str, text: str) -> float:
    """Returns the number behind `periodic:`, 0 if there is none."""
    try:
        period = float(text or 0)
    except ValueError:
        period = np.nan
    if text and not 0 < period < np.inf:
        rule = f"of {name} must have a positive number as its period"
        raise TableError("kinds", rule, text)
    return period
