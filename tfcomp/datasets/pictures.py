"""Pictures: files and bytes that Pillow decodes, and arrays that are scaled."""

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
from typing import Any

import numpy as np
from numpy import ndarray as Array

from tfcomp.config.process import count_memory
from tfcomp.datasets.table_columns import TableError

# Bytes of images above which they are mapped to a file.
MAX_IN_MEMORY = 2**29
PART = 1024  # images that are read at a time
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
    if not isinstance(images, Array):
        return _decode_all(images, size)
    if not size:
        return images
    numbers = range(len(images))
    return _decode_all(Pictures(numbers, images.__getitem__), size)


def _decode_all(pictures: Pictures, size: int) -> Array:
    """Decodes and scales pictures into one array."""
    first = scale_image(pictures.read(0), size)
    count = len(pictures.names)
    images = allocate((count, *first.shape), first.dtype)
    for number in range(count):
        image = scale_image(pictures.read(number), size)
        _check_equal(image, first, pictures.names[number])
        images[number] = image
        if number % PART == 0:
            release_memory(images)
    return images


def _check_equal(image: Array, first: Array, name: object) -> None:
    """Refuses an image of another size or type than the first one."""
    has_shape = image.shape == first.shape
    if has_shape and image.dtype == first.dtype:
        return
    rule = f"must all be {first.dtype} {list(first.shape)}"
    got = f"{image.dtype} {list(image.shape)} in {name}"
    if not has_shape:
        got += " (--image_size=64 scales all)"
    raise TableError("images", rule, got)


def scale_image(image: Array, size: int) -> Array:
    """Scales an image [H, W] or [H, W, C] to rows and columns of a number.

    Pixels are weighted means (bilinear, over all that a new pixel covers).
    """
    import PIL.Image as pil

    if not size or image.shape[:2] == (size, size):
        return image
    channels = []
    for channel in np.moveaxis(np.atleast_3d(image), -1, 0):
        picture = pil.fromarray(channel.astype(np.float32))
        scaled = picture.resize((size, size), pil.Resampling.BILINEAR)
        channels.append(np.asarray(scaled))

    pixels = np.stack(channels, axis=-1)
    pixels = pixels.reshape(size, size, *image.shape[2:])
    if image.dtype.kind == "f":
        return pixels.astype(image.dtype)
    return np.round(pixels).astype(image.dtype)


def decode_picture(source: Path | bytes, name: str) -> Array:
    """Returns the pixels, upright; transparent ones show a black ground.

    Args:
        source: A file, or its content.
        name: Its name, for errors.

    Raises:
        TableError: If it is no picture, or its pixels are no integers.
    """
    import PIL.Image as pil
    from PIL import ImageOps

    file: Any = source
    if isinstance(source, bytes):
        file = io.BytesIO(source)
    try:
        # Pillow warns of large pictures and refuses larger ones.
        with warnings.catch_warnings(action="ignore"):
            opened = pil.open(file, formats=FORMATS)
    except pil.UnidentifiedImageError as error:
        rule = f"must be {', '.join(FORMATS)}"
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
                return np.memmap(file, dtype, mode="w+", shape=tuple(shape))
    check_bytes("images", num_bytes)
    return np.empty(shape, dtype)


def copy_parts(read: Callable[[slice], Array], like: Any) -> Array:
    """Copies images that are too large to be read at once.

    Args:
        read: Returns the images of some rows.
        like: Has their shape [n, ...] and type.
    """
    images = allocate(like.shape, like.dtype)
    for start in range(0, len(images), PART):
        rows = slice(start, start + PART)
        images[rows] = read(rows)
        release_memory(images)
    return images


def release_memory(images: Array) -> None:
    """Lets pages of mapped images leave the memory; their file has them."""
    # A copy on write would lose what was written.
    is_shared = isinstance(images, np.memmap) and images.mode != "c"
    can_release = hasattr(mmap, "MADV_DONTNEED")  # not on Windows
    if is_shared and can_release and isinstance(images.base, mmap.mmap):
        images.base.madvise(mmap.MADV_DONTNEED)


def describe_storage(images: Array) -> str:
    """Says where many images are; empty for few."""
    if images.nbytes <= MAX_IN_MEMORY:
        return ""
    size = f"images: {images.nbytes >> 20:,} MB"
    if isinstance(images, np.memmap):
        return f"{size} in a file that is read in batches, not in memory"
    return f"{size} are held in memory"


def check_bytes(name: str, size: int, most: int | None = None) -> None:
    """Refuses arrays above a size.

    Args:
        name: The name of the array, for the error.
        size: Its size in bytes.
        most: The largest size; by default the size of the memory.

    Raises:
        TableError: If the array is larger.
    """
    if most is None:
        most = count_memory()
    if size > most:
        rule = f"must take at most {most >> 20:,} MB"
        raise TableError(name, rule, f"{size >> 20:,} MB")
