"""Images of a factor table: what is accepted, and how integers are scaled.

Images are from 0 to 1. Integers are divided by the largest number of as many
bits as their values have: 1, 255 (up to eight bits), 511, 1023 ... 65535.
Floating point numbers stay what they are.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tfcomp.config.machine import count_memory
from tfcomp.datasets.table_factors import TableError

BITS = 16  # of an integer pixel, at most
BLOCK = 2**26  # bytes of images that are checked together
COLORS = (1, 3, 4)  # channels that come first in other libraries
# Images that were resized exceed 0 to 1 a little.
TOLERANCE = 0.1
FAINT = 0.1  # images that are nowhere brighter get a note
TOO_DARK = 1e-6


@dataclass(frozen=True)
class LazyImages:
    """Images [n, H, W] or [n, H, W, C] that are read when they are needed."""

    shape: tuple[int, ...]
    dtype: np.dtype
    load: Callable[[], np.ndarray]
    notes: list[str] = field(default_factory=list)  # known after `load`


def to_array(given: Any) -> Any:
    """Returns tensors of PyTorch or TensorFlow and lists as NumPy arrays."""
    if isinstance(given, np.ndarray | LazyImages):
        return given
    if hasattr(given, "detach"):  # PyTorch
        given = given.detach().cpu()
        given = given.float() if "bfloat16" in str(given.dtype) else given
    return np.asarray(given)


def check_images(images: Any) -> np.ndarray | LazyImages:
    """Checks type, shape and size of images without reading them all."""
    images = to_array(images)
    if np.ma.is_masked(images):
        rule = "must not be masked (images.filled(0) fills them)"
        raise TableError("images", rule, f"{np.ma.count_masked(images)} pixels")
    shape = tuple(images.shape)
    if len(shape) not in (3, 4) or 0 in shape:
        cure = " (images.reshape(n, H, W))" if len(shape) == 2 else ""
        rule = f"must be [n, H, W] or [n, H, W, C] and not empty{cure}"
        raise TableError("images", rule, list(shape))
    if len(shape) == 4 and shape[1] in COLORS and shape[3] not in COLORS:
        rule = "must be [n, H, W, C] (images.transpose(0, 2, 3, 1))"
        raise TableError("images", rule, list(shape))
    if images.dtype.kind not in "buif":
        is_ragged = images.dtype.kind == "O"
        cure = " of one size (np.stack(images))" if is_ragged else ""
        rule = f"must be integers or floating point numbers{cure}"
        raise TableError("images", rule, images.dtype)
    size = math.prod(shape) * images.dtype.itemsize
    if isinstance(images, LazyImages) and size > (most := count_memory()):
        rule = f"must fit into the memory ({most >> 20:,} MB)"
        raise TableError("images", rule, f"{size >> 20:,} MB")
    return images


def find_white(top: int) -> int:
    """Returns the number that integers up to `top` are divided by."""
    if top >= 2**BITS:
        raise TableError("images", f"must be at most {2**BITS - 1}", top)
    return 1 if top <= 1 else 2 ** max(8, top.bit_length()) - 1


def measure_range(images: np.ndarray) -> tuple[float, float]:
    """Returns the smallest and the largest pixel, checked.

    Bytes are read until one is bright, which is enough to scale them.
    """
    low, high = math.inf, -math.inf
    is_byte = images.dtype == np.uint8
    for start, block in split_images(images):
        if images.dtype.kind == "f":
            _check_finite(block, start)
        low, high = min(low, block.min()), max(high, block.max())
        if is_byte and high > FAINT * 255:
            break
    _check_range(float(low), float(high), images.dtype.kind)
    return float(low), float(high)


def note_faint(low: float, high: float, white: float) -> tuple[str, ...]:
    """Returns a note on images that are dark everywhere after scaling.

    Raises:
        TableError: They are too dark for float32: their squares vanish.
    """
    if high <= 0 or high / white >= FAINT:
        return ()
    if high / white < TOO_DARK:
        rule = f"must reach {TOO_DARK:g} (images / images.max() reach 1)"
        raise TableError("images", rule, f"at most {high / white:.2g}")
    scaled = f", {high:g} divided by {white:g}" if white > 1 else ""
    return (
        f"dark: pixels are from {low / white:.2g} to {high / white:.2g}"
        f"{scaled}; if this is not meant, scale them (images / {high:g})",
    )


def check_pixels(images: np.ndarray) -> None:
    """Checks that images differ and that all of their channels vary."""
    differs = len(images) == 1
    has_alpha = images.ndim == 4 and images.shape[3] == 4
    for _, block in split_images(images):
        differs = differs or bool((block != images[0]).any())
        has_alpha = has_alpha and bool((block[..., 3] == block.flat[3]).all())
        if differs and not has_alpha:
            return
    if not differs:
        got = f"{len(images)} times the same"
        raise TableError("images", "must differ", got)
    if has_alpha:
        rule = "must have channels that vary (images[..., :3] has no alpha)"
        raise TableError("images", rule, "a fourth one that does not")


def split_images(images: np.ndarray) -> Iterator[tuple[int, np.ndarray]]:
    """Yields blocks of images, each with the number of its first image."""
    size = max(1, BLOCK // max(1, images[0].nbytes))
    for start in range(0, len(images), size):
        yield start, images[start : start + size]


def _check_finite(block: np.ndarray, start: int) -> None:
    finite = np.isfinite(block).reshape(len(block), -1).all(axis=1)
    if not finite.all():
        rule = "must be finite, there is NaN or infinity in image"
        raise TableError("images", rule, start + int(finite.argmin()))


def _check_range(low: float, high: float, kind: str) -> None:
    if kind == "i" and low < 0:
        rule = "must not be negative (images - images.min())"
        raise TableError("images", rule, f"{low:g}")
    if kind == "f" and not -TOLERANCE <= low <= high <= 1 + TOLERANCE:
        cure = "(images - images.min()) / np.ptp(images)"
        if low >= 0:
            cure = "images / 255" if high > 10 else "images / images.max()"
        elif -1 <= low and high <= 1:
            cure = "(images + 1) / 2"
        rule = f"must be from 0 to 1 if they are floats ({cure})"
        raise TableError("images", rule, f"{low:g} to {high:g}")
