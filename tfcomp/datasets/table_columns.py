"""Columns of a table as users have them: numbers, text, dates, and pictures.

All formats of tables come through here: data frames, arrays by name, CSV and
parquet files. A column is numbered when it is used as a factor, so that others
may hold anything. A column of pictures names files, or has their bytes, which
Pillow decodes.
"""

import io
import math
import mmap
import os
import shutil
import tempfile
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy import ndarray as Array

from tfcomp.config.process import count_memory

if TYPE_CHECKING:
    import pandas as pd

# Attribute of a frame whose cells are text, as of CSV: some of it is numbers.
UNTYPED = "tfcomp_untyped"
DIGITS = 12  # after the point of a number, others are rounding
# Of a number, and of the range of all: rounding makes no larger differences.
CLOSE = 1e-6
CLOSE_IN_RANGE = 1e-4
# Bytes of images above which they are mapped to a file.
MAX_IN_MEMORY = 2**29
PART = 1024  # images that are read at a time
# Pillow also opens formats that start other programs (EPS).
PICTURE_FORMATS = (
    "PNG",
    "JPEG",
    "BMP",
    "GIF",
    "TIFF",
    "WEBP",
    "PPM",
)


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
        index = columns.index
        names = [name for name in index.names if name is not None]
        is_label = index.is_unique and index.nlevels == 1
        if not names or (is_label and len(columns.columns)):
            return columns
        return columns.reset_index(level=names)

    arrays: dict[str, Array] = {}
    first = ""
    for name, column in dict(columns).items():
        array = np.asarray(column)
        if array.ndim != 1:
            rule = "must have one value for each row"
            raise TableError(f"the column {name}", rule, list(array.shape))
        first = first or name
        num_rows = len(arrays.get(first, array))
        if len(array) != num_rows:
            rule = f"must have {num_rows:,} rows, as {first} has"
            raise TableError(f"the column {name}", rule, f"{len(array):,}")
        if array.dtype.kind == "S":
            array = np.char.decode(array, "utf-8", "replace")
        # Pandas takes no numbers in the byte order of another machine.
        native = array.dtype.newbyteorder("=")
        arrays[name] = array.astype(native)
    return pd.DataFrame(arrays)


def number_cells(cells: "pd.Series", kind: str = "") -> Levels:
    """Numbers the levels of a column.

    Numbers are sorted, and equal ones but for rounding are one level. Names
    have the order of the rows, or of a frame's categories.

    Args:
        cells: The column; its index names the rows in errors. With the
            attribute `UNTYPED`, all cells are text, and some mean numbers.
        kind: The kind of the factor; `categorical` keeps 01 and 1 apart.

    Raises:
        TableError: For a gap, and for text among numbers.
    """
    import pandas as pd

    if cells.attrs.get(UNTYPED):
        cells = _find_type(cells, kind)
    cells = cells.infer_objects()
    is_gap = cells.isna() | cells.isin([np.inf, -np.inf])
    _refuse(cells, is_gap, "must have no gaps")

    types = pd.api.types
    if types.is_bool_dtype(cells):
        return Levels(cells.to_numpy(int), names=("False", "True"))
    if types.is_datetime64_any_dtype(cells):
        first = cells.min()
        seconds = (cells - first).dt.total_seconds()
        return number_close(seconds.to_numpy(), f"s since {first}")
    if types.is_numeric_dtype(cells) and not types.is_complex_dtype(cells):
        return number_close(cells.to_numpy(float))

    is_text = cells.map(lambda cell: not isinstance(cell, int | float))
    if kind != "categorical" and not is_text.all():
        rule = "must have numbers alone, or texts alone"
        hint = f", {cells.name}:categorical takes both"
        _refuse(
            cells,
            is_text,
            rule,
            hint,
        )
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
    texts = cells.astype(object)
    mixed = texts.where(~is_number, numbers.astype(object))
    return mixed.where(cells != "", None)


