"""Factor tables from folders of pictures with a table in text form."""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tfcomp.datasets.factor_table import FactorTable
from tfcomp.datasets.pictures import find_pictures
from tfcomp.datasets.table_factors import TableError
from tfcomp.datasets.table_files import find_classes

if TYPE_CHECKING:
    from tfcomp.datasets.table_images import LazyImages

FILES = ("file", "file_name")  # columns with the name of a picture
DELIMITERS = ",;\t"
ENDINGS = (".csv", ".tsv")
Row = tuple[int, list[str]]  # its line in the file, and its cells


def list_files(folder: Path, *endings: str) -> list[Path]:
    """Returns sorted files with an ending, without hidden ones (`._a.png`)."""
    return sorted(
        path
        for path in folder.iterdir()
        if path.suffix.lower() in endings and not path.name.startswith(".")
    )


def read_csv_folder(folder: Path, table: Path) -> FactorTable:
    """Returns the table of a CSV file and the pictures that it names.

    The CSV has a column `file` or `file_name` and one per factor: numbers, or
    names, which are then categories in the order in which they occur.
    `angle:periodic` or `digit:categorical` as the head of a column says what it
    is. Semicolons and tabs may separate columns; a column without a name, which
    counts the rows, is left out.
    """
    delimiter, head, rows = _read_rows(table)
    columns, notes = {}, []
    for place, name in enumerate(head):
        if not name or name.startswith("Unnamed:"):  # an index of pandas
            notes.append(f"left out: column {place + 1}, which has no name")
        elif name in columns:
            raise TableError(table.name, "must name each column once", name)
        else:
            columns[name] = [(line, cells[place]) for line, cells in rows]
    files = columns.pop(next(name for name in FILES if name in columns))
    images = _find_images(folder, table.name, files)
    options = read_columns(table.name, columns, delimiter == ";")
    found = FactorTable(images, **options)
    found.notes += tuple(notes)
    return found


def read_columns(
    table: str,
    columns: dict[str, list[tuple[int, str]]],
    has_comma: bool = False,
) -> dict[str, Any]:
    """Returns what columns of text are for `FactorTable`: classes, names ...

    Args:
        table: Name of the file, for errors.
        columns: By the head of a column: line in the file and text of cells.
        has_comma: True if numbers may have a decimal comma.
    """
    classes: list[np.ndarray] = []
    described: list[tuple[str, str, Any, Any]] = []
    for head, cells in columns.items():
        name, _, kind = head.partition(":")
        texts = [text for _, text in cells]
        numbers = _read_numbers(table, name, kind, cells, has_comma)
        if numbers is None:
            index = {text: i for i, text in enumerate(dict.fromkeys(texts))}
            classes.append(np.array([index[text] for text in texts]))
            described.append((name, kind or "categorical", None, list(index)))
        else:
            column, (values,) = find_classes(numbers[:, None])
            classes.append(column[:, 0])
            described.append((name, kind or "ordered", values, None))
    keys = ("names", "kinds", "values", "levels")
    options = dict(zip(keys, zip(*described, strict=True), strict=True))
    return {"classes": np.stack(classes, axis=1), **options}


def _read_rows(table: Path) -> tuple[str, list[str], list[Row]]:
    """Returns the separator of a table, its head and its rows."""
    for delimiter in DELIMITERS:
        rows = list(_split_rows(table, delimiter))
        head = [cell.replace(" ", "_") for cell in rows[0][1]] if rows else []
        if len(head) > 1 and not {*head}.isdisjoint(FILES):
            break
    else:
        got = ",".join(_split_head(table)) or "nothing"
        rule = f"must have rows and columns {FILES[0]} and one per factor"
        raise TableError(table.name, rule, got)
    body = rows[1:]
    if not body:
        raise TableError(table.name, "must have rows", "a head alone")
    for line, cells in body:
        if len(cells) != len(head):
            rule = f"must have {len(head)} columns in every row"
            got = f"{len(cells)} in row {line}"
            raise TableError(table.name, rule, got)
    return delimiter, head, body


def _split_rows(table: Path, delimiter: str) -> Iterator[Row]:
    with table.open(newline="", encoding="utf-8-sig") as file:
        reader = csv.reader(file, delimiter=delimiter)
        for cells in reader:
            if cells:
                yield reader.line_num, [cell.strip() for cell in cells]


def _split_head(table: Path) -> list[str]:
    _, head = next(_split_rows(table, ","), (0, []))
    return head


def _read_numbers(
    table: str,
    name: str,
    kind: str,
    cells: list[tuple[int, str]],
    has_comma: bool,
) -> np.ndarray | None:
    """Returns the numbers of a column, None if it has names of categories."""
    numbers = [_to_number(text, has_comma) for _, text in cells]
    for (line, text), number in zip(cells, numbers, strict=True):
        if not text or (number is not None and not np.isfinite(number)):
            rule = f"must have a value in every row of {name}"
            raise TableError(table, rule, f"{text!r} in row {line}")
    odd = [cell for cell, n in zip(cells, numbers, strict=True) if n is None]
    if not odd:
        return np.array(numbers, float)
    if kind != "categorical" and len(odd) <= len(cells) / 2:
        line, text = odd[0]
        rule = f"must have numbers alone in {name}, or the head {name}"
        raise TableError(
            table, f"{rule}:categorical", f"{text!r} in row {line}"
        )
    return None


def _to_number(text: str, has_comma: bool) -> float | None:
    try:
        return float(text.replace(",", ".") if has_comma else text)
    except ValueError:
        return None


def _find_images(
    folder: Path, table: str, cells: Sequence[tuple[int, str]]
) -> LazyImages:
    names = [name for _, name in cells]
    if absent := [name for name in names if not (folder / name).is_file()]:
        rule = "must name images that are in the folder"
        got = f"{absent[0]} ({len(absent)} are absent)"
        raise TableError(table, rule, got)
    name, count = Counter(names).most_common(1)[0]
    if count > 1:
        rule = "must name each image once"
        raise TableError(table, rule, f"{name} {count} times")
    return find_pictures([folder / name for name in names])
