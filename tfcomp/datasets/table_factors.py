"""What the columns of a table of classes mean: checked, and made factors."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from tfcomp.config.settings import CONTROLS
from tfcomp.datasets.factors import Factor

KINDS = ("ordered", "periodic", "categorical")
# Classes above have been counted otherwise than from 0, if most are missing.
SPARSE = 1000
MAX_TEXT = 100  # characters of a name
# Values closer than this part of the range differ by rounding alone.
ROUNDING = 1e-7
ONE_HOT = 3  # columns of a one-hot code, at least


class TableError(ValueError):
    """A table that breaks a rule, such as `classes must be integers`."""

    def __init__(self, field: str, rule: str, value: object) -> None:
        super().__init__(f"{field} {rule}, got {value}")


def make_factors(
    num_images: int,
    classes: np.ndarray,
    values: Sequence[Any] | np.ndarray | None,
    names: Sequence[str] | None,
    sizes: Sequence[int] | None,
    kinds: Sequence[str] | None,
    levels: Sequence[Sequence[str] | None] | None,
    units: Sequence[str] | None,
) -> tuple[list[Factor], np.ndarray]:
    """The factors of a `FactorTable` and its classes as integers, [n, F]."""
    classes = _check_classes(np.asarray(classes), num_images)
    count = classes.shape[1]
    texts = {"names": names, "kinds": kinds, "levels": levels, "units": units}
    for field, given in {**texts, "sizes": sizes, "values": values}.items():
        _check_axes(field, given)
        # `_list_values` knows the layouts of values.
        if given is not None and field != "values" and len(given) != count:
            rule = f"must have one entry for each of the {count} factors"
            raise TableError(field, rule, len(given))
    if names is None:
        names = [f"factor_{i}" for i in range(count)]
    names = list(map(str, names))
    _check_names(names)
    _check_one_hot(names, classes)
    found = classes.max(axis=0) + 1
    sizes = found if sizes is None else _check_sizes(sizes, names, found)
    for name, size, column in zip(names, sizes, classes.T, strict=True):
        if (column >= size).any():
            row = int(np.argmax(column >= size))
            rule = f"of {name} must be below its size {size}"
            got = f"{column.max()} (image {row} is one)"
            raise TableError("classes", rule, got)
    scales = _list_values(values, classes, names, sizes)
    kinds = [""] * count if kinds is None else kinds
    levels = [None] * count if levels is None else levels
    units = [""] * count if units is None else units
    columns = (names, sizes.tolist(), scales, kinds, levels, units)
    return list(map(_make_factor, *columns)), classes


def _check_classes(classes: np.ndarray, num_images: int) -> np.ndarray:
    if classes.ndim != 2 or not classes.shape[1]:
        cure = " (classes[:, None] for one factor)" * (classes.ndim == 1)
        got = list(classes.shape)
        raise TableError("classes", f"must be [n, F]{cure}", got)
    if len(classes) != num_images:
        rule = f"must have a row for each of the {num_images} images"
        raise TableError("classes", rule, len(classes))
    if classes.dtype.kind not in "buif":
        rule = "must be integers, names of classes go to levels"
        raise TableError("classes", rule, classes.dtype)
    is_whole = np.isfinite(classes) & (classes == np.floor(classes))
    if (wrong := ~is_whole | (classes < 0)).any():
        row, column = np.argwhere(wrong)[0]
        rule = f"must be integers from 0, that of image {row}, factor {column}"
        raise TableError("classes", rule, classes[row, column])
    for column, largest in enumerate(classes.max(axis=0).tolist()):
        present = len(np.unique(classes[:, column]))
        if largest >= max(SPARSE, 2 * present):
            rule = (
                f"of factor {column} must be counted from 0 (np.unique(..., "
                f"return_inverse=True)), the largest of {present} classes"
            )
            raise TableError("classes", rule, largest)
    return classes.astype(np.int64)


def _check_one_hot(names: Sequence[str], classes: np.ndarray) -> None:
    """Refuses columns next to each other of which each row has one 1."""
    is_bit = (classes <= 1).all(axis=0)
    for start in range(len(names)):
        total = np.zeros(len(classes), int)
        for end in range(start, len(names)):
            total += classes[:, end]
            if not is_bit[end] or (total > 1).any():
                break
            if end - start + 1 >= ONE_HOT and (total == 1).all():
                cure = f"classes[:, {start}:{end + 1}].argmax(1)"
                rule = f"must not be a one-hot code, but one factor ({cure})"
                got = (
                    f"{names[start]} to {names[end]}, one of which is always 1"
                )
                raise TableError("classes", rule, got)


def _check_axes(field: str, given: Any) -> None:
    axes = {"values": (2,), "levels": (1, 2)}.get(field, (1,))
    if isinstance(given, np.ndarray):
        ragged = given.dtype == object and given.ndim
        if given.ndim not in axes and not ragged:
            raise TableError(field, "must be a list", f"{list(given.shape)}")
    elif isinstance(given, str | int | float):
        raise TableError(field, "must be a list", repr(given))


def _check_sizes(
    sizes: Sequence[int], names: Sequence[str], found: np.ndarray
) -> np.ndarray:
    checked = np.asarray(sizes)
    if checked.dtype.kind not in "uif" or (checked != np.floor(checked)).any():
        raise TableError("sizes", "must be integers", checked.tolist())
    for name, size, classes in zip(names, checked, found, strict=True):
        if size > (most := max(SPARSE, 2 * int(classes))):
            rule = f"of {name}, which has classes up to {classes - 1}, must be"
            raise TableError("sizes", f"{rule} at most {most:,}", f"{size:g}")
    return checked.astype(np.int64)


def _check_texts(field: str, texts: Sequence[str]) -> None:
    """Refuses names that a terminal or a spreadsheet would not show as such."""
    rule = (
        f"must have at most {MAX_TEXT} characters, no control characters, and "
        "not begin with =, @, + or - unless it is a number"
    )
    for text in texts:
        is_odd = CONTROLS.search(text) or _is_formula(text)
        if is_odd or len(text) > MAX_TEXT:
            raise TableError(field, rule, repr(text[:MAX_TEXT]))


def _is_formula(text: str) -> bool:
    """Checks whether a spreadsheet would compute a cell with this text."""
    try:
        float(text)
    except ValueError:
        return text.startswith(("=", "@", "+", "-"))
    return False


def _check_names(names: Sequence[str]) -> None:
    _check_texts("names", names)
    for number, name in enumerate(names):
        if not name or name in names[:number] or set(name) & set(",:/ \n"):
            rule = "must differ and be words without spaces, commas and colons"
            raise TableError("names", rule, repr(name))


def _list_values(
    values: Sequence[Any] | np.ndarray | None,
    classes: np.ndarray,
    names: Sequence[str],
    sizes: Sequence[int],
) -> list[np.ndarray | None]:
    """Per factor the value of every class, None where they are the classes."""
    if values is None:
        return [None] * len(names)
    is_table = isinstance(values, np.ndarray) and values.dtype != object
    if is_table and values.dtype.kind not in "buif":
        raise TableError("values", "must be numbers", values.dtype)
    if is_table and values.shape == classes.shape:
        return list(map(_read_column, values.T, classes.T, names, sizes))
    if len(values) != len(names):
        many = f"a list for each of {len(names)} factors"
        got = np.shape(values) if is_table else len(values)
        raise TableError("values", f"must be [n, F], or have {many}", got)
    found: list[np.ndarray | None] = []
    for name, size, given in zip(names, sizes, values, strict=True):
        column = None if given is None else np.asarray(given, float)
        if is_table and np.isnan(column[size:]).all():  # rows of one length
            column = column[:size]
        if column is not None and column.shape != (size,):
            rule = f"of {name} must be {size} numbers"
            raise TableError("values", rule, list(column.shape))
        found.append(column)
    return found


def measure_spread(values: np.ndarray) -> float:
    """Returns the range of the finite numbers, 0 if there are none."""
    finite = values[np.isfinite(values)]
    return float(np.ptp(finite)) if finite.size else 0.0


def _read_column(
    values: np.ndarray, classes: np.ndarray, name: str, size: int
) -> np.ndarray | None:
    """The value of each class, from the value of each image."""
    present, first, place = np.unique(
        classes, return_index=True, return_inverse=True
    )
    found = values[first]
    rounding = ROUNDING * measure_spread(values)
    # True where they are NaN, too.
    differs = ~(np.abs(values - found[place]) <= rounding)
    if differs.any():
        row = int(differs.argmax())
        rule = f"of {name} must be one for class {classes[row]}"
        got = f"{found[place][row]} and {values[row]} (image {row})"
        raise TableError("values", rule, got)
    if len(present) == size:
        return np.asarray(found, float)
    if not np.array_equal(found, present):  # nothing is known of the others
        rule = f"of {name} must be given for all {size} classes"
        raise TableError("values", rule, f"{len(present)} in the images")
    return None


def _make_factor(
    name: str,
    size: int,
    values: np.ndarray | None,
    kind: str,
    levels: Sequence[str] | None,
    unit: str,
) -> Factor:
    names = () if levels is None else tuple(map(str, levels))
    unit = str(unit)
    _check_texts("levels", names)
    _check_texts("units", [unit])
    if len(names) not in (0, size):
        rule = f"of {name} must be {size} names"
        raise TableError("levels", rule, len(names))
    default = "categorical" if names and values is None else "ordered"
    kind, _, period = (str(kind) or default).partition(":")
    if kind not in KINDS:
        raise TableError("kinds", f"of {name} must be one of {KINDS}", kind)
    if kind == "categorical" and values is not None:
        if not (np.diff(values) > 0).all():  # names that happen to be numbers
            names, values = names or tuple(f"{v:g}" for v in values), None
    if values is None:
        values = np.arange(size, dtype=float)
        if kind == "periodic" and period:  # which its classes divide
            values *= _read_period(name, period) / size
    _check_values(name, values)
    if size == 1:
        values = np.array([values[0], values[0] + 1])  # it is left out anyway
    high = _find_end(name, values, period) if kind == "periodic" else values[-1]
    even = np.linspace(values[0], high, size, endpoint=kind != "periodic")
    step = np.diff(values).min()
    is_even = size == 1 or np.allclose(values, even, rtol=0, atol=1e-4 * step)
    return Factor(
        name,
        size,
        float(values[0]),
        float(high if size > 1 else values[1]),
        unit,
        periodic=kind == "periodic",
        categorical=kind == "categorical",
        levels=() if is_even else tuple(values.tolist()),
        names=names,
    )


def _check_values(name: str, values: np.ndarray) -> None:
    if (odd := values[~np.isfinite(values)]).size:
        raise TableError("values", f"of {name} must be finite", odd[0])
    # In float32 as well, in which models get them.
    falls = np.flatnonzero(np.diff(values.astype(np.float32)) <= 0)
    if falls.size:
        rule = f"of {name} must rise with its classes"
        pair = f"{values[falls[0]]:g}, then {values[falls[0] + 1]:g}"
        raise TableError("values", rule, pair)


def _find_end(name: str, values: np.ndarray, period: str) -> float:
    """The value of a periodic factor that is the first one again."""
    if not period:
        return values[-1] + (values[-1] - values[0]) / max(len(values) - 1, 1)
    end = values[0] + _read_period(name, period)
    if not end >= values[-1] - 1e-6 * abs(values[-1]):
        rule = f"of {name} must have a period that its values do not exceed"
        raise TableError("kinds", rule, period)
    return end


def _read_period(name: str, period: str) -> float:
    try:
        number = float(period)
    except ValueError:
        number = np.nan
    if not 0 < number < np.inf:
        rule = f"of {name} must have a positive number as its period"
        raise TableError("kinds", rule, period)
    return number
