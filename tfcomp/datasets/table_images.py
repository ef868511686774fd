"""Images of one's own: what is taken, and what is refused with its cure."""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from tfcomp.config.machine import count_memory
from tfcomp.datasets.table_factors import TableError

# Images that are looked at together, in bytes.
BLOCK = 2**26
COLORS = (1, 3, 4)  # channels that come first in other libraries
# Brightness is from 0 to 1; standardized images exceed that a little.
BRIGHTEST = 10.0


@dataclass(frozen=True)
class LazyImages:
    """Images [n, H, W] or [n, H, W, C] that are read when they are needed."""

    shape: tuple[int, ...]
    dtype: np.dtype
    load: Callable[[], np.ndarray]
    load_first: Callable[[], np.ndarray]


def check_images(images: Any) -> np.ndarray | LazyImages:
    """Checks what is known of images without looking at them all.

    Raises:
        TableError: In one line, with shape or type, and the cure.
    """
    if not hasattr(images, "shape"):
        images = np.asarray(images)
    if np.ma.is_masked(images):
        rule = "must not be masked (images.filled(0) fills them)"
        raise TableError("images", rule, f"{np.ma.count_masked(images)} pixels")
    shape = tuple(images.shape)
    if len(shape) not in (3, 4) or 0 in shape:
        rule = "must be [n, H, W] or [n, H, W, C] and not empty"
        if len(shape) == 2:
            rule += " (images.reshape(n, H, W))"
        raise TableError("images", rule, list(shape))
    if len(shape) == 4 and shape[1] in COLORS and shape[3] not in COLORS:
        rule = "must be [n, H, W, C] (images.transpose(0, 2, 3, 1))"
        raise TableError("images", rule, list(shape))
    if images.dtype.kind not in "buif":
        rule = "must be integers or floating point numbers"
        if images.dtype.kind == "O":
            rule += " of one size (np.stack(images))"
        raise TableError("images", rule, images.dtype)
    size = math.prod(shape) * images.dtype.itemsize
    if isinstance(images, LazyImages) and size > (most := count_memory()):
        rule = f"must fit into the memory ({most >> 20:,} MB)"
        raise TableError("images", rule, f"{size >> 20:,} MB")
    return images


def check_pixels(images: np.ndarray) -> None:
    """Looks at all images, in blocks.

    Raises:
        TableError: If a pixel is not finite or far above 1, if all images are
            the same, or if the fourth channel says nothing.
    """
    differs = len(images) == 1
    has_alpha = images.ndim == 4 and images.shape[3] == 4
    is_float = images.dtype.kind == "f"
    for start, block in split_images(images):
        if is_float:
            _check_floats(block, start)
        differs = differs or bool((block != images[0]).any())
        has_alpha = has_alpha and bool((block[..., 3] == block.flat[3]).all())
        if differs and not has_alpha and not is_float:
            return
    if not differs:
        rule = "must differ"
        raise TableError("images", rule, f"{len(images)} times the same")
    if has_alpha:
        rule = "must have channels that vary (images[..., :3] has no alpha)"
        raise TableError("images", rule, "a fourth one that does not")


def _check_floats(block: np.ndarray, start: int) -> None:
    wrong = ~np.isfinite(block).reshape(len(block), -1).all(axis=1)
    if wrong.any():
        row = start + int(wrong.argmax())
        rule = "must be finite, there is NaN or infinity in image"
        raise TableError("images", rule, row)
    top = float(np.abs(block).max())
    if top > BRIGHTEST:
        rule = "must be from 0 to 1 if they are floats (images / 255)"
        raise TableError("images", rule, f"{top:g}")


def split_images(images: np.ndarray) -> Iterator[tuple[int, np.ndarray]]:
    """Blocks of images that are small beside all of them, and their start."""
    size = max(1, BLOCK // max(1, images[0].nbytes))
    for start in range(0, len(images), size):
        yield start, images[start : start + size]
