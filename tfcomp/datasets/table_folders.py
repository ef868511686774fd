"""Factor tables from folders: pictures with a table of text, `.mat` files."""

import io
import math
import os
import warnings
import zlib
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from tfcomp.config.data_files import (
    PICTURE_HEADS,
    TABLES,
    find_picture_column,
    list_files,
    read_cells,
)
from tfcomp.datasets import table_files
from tfcomp.datasets.factor_table import FactorTable
from tfcomp.datasets.table_checks import TableError, allocate

if TYPE_CHECKING:
    import pandas as pd

# Pillow also opens formats that start other programs (EPS).
FORMATS = ("PNG", "JPEG", "BMP", "GIF", "TIFF", "WEBP", "PPM")
CAR_BYTES = 2**28  # of a car; a car of Cars3D takes 5 MB
MAT_HEAD, COMPRESSED = 128, 15  # bytes, and the type of a compressed variable
TOO_LARGE = f"must take at most {CAR_BYTES >> 20} MB"

# smallNORB has matrices of its own format under the name `.mat`.
NORB_KINDS = ("cat", "info", "dat")
NORB_TYPES: dict[int, np.dtype[Any]] = {
    0x1E3D4C55: np.dtype("u1"),
    0x1E3D4C54: np.dtype("<i4"),
}


def read_folder(folder: Path) -> FactorTable:
    """Reads a folder with one CSV file, of Cars3D, or of smallNORB."""
    tables = list_files(folder, *TABLES)
    if len(tables) == 1:
        return _read_csv(folder, tables[0])
    files = list_files(folder, ".mat")
    if not files or tables:
        rule = (
            "must have one .csv file (or the .mat files of Cars3D or smallNORB)"
        )
        raise TableError("the folder", rule, f"{len(tables)} .csv files")
    norb = [f for f in files if f.stem.rpartition("-")[2] in NORB_KINDS]
    return _read_norb(norb) if norb else _read_cars(files)


def _read_csv(folder: Path, table: Path) -> FactorTable:
    """Returns the table of a CSV file (docs/data.md) and its pictures."""
    frame = _read_cells(table)
    files = frame.pop(find_picture_column(frame))
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
    """Returns the cells of a table, which must name pictures."""
    frame = read_cells(table)
    if frame.empty or not find_picture_column(frame):
        rule = (
            f"must have rows and columns {PICTURE_HEADS[0]} and one per factor"
        )
        raise TableError(
            table.name, rule, ", ".join(map(str, frame.columns))[:100]
        )
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


def _read_cars(files: list[Path]) -> FactorTable:
    """Reads Cars3D: a file has `im`, [H, W, C, azimuth, elevation]."""
    first = _load_car(files[0])
    sizes = (*first.shape[:2], len(files))  # elevation, azimuth, type
    images = allocate((*sizes, *first.shape[2:]), first.dtype)
    for number, file in enumerate(files):
        car = _load_car(file)
        if car.shape != first.shape:
            rule = f"must have one shape in all files, as {files[0].name}"
            raise TableError("im", rule, f"another in {file.name}")
        images[:, :, number] = car
    return FactorTable(
        images.reshape(-1, *first.shape[2:]),
        np.indices(sizes).reshape(3, -1).T,
        names=["elevation", "azimuth", "type"],
        kinds=["ordered", "periodic", "categorical"],
        levels=[None, None, [file.stem for file in files]],
    )


def _load_car(file: Path) -> np.ndarray:
    """Returns the images of a car, [elevation, azimuth, H, W, C]."""
    import scipy.io

    content = io.BytesIO(_unpack(file))
    shapes = {name: shape for name, shape, _ in scipy.io.whosmat(content)}
    shape = shapes.get("im", ())
    if len(shape) != 5 or not all(shape):
        raise TableError("im", "must have 5 dimensions", file.name)
    if math.prod(shape) > CAR_BYTES // 8:  # in the largest type
        raise TableError("im", TOO_LARGE, f"{list(shape)} in {file.name}")
    content.seek(0)
    images = scipy.io.loadmat(content, variable_names=["im"])["im"]
    return images.transpose(4, 3, 0, 1, 2)


def _unpack(file: Path) -> bytes:
    """Returns a MATLAB 5 file with its variables unpacked, up to a limit."""
    content = file.read_bytes() if file.stat().st_size <= CAR_BYTES else b""
    if len(content) < MAT_HEAD:
        rule = f"must be a MATLAB 5 file of at most {CAR_BYTES >> 20} MB"
        raise TableError(file.name, rule, f"{file.stat().st_size:,} bytes")
    order: Literal["big", "little"]
    order = "big" if content[126:128] == b"MI" else "little"
    unpacked, start = content[:MAT_HEAD], MAT_HEAD
    while content[start : start + 8]:
        kind = int.from_bytes(content[start : start + 4], order)
        size = int.from_bytes(content[start + 4 : start + 8], order)
        part = content[start : start + 8 + size]
        start += len(part)
        if kind == COMPRESSED:
            left = CAR_BYTES - len(unpacked) + 1
            part = zlib.decompressobj().decompress(part[8:], left)
        unpacked += part
        if len(unpacked) > CAR_BYTES:
            raise TableError("im", TOO_LARGE, file.name)
    return unpacked


def _read_norb(files: list[Path]) -> FactorTable:
    """Reads parts of smallNORB; of two pictures of a scene, the first."""
    parts: dict[str, dict[str, np.ndarray]] = {}
    for file in files:
        prefix, _, kind = file.stem.rpartition("-")
        parts.setdefault(prefix, {})[kind] = _map_norb(file)
    for prefix, part in parts.items():
        if absent := {*NORB_KINDS} - {*part}:
            rule = "must lie beside the others of its part"
            raise TableError(f"{prefix}-{min(absent)}.mat", rule, "no file")
    classes = np.concatenate(
        [np.column_stack([p["cat"], p["info"]]) for p in parts.values()]
    )
    classes[:, 3] //= 2  # azimuths are 0, 2, 4 ... 34
    images = np.concatenate([part["dat"][:, 0] for part in parts.values()])
    known = table_files.describe_published("smallNORB")
    table_files.drop_absent(classes, known)
    return FactorTable(images, classes, **known)


def _map_norb(file: Path) -> np.ndarray:
    """Maps a matrix: type, number of dimensions, at least three sizes."""
    head = np.fromfile(file, "<i4", 2)
    if len(head) < 2 or head[0] not in NORB_TYPES or not 1 <= head[1] <= 4:
        raise TableError(file.name, "must be a matrix of smallNORB", "another")
    count = int(head[1])
    shape = np.fromfile(file, "<i4", count, offset=8).tolist()
    start = 8 + 4 * max(3, count)
    return np.memmap(file, NORB_TYPES[int(head[0])], "r", start, tuple(shape))
