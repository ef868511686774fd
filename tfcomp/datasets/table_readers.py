"""Factor tables from `.npz` and HDF5 files, and folders with a CSV file.

docs/data.md has our layout, the arguments of `FactorTable`. dSprites and
3DShapes are recognized by their members. No pickle is ever opened. Plugins
register more formats:

    @READERS.register(".npz")         a file, by its ending, or `tfds:NAME`
    @FOLDER_READERS.register(".mat")  a folder, by the ending of files in it
    def read(path: Path) -> FactorTable: ...

    @LAYOUTS.register("MPI3D")        the arrays of an `.npz` or HDF5 file
    def read(arrays: Arrays) -> FactorTable | None: ...

A layout is None for arrays of another one.
"""

import os
import warnings
import zipfile
from collections.abc import Callable, Collection
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy import ndarray as Array

from tfcomp.config.hashes import (
    PICTURE_HEADS,
    TABLES,
    find_picture_column,
    list_files,
    read_cells,
)
from tfcomp.config.plugins import Registry
from tfcomp.datasets.factor_table import FactorTable, allocate, check_bytes
from tfcomp.datasets.published import describe_published
from tfcomp.datasets.table_factors import TableError

if TYPE_CHECKING:
    import pandas as pd

READERS = Registry("data")
FOLDER_READERS = Registry("data")
LAYOUTS = Registry("data")

TEXTS = ("names", "kinds", "levels", "units")
OPTIONS = ("values", "sizes", *TEXTS)
MAX_BYTES = 2**28  # of an array that is not the images; dSprites has 35 MB
DIGITS = 12  # after the point of a number, others are rounding
CLOSE = 1e-6  # of a number: rounding makes no larger differences
# Pillow also opens formats that start other programs (EPS).
FORMATS = (
    "PNG",
    "JPEG",
    "BMP",
    "GIF",
    "TIFF",
    "WEBP",
    "PPM",
)


@dataclass(frozen=True)
class Arrays:
    """The arrays of a file, which are read one by one.

    Attributes:
        names: Their names; in a group of HDF5, `group/name`.
        read: `read(name)` returns an array, `read(name, None)` also one that is
            as large as images are.
    """

    names: Collection[str]
    read: Callable[..., Array]


@READERS.register(".npz")
def read_npz(path: str | Path) -> FactorTable:
    """Returns the table of an `.npz` file."""
    return _make_table(_open_npz(path))


def _open_npz(path: str | Path) -> Arrays:
    """Returns the members of an `.npz` file."""
    with zipfile.ZipFile(path) as archive:
        members = archive.infolist()
    sizes = {m.filename.removesuffix(".npy"): m.file_size for m in members}

    def read(name: str, most: int | None = MAX_BYTES) -> Array:
        """Reads a member, of at most `most` bytes."""
        check_bytes(name, sizes[name], most)
        with np.load(path) as arrays:
            return arrays[name]

    return Arrays(list(sizes), read)


def read_embeddings(path: str) -> tuple[FactorTable, dict[str, Array]]:
    """Reads the table and the layers of an `.npz` file.

    It has `classes`, or a column [n] for each factor. `images` are optional,
    and every other array [n, ...] is a layer.
    """
    members = _open_npz(path)
    # Without classes, the name of an option may be the name of a factor.
    options = OPTIONS if "classes" in members.names else ()
    arrays = {}
    for name in members.names:
        if name not in options:
            arrays[name] = members.read(name, None)
    images = arrays.pop("images", None)
    classes = arrays.pop("classes", None)
    columns = {name: a for name, a in arrays.items() if a.ndim == 1}
    layers = {name: a for name, a in arrays.items() if a.ndim != 1}
    if classes is None:
        return tabulate(columns, images), layers
    return FactorTable(images, classes, **_read_options(members)), layers


@READERS.register(".h5")
@READERS.register(".hdf5")
def read_h5(path: str | Path) -> FactorTable:
    """Returns the table of an HDF5 file."""
    import h5py

    def read(name: str, most: int | None = MAX_BYTES) -> Array:
        """Reads numbers or texts, of at most `most` bytes."""
        member = members[name]
        check_bytes(name, member.nbytes, most)
        if h5py.check_string_dtype(member.dtype):
            return np.asarray(member.asstr()[()], object)
        if member.dtype.kind not in "buif":
            raise TableError(name, "must be numbers or text", member.dtype)
        return member[()]

    # Some file systems of clusters have no locks, and data are only read.
    with h5py.File(path, "r", locking=False) as file:
        members = _list_arrays(file)
        if isinstance(file.get("latents"), h5py.Group):
            for name, array in _list_arrays(file["latents"]).items():
                members[f"latents/{name}"] = array
        return _make_table(Arrays(members, read))


