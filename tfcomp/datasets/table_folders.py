"""Factor tables from folders: pictures with a table of text."""

import os
import warnings
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from tfcomp.config.hashes import TABLES
from tfcomp.datasets import table_files
from tfcomp.datasets.factor_table import FactorTable
from tfcomp.datasets.table_checks import TableError, allocate
from tfcomp.datasets.table_formats import FOLDER_READERS

if TYPE_CHECKING:
    import pandas as pd

# Pillow also opens formats that start other programs (EPS).
FORMATS = ("PNG", "JPEG", "BMP", "GIF", "TIFF", "WEBP", "PPM")
PICTURE_HEADS = ("file", "file_name")  # columns with the name of a picture
SEPARATORS = ",;\t"


def list_files(folder: Path, *endings: str) -> list[Path]:
    """Returns sorted files by ending, without hidden ones (`._a.png`)."""
    return sorted(
        path
        for path in folder.iterdir()
        if path.suffix.lower() in endings and not path.name.startswith(".")
    )


def read_folder(folder: Path) -> FactorTable:
    """Reads a folder with one CSV file, or files of a registered format."""
    tables = list_files(folder, *TABLES)
    if len(tables) == 1:
        return _read_csv(folder, tables[0])

    endings = FOLDER_READERS.names()
    if not tables:
        for ending in endings:
            if list_files(folder, ending):
                return FOLDER_READERS.get(ending).load()(folder)
    rule = f"must have one .csv file (or files {', '.join(endings)})"
    raise TableError("the folder", rule, f"{len(tables)} .csv files")


def _read_csv(folder: Path, table: Path) -> FactorTable:
    """Returns the table of a CSV file (docs/data.md) and its pictures."""
    frame = _read_cells(table)
    file_heads = [head for head in PICTURE_HEADS if head in frame]
    if frame.empty or not file_heads:
        rule = (
            f"must have rows and columns {PICTURE_HEADS[0]} and one per factor"
        )
        raise TableError(
            table.name, rule, ", ".join(map(str, frame.columns))[:100]
        )

    files = frame.pop(file_heads[0])
    images = _read_images(folder, table.name, files.tolist())
    heads = [head for head in frame if not str(head).startswith("Unnamed:")]
    if not heads:
        raise TableError(table.name, "must have a column per factor", "none")
    columns, kinds = {}, []
    for head in heads:
        name, _, kind = str(head).partition(":")
        columns[name] = _read_column(table.name, name, kind, frame[head])
        kinds.append(kind or None)
    return table_files.tabulate(columns, images, kinds=kinds)


def _read_cells(table: Path) -> "pd.DataFrame":
    """Reads a table as text.

    Cells lose spaces at their ends, and heads have `_` for spaces. With
    semicolons between columns, decimal commas become points.
    """
    import pandas as pd

    with table.open(encoding="utf-8-sig") as file:
        separator = max(SEPARATORS, key=file.readline().count)

    with warnings.catch_warnings(action="error"):  # of cells that are lost
        frame = pd.read_csv(
            table,
            sep=separator,
            encoding="utf-8-sig",
            dtype=str,
            keep_default_na=False,
            index_col=False,
        )

    frame = frame.fillna("").apply(lambda cells: cells.str.strip())
    if separator == ";":
        frame = frame.replace(r"^([+-]?\d*),(\d+)$", r"\1.\2", regex=True)
    frame.columns = frame.columns.str.strip().str.replace(" ", "_")
    return frame


def _read_column(
    table: str, name: str, kind: str, cells: "pd.Series[str]"
) -> np.ndarray:
    """Returns a column as numbers if it has no text, else as text."""
    import pandas as pd

    numbers = pd.to_numeric(cells, errors="coerce").to_numpy(float)
    is_missing = cells.str.lower().isin(["", "nan"]) | np.isinf(numbers)
    is_text = np.isnan(numbers)
    rule, odd = f"must have a value in every row of {name}", is_missing
    if not odd.any() and kind != "categorical" and is_text.mean() <= 0.5:
        cure = f"the head {name}:categorical"
        rule, odd = f"must have numbers alone in {name}, or {cure}", is_text
    if odd.any():
        row = int(odd.argmax())
        raise TableError(table, rule, f"{cells.iloc[row]!r} in row {row + 2}")
    # Categories such as 1 and 01, or 1E2 and 100, are equal as numbers alone.
    is_merged = len(np.unique(numbers)) < cells.nunique()
    is_text |= is_merged and kind == "categorical"
    return cells.to_numpy(str) if is_text.any() else numbers


def _read_images(folder: Path, table: str, names: list[str]) -> np.ndarray:
    absent = [name for name in names if not os.path.isfile(folder / name)]
    if absent:
        rule = "must name images that are in the folder"
        got = f"{absent[0][:100]} ({len(absent)} are absent)"
        raise TableError(table, rule, got)
    name, count = Counter(names).most_common(1)[0]
    if count > 1:
        raise TableError(table, "must name each image once", name)
    first = _read_picture(folder / names[0])
    images = allocate((len(names), *first.shape), first.dtype)
    for number, name in enumerate(names):
        image = _read_picture(folder / name)
        if image.shape != first.shape:
            got = f"{list(image.shape)} in {name}"
            raise TableError("images", f"must all be {list(first.shape)}", got)
        images[number] = image
    return images


def _read_picture(file: Path) -> np.ndarray:
    """Returns the pixels; transparent ones show a black ground."""
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
            ground = pil.new("RGBA", picture.size, (0, 0, 0, 255))
            flat = pil.alpha_composite(ground, layers).convert("RGB")
            return np.asarray(flat.convert(mode))
        return np.asarray(picture.convert(mode))
