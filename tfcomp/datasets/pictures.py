"""Pictures: files and bytes that Pillow decodes, and arrays that are scaled."""

import io
import math
import os
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy import ndarray as Array

from tfcomp.config.process import count_memory
from tfcomp.datasets.table_columns import TableError

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

    names: Sequence[str]
    read: Callable[[int], Array]

    def __len__(self) -> int:
        return len(self.names)

    def __getitem__(self, number: int) -> Array:
        return self.read(number)

    def name(self, number: int) -> str:
        """Names a picture in an error."""
        return self.names[number]


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
    if isinstance(images, Array) and not size:
        return images

    first = scale_image(images[0], size)
    loaded = allocate((len(images), *first.shape), first.dtype)
    for number in range(len(images)):
        image = scale_image(images[number], size)
        has_shape = image.shape == first.shape
        if not has_shape or image.dtype != first.dtype:
            name = images.names[number]  # arrays have one shape
            rule = f"must all be {first.dtype} {list(first.shape)}"
            got = f"{image.dtype} {list(image.shape)} in {name}"
            hint = "--image_size=64 scales them"
            if has_shape:
                hint = "save all in one format"
            raise TableError("images", rule, f"{got} ({hint})")
        loaded[number] = image
    return loaded


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
    """Returns an empty array of images, if they fit into the memory.

    Args:
        shape: The shape of the array.
        dtype: The type of its numbers.

    Raises:
        TableError: If the memory of this machine is too small.
    """
    num_bytes = math.prod(shape) * dtype.itemsize
    check_bytes("images", num_bytes)
    return np.empty(shape, dtype)


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