def _list_arrays(group: Any) -> dict[str, Any]:
    """Returns the arrays of a group.

    Raises:
        TableError: For an array whose numbers lie in another file, which the
            hash of the data does not cover.
    """
    import h5py

    arrays = {}
    for name in group:
        member = group.get(name)
        if not isinstance(member, h5py.Dataset):
            continue
        is_elsewhere = member.file.filename != group.file.filename
        if is_elsewhere or member.external or member.is_virtual:
            raise TableError(name, "must lie in the file itself", "a link")
        arrays[name] = member

    return arrays


def _make_table(arrays: Arrays) -> FactorTable:
    """Returns the table of arrays in our layout or a registered one."""
    if {"images", "classes"} <= {*arrays.names}:
        options = _read_options(arrays)
        images = arrays.read("images", None)
        return FactorTable(images, arrays.read("classes"), **options)

    for name in LAYOUTS.names():
        table = LAYOUTS.get(name).load()(arrays)
        if table is not None:
            return table
    rule = "must have images and classes (docs/data.md has all layouts)"
    raise TableError("members", rule, ", ".join(sorted(arrays.names)) or "none")


@LAYOUTS.register("dSprites")
def read_dsprites(arrays: Arrays) -> FactorTable | None:
    """Recognizes dSprites, as `.npz` or HDF5, by the names of its members."""
    for latents in ("latents_", "latents/"):
        if {"imgs", f"{latents}classes"} <= {*arrays.names}:
            columns = describe_published("dSprites")
            if f"{latents}values" in arrays.names:
                columns["values"] = arrays.read(f"{latents}values")
            images = arrays.read("imgs", None)
            classes = arrays.read(f"{latents}classes")
            return FactorTable(images, classes, **columns)
    return None


@LAYOUTS.register("3DShapes")
def read_3dshapes(arrays: Arrays) -> FactorTable | None:
    """Recognizes 3DShapes, whose labels are the values of six factors."""
    if not {"images", "labels"} <= {*arrays.names}:
        return None
    labels = arrays.read("labels")
    options = describe_published("3DShapes")
    names = options.pop("names")
    if labels.ndim != 2 or labels.shape[1] != len(names):
        raise TableError("labels", "must be [n, 6]", list(labels.shape))

    columns = dict(zip(names, labels.T, strict=True))
    images = arrays.read("images", None)
    return tabulate(columns, images, **options)


def _read_options(arrays: Arrays) -> dict[str, Any]:
    """Returns the optional members, as arguments of `FactorTable`."""
    options: dict[str, Any] = {}
    for name in OPTIONS:
        if name not in arrays.names:
            continue
        option: Any = arrays.read(name)
        if name in TEXTS:
            if option.dtype.kind not in "SUO" or option.ndim != 1:
                got = f"{option.dtype} {list(option.shape)}"
                raise TableError(name, "must be a list of texts", got)
            option = option.astype(str).tolist()
        if name == "levels":
            option = [text.split(",") if text else None for text in option]
        options[name] = option
    return options


def tabulate(
    columns: Any,
    images: Array | None = None,
    **options: Any,
) -> FactorTable:
    """Makes a table of columns of numbers or text.

    Args:
        columns: An array [n] for each factor, by its name; also a data frame.
        images: Images as `FactorTable` takes them.
        **options: Its options, but for `values`.

    Raises:
        TableError: If columns or options break a rule.
    """
    if not len(columns):
        rule = "must be given, as classes [n, F] or columns [n]"
        raise TableError("factors", rule, "none")
    import pandas as pd

    names: list[str] = []
    classes: list[Array] = []
    values = []
    levels = []
    for name in columns:
        column = np.asarray(columns[name])
        numbers = None
        texts = None
        if column.dtype.kind in "buif":
            index, numbers = _number_values(column, str(name))
        else:
            index, texts = pd.factorize(column.astype(str))
        if classes and len(index) != len(classes[0]):
            rule = f"must have {len(classes[0]):,} rows, as {names[0]} has"
            raise TableError(f"the column {name}", rule, f"{len(index):,}")
        names.append(str(name))
        classes.append(index)
        values.append(numbers)
        levels.append(texts)
    options = {"levels": levels} | options
    return FactorTable(
        images,
        np.stack(classes, axis=1),
        values=values,
        names=names,
        **options,
    )


