"""Images of a factor table: what is accepted, and how integers are scaled.

Images are from 0 to 1. Integers are divided by the largest number of as many
bits as their values have: 1, 255 (up to eight bits), 511, 1023 ... 65535.
Floating point numbers stay what they are.
"""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from tfcomp.config.process import count_memory
from tfcomp.datasets.table_factors import TableError

MAX_BITS = 16  # of an integer pixel
COLORS = (1, 3, 4)  # channels that come first in other libraries
TOLERANCE = 0.1  # images that were resized exceed 0 to 1 a little
TOO_DARK = 1e-6


def allocate(shape: Sequence[int], dtype: Any) -> np.ndarray:
    """Returns an empty array of images, if they fit into the memory."""
    check_bytes("images", math.prod(shape) * dtype.itemsize, None)
    return np.empty(shape, dtype)


def check_bytes(name: str, size: int, most: int | None) -> None:
    """Refuses arrays above a size, by default that of the memory."""
    most = count_memory() if most is None else most
    if size > most:
        rule = f"must take at most {most >> 20:,} MB"
        raise TableError(name, rule, f"{size >> 20:,} MB")


def to_array(given: Any) -> Any:
    """Returns tensors of PyTorch or TensorFlow and lists as NumPy arrays."""
    if isinstance(given, np.ndarray):
        return given
    if hasattr(given, "detach"):  # PyTorch
        given = given.detach().cpu()
        given = given.float() if "bfloat16" in str(given.dtype) else given
    return np.asarray(given)


def check_images(given: Any) -> np.ndarray:
    """Returns images as an array; checks their type, shape and size."""
    images = to_array(given)
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
    return images


def choose_divisor(images: np.ndarray) -> float:
    """Returns the number that pixels are divided by; checks all images."""
    lowest, highest = images.min(axis=0), images.max(axis=0)  # of each pixel
    low, high = float(lowest.min()), float(highest.max())
    if not np.isfinite([low, high]).all():
        is_finite = np.isfinite(images).reshape(len(images), -1).all(axis=1)
        rule = "must be finite, there is NaN or infinity in image"
        raise TableError("images", rule, int(is_finite.argmin()))
    _check_range(low, high, images.dtype.kind)
    if len(images) > 1 and (lowest == highest).all():
        got = f"{len(images)} times the same"
        raise TableError("images", "must differ", got)
    if images.ndim == 4 and images.shape[3] == 4:
        if lowest[..., 3].min() == highest[..., 3].max():
            rule = "must have channels that vary (images[..., :3] has no alpha)"
            raise TableError("images", rule, "a constant fourth channel")
    if images.dtype.kind == "f" or high <= 1:
        return 1.0
    return 2.0 ** max(8, int(high).bit_length()) - 1


def _check_range(low: float, high: float, kind: str) -> None:
    if kind != "f" and low < 0:
        rule = "must not be negative (images - images.min())"
        raise TableError("images", rule, f"{low:g}")
    if kind != "f" and high >= 2**MAX_BITS:
        raise TableError("images", f"must be at most {2**MAX_BITS - 1}", high)
    if kind == "f" and not -TOLERANCE <= low <= high <= 1 + TOLERANCE:
        cure = "(images - images.min()) / np.ptp(images)"
        if low >= 0:
            cure = "images / 255" if high > 10 else "images / images.max()"
        elif -1 <= low and high <= 1:
            cure = "(images + 1) / 2"
        rule = f"must be from 0 to 1 if they are floats ({cure})"
        raise TableError("images", rule, f"{low:g} to {high:g}")
    if 0 < high < TOO_DARK:  # squares of such numbers vanish in float32
        rule = f"must reach {TOO_DARK:g} (images / images.max() reach 1)"
        raise TableError("images", rule, f"at most {high:.2g}")