def _refuse(
    cells: "pd.Series",
    is_wrong: "pd.Series",
    rule: str,
    hint: str = "",
) -> None:
    """Refuses wrong cells; the error names the first one.

    Args:
        cells: The column.
        is_wrong: A mask of its cells.
        rule: What must hold.
        hint: What to type, beside `--ignore`.
    """
    if not is_wrong.any():
        return
    place = int(is_wrong.to_numpy().argmax())
    row = cells.index[place]
    cell = cells.iloc[place]
    if isinstance(cell, np.generic):
        cell = cell.item()  # whose text is nan, not np.float64(nan)
    got = f"{cell!r} in row {row}"
    hint = f"--ignore={cells.name} leaves it out{hint}"
    raise TableError(f"the column {cells.name}", rule, f"{got} ({hint})")


def number_close(
    cells: Array,
    unit: str = "",
) -> Levels:
    """Numbers levels that are equal but for rounding.

    Args:
        cells: Numbers, [n].
        unit: Their unit.
    """
    rounded = np.round(cells.astype(float), DIGITS)
    values, index = np.unique(rounded, return_inverse=True)

    of_value = CLOSE * np.abs(values[1:])
    of_range = CLOSE_IN_RANGE * np.ptp(values)
    tolerance = np.fmin(of_value, of_range)  # NaN has no range
    is_next = np.diff(values) > tolerance

    classes = np.cumsum([0, *is_next])
    is_first = np.array([True, *is_next])
    return Levels(
        index=classes[index],
        values=values[is_first],
        unit=unit,
    )


@dataclass(frozen=True)
class Pictures:
    """Pictures that are decoded one by one.

    Attributes:
        names: Their names, for errors.
        read: Returns the picture of a number, [H, W] or [H, W, C].
    """

    names: Sequence[object]
    read: Callable[[int], Array]


def open_files(folder: Path, names: Sequence[str], table: str) -> Pictures:
    """Returns the pictures that a table names.

    Args:
        folder: The folder that the names are relative to.
        names: Names of files.
        table: The name of the table, for errors.

    Raises:
        TableError: If a file is absent, or is named twice.
    """
    absent = [name for name in names if not os.path.isfile(folder / name)]
    if absent:
        rule = "must name images that are in the folder"
        got = f"{absent[0][:100]!r} ({len(absent)} are absent)"
        raise TableError(table, rule, got)
    num_names = len({*names})
    if num_names < len(names):
        rule = "must name each image once"
        raise TableError(table, rule, f"{num_names} names")

    def read(number: int) -> Array:
        return decode_picture(folder / names[number], names[number])

    return Pictures(names, read)


def load_images(images: Array | Pictures, size: int = 0) -> Array:
    """Reads images into an array [n, H, W] or [n, H, W, C].

    Args:
        images: The images.
        size: Rows and columns that each is scaled to; 0 for its own.

    Raises:
        TableError: If they differ in size or type, or exceed the memory.
    """
    if isinstance(images, Array):
        if not size:
            return images
        images = Pictures(range(len(images)), images.__getitem__)

    first = scale_image(images.read(0), size)
    shape = (len(images.names), *first.shape)
    loaded = allocate(shape, first.dtype)
    for number, name in enumerate(images.names):
        image = scale_image(images.read(number), size)
        if image.shape != first.shape or image.dtype != first.dtype:
            rule = f"must all be {first.dtype} {list(first.shape)}"
            got = f"{image.dtype} {list(image.shape)} in {name}"
            hint = "--image_size=64 scales all"
            raise TableError("images", rule, f"{got} ({hint})")
        loaded[number] = image
        if number % PART == 0:
            release_memory(loaded)
    return loaded