def _number_values(column: Array, name: str) -> tuple[Array, Array]:
    """Returns classes [n] of numbers, equal but for rounding, and values."""
    if not np.isfinite(column).all():
        raise TableError(f"the column {name}", "must have no gaps", "NaN")
    rounded = np.round(column.astype(float), DIGITS)
    values, index = np.unique(rounded, return_inverse=True)
    index = index.reshape(-1)

    steps = np.diff(values)
    is_next = steps > CLOSE * np.abs(values[1:])
    classes = np.cumsum([0, *is_next])
    _, first = np.unique(classes, return_index=True)
    return classes[index], values[first]


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
    frame = read_cells(table)
    picture_column = find_picture_column(frame)
    heads = []
    for head in frame:
        is_index = str(head).startswith("Unnamed:")  # of pandas
        if head != picture_column and not is_index:
            heads.append(str(head))
    if frame.empty or not picture_column or not heads:
        rule = f"must have rows, {PICTURE_HEADS[0]} and a column per factor"
        raise TableError(table.name, rule, ", ".join(map(str, frame))[:100])

    images = _read_images(folder, table.name, frame[picture_column].tolist())
    columns = {}
    kinds = []
    for head in heads:
        name, _, kind = head.partition(":")
        columns[name] = _read_column(frame[head], kind, table.name)
        kinds.append(kind or None)
    return tabulate(columns, images, kinds=kinds)


def _read_column(cells: "pd.Series[str]", kind: str, table: str) -> Array:
    """Returns a column as numbers if it has no text, else as text."""
    import pandas as pd

    numbers = pd.to_numeric(cells, errors="coerce").to_numpy(float)
    is_text = ~np.isfinite(numbers)
    is_wrong = cells == ""
    if kind != "categorical" and not is_text.all():
        is_wrong = is_text
    if is_wrong.any():
        row = int(is_wrong.argmax())
        rule = f"must have a number, or all texts, in {cells.name}"
        got = f"{cells.iloc[row]!r} in row {row + 2}"
        raise TableError(table, rule, got)

    # Categories such as 1 and 01, or 1E2 and 100, are equal as numbers.
    num_values = len(np.unique(numbers.astype(np.float32)))
    is_merged = kind == "categorical" and num_values < cells.nunique()
    if is_text.any() or is_merged:
        return cells.to_numpy(str)
    return numbers


def _read_images(folder: Path, table: str, names: list[str]) -> Array:
    absent = [name for name in names if not os.path.isfile(folder / name)]
    if absent:
        rule = "must name images that are in the folder"
        got = f"{absent[0][:100]} ({len(absent)} are absent)"
        raise TableError(table, rule, got)
    if len({*names}) < len(names):
        rule = "must name each image once"
        raise TableError(table, rule, f"{len({*names})} names")

    first = _read_picture(folder / names[0])
    images = allocate((len(names), *first.shape), first.dtype)
    for number, name in enumerate(names):
        image = _read_picture(folder / name)
        if (image.shape, image.dtype) != (first.shape, first.dtype):
            rule = f"must all be {first.dtype} {list(first.shape)}"
            got = f"{image.dtype} {list(image.shape)} in {name}"
            raise TableError("images", rule, got)
        images[number] = image
    return images


def _read_picture(file: Path) -> Array:
    """Returns the pixels, upright; transparent ones show a black ground."""
    import PIL.Image as pil
    from PIL import ImageOps

    try:
        # Pillow warns of large pictures and refuses larger ones.
        with warnings.catch_warnings(action="ignore"):
            opened = pil.open(file, formats=FORMATS)
    except pil.UnidentifiedImageError as error:
        rule = f"must be {', '.join(FORMATS)}"
        raise TableError("images", rule, file.name) from error
    with opened as file_picture:
        picture = ImageOps.exif_transpose(file_picture)
    if picture.mode == "F":
        rule = "must have integer pixels"
        raise TableError("images", rule, f"floats in {file.name}")
    if picture.mode.startswith("I"):  # gray, of 16 bits
        return np.asarray(picture)

    mode = "RGB"
    if picture.mode in ("1", "L", "LA"):
        mode = "L"
    ground = pil.new("RGBA", picture.size, "black")
    ground.alpha_composite(picture.convert("RGBA"))
    return np.asarray(ground.convert("RGB").convert(mode))
