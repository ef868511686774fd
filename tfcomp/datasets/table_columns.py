"""Columns of a table as users have them: numbers, text, dates, true or false.

All formats of tables come through here: data frames, arrays by name, CSV and
parquet files. A column is numbered when it is used as a factor, so that others
may hold anything.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy import ndarray as Array

if TYPE_CHECKING:
    import pandas as pd

# Attribute of a frame whose cells are text, as of CSV: some of it is numbers.
UNTYPED = "tfcomp_untyped"
DIGITS = 12  # after the point of a number, others are rounding
# Of a number, and of the range of all: rounding makes no larger differences.
CLOSE = 1e-6
CLOSE_IN_RANGE = 1e-4


class TableError(ValueError):
    """A table that breaks a rule, such as `classes must be integers`."""

    def __init__(self, field: str, rule: str, value: object) -> None:
        super().__init__(f"{field} {rule}, got {value}")


@dataclass(frozen=True)
class Levels:
    """The distinct cells of a column.

    Attributes:
        index: The level of each row, int [n].
        values: The numbers of the levels, rising; None for names.
        names: The names of the levels; none for numbers.
        unit: The unit of the numbers.
    """

    index: Array
    values: Array | None = None
    names: tuple[str, ...] = ()
    unit: str = ""


def split_head(head: object) -> tuple[str, str]:
    """Splits the head of a column into a name and a kind, which may be empty.

    Args:
        head: As `angle`, `angle:periodic:360` or `floor hue`, whose space
            becomes an underscore.
    """
    name, _, kind = str(head).partition(":")
    words = name.split()
    return "_".join(words), kind.strip()


def make_frame(columns: Any) -> "pd.DataFrame":
    """Returns columns [n] by name as a data frame.

    A factor in the index of a frame becomes a column. An index with another
    value in each row only names the rows.

    Args:
        columns: A data frame, or a mapping of arrays.

    Raises:
        TableError: For columns of several dimensions or lengths.
    """
    import pandas as pd

    if isinstance(columns, pd.DataFrame):
        return _take_index(columns)

    first = ""
    arrays: dict[str, Array] = {}
    for name, column in dict(columns).items():
        array = np.asarray(column)
        if array.ndim != 1:
            rule = "must have one value for each row"
            raise TableError(f"the column {name}", rule, list(array.shape))
        if arrays and len(array) != len(arrays[first]):
            rule = f"must have {len(arrays[first]):,} rows, as {first} has"
            raise TableError(f"the column {name}", rule, f"{len(array):,}")
        if array.dtype.kind == "S":
            array = np.char.decode(array, "utf-8", "replace")
        if not arrays:
            first = name
        # Pandas takes no numbers in the byte order of another machine.
        arrays[name] = array.astype(array.dtype.newbyteorder("="))
    return pd.DataFrame(arrays)


def _take_index(frame: "pd.DataFrame") -> "pd.DataFrame":
    import pandas as pd

    index = frame.index
    names = [name for name in index.names if name is not None]
    names_rows = index.is_unique and index.nlevels == 1 and len(frame.columns)
    if not names or names_rows:
        return frame

    levels = index.to_frame(index=False)[names]
    columns = frame.reset_index(drop=True)
    return pd.concat([levels, columns], axis=1)


def number_cells(cells: "pd.Series", kind: str = "") -> Levels:
    """Numbers the levels of a column.

    Numbers are sorted, and equal ones but for rounding are one level. Names
    have the order of the rows, or of a frame's categories.

    Args:
        cells: The column; its index names the rows in errors. With the
            attribute `UNTYPED`, all cells are text, of which some mean numbers.
        kind: The kind of the factor; `categorical` keeps 01 and 1 apart.

    Raises:
        TableError: For a gap, and for text among numbers.
    """
    import pandas as pd

    if cells.attrs.get(UNTYPED):
        cells = _find_type(cells, kind)
    cells = cells.infer_objects()
    _check_gaps(cells)

    types = pd.api.types
    if types.is_bool_dtype(cells):
        return Levels(cells.to_numpy(int), names=("False", "True"))
    if types.is_datetime64_any_dtype(cells):
        first = cells.min()
        seconds = (cells - first).dt.total_seconds()
        return _number_values(seconds.to_numpy(), f"s since {first}")
    if types.is_numeric_dtype(cells) and not types.is_complex_dtype(cells):
        return _number_values(cells.to_numpy(float))

    if kind != "categorical":
        _check_mixture(cells)
    if isinstance(cells.dtype, pd.CategoricalDtype):
        used = cells.cat.remove_unused_categories().cat
        index = used.codes.to_numpy(int)
        names = used.categories
    else:
        index, names = pd.factorize(cells.astype(str))
    return Levels(index, names=tuple(map(str, names)))


def _find_type(cells: "pd.Series", kind: str) -> "pd.Series":
    """Converts text to numbers, or to true and false, if all of it is that."""
    import pandas as pd

    words = set(cells.str.lower())
    if words <= {"true", "false"}:
        return cells.str.lower() == "true"

    numbers = pd.to_numeric(cells, errors="coerce").astype(float)
    is_number = np.isfinite(numbers)
    # Categories such as 1 and 01, or 1E2 and 100, are equal as numbers.
    num_values = numbers.astype(np.float32).nunique()
    if kind == "categorical" and num_values < cells.nunique():
        return cells
    if is_number.all():
        return numbers
    mixed = cells.astype(object).where(~is_number, numbers.astype(object))
    return mixed.where(cells != "", None)


def _check_gaps(cells: "pd.Series") -> None:
    """Refuses cells without a value, as None, NaN or infinity."""
    import pandas as pd

    is_gap = cells.isna()
    if pd.api.types.is_float_dtype(cells):
        is_gap |= ~np.isfinite(cells.to_numpy(float))
    if is_gap.any():
        _refuse(cells, is_gap, "must have no gaps")


def _check_mixture(cells: "pd.Series") -> None:
    """Refuses text among numbers."""
    is_number = cells.map(lambda cell: isinstance(cell, int | float))
    if is_number.any() and not is_number.all():
        rule = "must have numbers alone, or texts alone"
        hint = f", {cells.name}:categorical takes both"
        _refuse(cells, ~is_number, rule, hint)


def _refuse(
    cells: "pd.Series",
    is_wrong: "pd.Series",
    rule: str,
    hint: str = "",
) -> None:
    """Raises a TableError that names the first wrong cell.

    Args:
        cells: The column.
        is_wrong: A mask of its cells.
        rule: What must hold.
        hint: What to type, beside `--ignore`.
    """
    place = int(is_wrong.to_numpy().argmax())
    row = cells.index[place]
    cell = cells.iloc[place]
    if isinstance(cell, np.generic):
        cell = cell.item()  # whose text is nan, not np.float64(nan)
    got = f"{cell!r} in row {row}"
    hint = f"--ignore={cells.name} leaves it out{hint}"
    raise TableError(f"the column {cells.name}", rule, f"{got} ({hint})")


def _number_values(cells: Array, unit: str = "") -> Levels:
    """Numbers levels that are equal but for rounding."""
    rounded = np.round(cells.astype(float), DIGITS)
    values, index = np.unique(rounded, return_inverse=True)
    index = index.reshape(-1)

    of_value = CLOSE * np.abs(values[1:])
    of_range = CLOSE_IN_RANGE * np.ptp(values)
    tolerance = np.minimum(of_value, of_range)
    is_next = np.diff(values) > tolerance

    classes = np.cumsum([0, *is_next])
    _, first = np.unique(classes, return_index=True)
    return Levels(
        index=classes[index],
        values=values[first],
        unit=unit,
    )