def scale_image(image: Array, size: int) -> Array:
    """Scales an image [H, W] or [H, W, C] to rows and columns of a number.

    Pixels are weighted means (bilinear, over all that a new pixel covers).
    """
    import PIL.Image as pil

    shape = (size, size)
    if not size or image.shape[:2] == shape:
        return image
    stacked = np.atleast_3d(image)
    channels = []
    for channel in np.moveaxis(stacked, -1, 0):
        picture = pil.fromarray(channel.astype(np.float32))
        scaled = picture.resize(shape, pil.Resampling.BILINEAR)
        channels.append(np.asarray(scaled))

    pixels = np.stack(channels, axis=-1)
    pixels = pixels.reshape(*shape, *image.shape[2:])
    if image.dtype.kind == "f":
        return pixels.astype(image.dtype)
    return np.round(pixels).astype(image.dtype)


def decode_picture(
    source: Path | io.BytesIO,
    name: str,
) -> Array:
    """Returns the pixels, upright; transparent ones show a black ground.

    Args:
        source: A file, or its content.
        name: Its name, for errors.

    Raises:
        TableError: If it is no picture, or its pixels are no integers.
    """
    import PIL.Image as pil
    from PIL import ImageOps

    try:
        # Pillow warns of large pictures and refuses larger ones.
        with warnings.catch_warnings(action="ignore"):
            opened = pil.open(source, formats=PICTURE_FORMATS)
    except pil.UnidentifiedImageError as error:
        rule = f"must be {', '.join(PICTURE_FORMATS)}"
        raise TableError("images", rule, os.path.basename(name)) from error
    with opened as file_picture:
        picture = ImageOps.exif_transpose(file_picture)
    if picture.mode == "F":
        rule = "must have integer pixels"
        got = f"floats in {os.path.basename(name)}"
        raise TableError("images", rule, got)
    if picture.mode.startswith("I"):  # gray, of 16 bits
        return np.asarray(picture)

    mode = "RGB"
    if picture.mode in ("1", "L", "LA"):
        mode = "L"
    ground = pil.new("RGBA", picture.size, "black")
    ground.alpha_composite(picture.convert("RGBA"))
    return np.asarray(ground.convert("RGB").convert(mode))


def allocate(shape: Sequence[int], dtype: Any) -> Array:
    """Returns an empty array of images, in memory or, if it is large, mapped.

    A mapped array lies in a temporary file, which vanishes with the process.

    Args:
        shape: The shape of the array.
        dtype: The type of its numbers.

    Raises:
        TableError: If neither disk nor memory have room for it.
    """
    num_bytes = math.prod(shape) * dtype.itemsize
    if num_bytes > MAX_IN_MEMORY:
        folder = tempfile.gettempdir()
        if shutil.disk_usage(folder).free > 2 * num_bytes:
            with tempfile.TemporaryFile() as file:
                return np.memmap(
                    file,
                    dtype,
                    mode="w+",
                    shape=tuple(shape),
                )
    check_bytes("images", num_bytes)
    return np.empty(shape, dtype)


def release_memory(images: Array) -> None:
    """Lets pages of mapped images leave the memory; their file has them."""
    # A copy on write would lose what was written.
    is_shared = isinstance(images, np.memmap) and images.mode != "c"
    can_release = hasattr(mmap, "MADV_DONTNEED")  # not on Windows
    if is_shared and can_release and isinstance(images.base, mmap.mmap):
        images.base.madvise(mmap.MADV_DONTNEED)


def describe_storage(images: Array) -> list[str]:
    """Says where many images are, in one note; none for few images."""
    if images.nbytes <= MAX_IN_MEMORY:
        return []
    size = f"images: {images.nbytes >> 20:,} MB"
    if isinstance(images, np.memmap):
        return [f"{size} in a file that is read in batches, not in memory"]
    return [f"{size} are held in memory"]


def check_bytes(
    name: str,
    size: int,
) -> None:
    """Refuses arrays that are larger than the memory.

    Args:
        name: The name of the array, for the error.
        size: Its size in bytes.

    Raises:
        TableError: If the array is larger.
    """
    most = count_memory()
    if size > most:
        rule = f"must take at most {most >> 20:,} MB"
        raise TableError(name, rule, f"{size >> 20:,} MB")
