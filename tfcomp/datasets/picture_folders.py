"""Factor tables from folders of pictures with a table in text form."""

import os
import warnings
from collections import Counter
from collections.abc import Hashable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tfcomp.datasets.factor_table import FactorTable
from tfcomp.datasets.table_factors import TableError
from tfcomp.datasets.table_files import find_classes
from tfcomp.datasets.table_images import LazyImages

if TYPE_CHECKING:
    import pandas as pd

FILES = ("file", "file_name")  # columns with the name of a picture
SEPARATORS = ",;\t"
ENDINGS = (".csv", ".tsv")
# Pillow also opens formats that start other programs (EPS).
FORMATS = ("PNG", "JPEG", "BMP", "GIF", "TIFF", "WEBP", "PPM")
BLACK, WHITE = 0, 255


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
    `angle:periodic` or `digit:categorical` as the head of a column sets its
    kind. Semicolons and tabs may separate columns. A column without a name,
    as the index of pandas, is left out.
    """
    frame, separator = _read_cells(table)
    files = frame.pop(next(name for name in FILES if name in frame))
    images = _find_images(folder, table.name, files.tolist())
    columns, notes = [], []
    for place, head in enumerate(frame):
        if str(head).startswith("Unnamed:"):
            notes.append(f"left out: column {place + 1}, which has no name")
        else:
            columns.append(_read_column(table.name, frame[head], separator))
    if not columns:
        raise TableError(table.name, "must have a column per factor", "none")
    classes, *options = zip(*columns, strict=True)
    keys = ("names", "kinds", "values", "levels")
    known: dict[str, Any] = dict(zip(keys, options, strict=True))
    found = FactorTable(images, np.stack(classes, axis=1), **known)
    found.notes += tuple(notes)
    return found


def _read_cells(table: Path) -> "tuple[pd.DataFrame, str]":
    """Returns the cells as texts, and what separates them."""
    import pandas as pd

    with table.open(encoding="utf-8-sig") as file:
        head = file.readline().strip()
    for separator in SEPARATORS:
        names = [name.strip('" ') for name in head.split(separator)]
        if len(names) > 1 and {*names} & {*FILES}:
            break
    else:
        rule = f"must have rows and columns {FILES[0]} and one per factor"
        raise TableError(table.name, rule, head[:100] or "nothing")
    frame = pd.read_csv(
        table,
        sep=separator,
        dtype=str,
        keep_default_na=False,
        index_col=False,
        encoding="utf-8-sig",
    ).fillna("")
    frame = frame.apply(lambda cells: cells.str.strip())
    frame.columns = frame.columns.str.strip().str.replace(" ", "_")
    if frame.empty:
        raise TableError(table.name, "must have rows", "a head alone")
    return frame, separator


def _read_column(
    table: str, cells: "pd.Series[str]", separator: str
) -> tuple[np.ndarray, str, str, np.ndarray | None, list[Hashable] | None]:
    """Returns classes, name, kind, values and levels of a factor."""
    import pandas as pd

    name, _, kind = str(cells.name).partition(":")
    # Semicolons go with decimal commas.
    texts = cells.str.replace(",", ".") if separator == ";" else cells
    numbers = pd.to_numeric(texts, errors="coerce").to_numpy(float)
    is_missing = texts.str.lower().isin(["", "nan"]) | np.isinf(numbers)
    if is_missing.any():
        row = int(is_missing.argmax())
        rule = f"must have a value in every row of {name}"
        raise TableError(table, rule, _show_cell(cells, row))
    is_text = np.isnan(numbers)
    if not is_text.any():
        classes, (values,) = find_classes(numbers[:, None])
        return classes[:, 0], name, kind or "ordered", values, None
    if kind != "categorical" and is_text.mean() <= 0.5:
        rule = (
            f"must have numbers alone in {name}, or the head {name}:categorical"
        )
        raise TableError(table, rule, _show_cell(cells, int(is_text.argmax())))
    codes, levels = pd.factorize(cells)
    return codes, name, kind or "categorical", None, list(levels)


def _show_cell(cells: "pd.Series[str]", row: int) -> str:
    return f"{cells.iloc[row]!r} in row {row + 2}"


def _find_images(folder: Path, table: str, names: list[str]) -> LazyImages:
    absent = [name for name in names if not os.path.isfile(folder / name)]
    if absent:
        rule = "must name images that are in the folder"
        got = f"{absent[0][:100]} ({len(absent)} are absent)"
        raise TableError(table, rule, got)
    name, count = Counter(names).most_common(1)[0]
    if count > 1:
        raise TableError(table, "must name each image once", name)
    return find_pictures([folder / name for name in names])


def find_pictures(files: list[Path]) -> LazyImages:
    """Returns pictures of one size; transparent pixels show a background.

    It is black, or white if the pictures would be equal on black.
    """
    first, _ = _open_picture(files[0], BLACK)
    notes: list[str] = []

    def load() -> np.ndarray:
        images, is_clear = _read_pictures(files, BLACK)
        background = "black"
        if is_clear and (images == images[0]).all():
            background, (images, _) = "white", _read_pictures(files, WHITE)
        if is_clear:
            notes[:] = [f"transparent pixels of pictures are {background}"]
        return images

    return LazyImages((len(files), *first.shape), first.dtype, load, notes)


def _read_pictures(
    files: list[Path], background: int
) -> tuple[np.ndarray, bool]:
    """Returns all pictures, and True if any has transparent pixels."""
    opened = [_open_picture(file, background) for file in files]
    shape = opened[0][0].shape
    for file, (image, _) in zip(files, opened, strict=True):
        if image.shape != shape:
            got = f"{list(image.shape)} in {file.name}"
            raise TableError("images", f"must all be {list(shape)}", got)
    return np.stack([image for image, _ in opened]), any(c for _, c in opened)


def _open_picture(file: Path, background: int) -> tuple[np.ndarray, bool]:
    """Returns the pixels, and True if some of them are transparent."""
    import PIL.Image as pil

    try:
        # Pillow warns of large pictures and refuses larger ones.
        with warnings.catch_warnings(action="ignore"):
            opened = pil.open(file, formats=FORMATS)
    except pil.UnidentifiedImageError as error:
        rule = f"must be {', '.join(FORMATS)}"
        raise TableError("images", rule, file.name) from error
    with opened as picture:
        if picture.mode[0] in "IF":
            rule = "must have 8 bits per channel"
            raise TableError("images", rule, f"{picture.mode} in {file.name}")
        mode = "L" if picture.mode in ("1", "L", "LA") else "RGB"
        if "A" in picture.getbands() or "transparency" in picture.info:
            layers = picture.convert("RGBA")
            if np.asarray(layers)[..., 3].min() < WHITE:
                color = (background, background, background, WHITE)
                below = pil.new("RGBA", picture.size, color)
                flat = pil.alpha_composite(below, layers).convert("RGB")
                return np.asarray(flat.convert(mode)), True
        return np.asarray(picture.convert(mode)), False
