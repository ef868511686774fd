"""Checks the content of factor tables: classes, names and images.

Images are from 0 to 1. Integers are divided by the largest number of as many
bits as their values have: 1, 255 (up to eight bits), 511, 1023 ... 65535.
Floating point numbers stay what they are.
"""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from tfcomp.config.process import count_memory
from tfcomp.config.settings import CONTROLS

SPARSE = 1000  # classes above must be present, at least half of them
MAX_TEXT = 100  # characters of a name
MAX_BITS = 16  # of an integer pixel
COLORS = (1, 3, 4)  # channels that come first in other libraries
TOLERANCE = 0.1  # images that were resized exceed 0 to 1 a little
TOO_DARK = 1e-6
FAINT = 0.1  # images that are nowhere brighter get a note


class TableError(ValueError):
    """A table that breaks a rule, such as `classes must be integers`."""

    def __init__(self, field: str, rule: str, value: object) -> None:
        super().__init__(f"{field} {rule}, got {value}")


def check_list(field: str, rule: str, given: Any) -> None:
    """Refuses values that are not lists."""
    has_length = hasattr(given, "__len__") and not isinstance(given, str)
    if not has_length or not getattr(given, "ndim", 1):
        raise TableError(field, rule, repr(given))


def check_shape(classes: np.ndarray, num_images: int) -> None:
    """Checks the shape and type of classes, and their number."""
    if classes.ndim != 2 or not classes.shape[1]:
        cure = " (classes[:, None] for one factor)" * (classes.ndim == 1)
        got = list(classes.shape)
        raise TableError("classes", f"must be [n, F]{cure}", got)
    if len(classes) != num_images:
        rule = f"must have a row for each of the {num_images} images"
        raise TableError("classes", rule, len(classes))
    if classes.dtype.kind not in "buif":
        rule = "must be integers, names of classes go to levels"
        raise TableError("classes", rule, classes.dtype)


def check_names(names: Sequence[str]) -> None:
    """Checks the names of factors."""
    check_texts("names", names)
    for number, name in enumerate(names):
        if not name or name in names[:number] or set(name) & set(",:/ \n"):
            rule = "must differ and be words without spaces and without , : /"
            raise TableError("names", rule, repr(name))


def check_texts(field: str, texts: Sequence[str]) -> None:
    """Refuses long names, and names that a terminal would interpret."""
    rule = f"must have at most {MAX_TEXT} characters, no control characters"
    for text in texts:
        if CONTROLS.search(text) or len(text) > MAX_TEXT:
            raise TableError(field, rule, repr(text[:MAX_TEXT]))


def check_classes(classes: np.ndarray, column: int) -> np.ndarray:
    """Returns a column of classes as integers from 0."""
    is_class = np.isfinite(classes) & (classes == np.floor(classes))
    is_class &= classes >= 0
    if not is_class.all():
        row = int(is_class.argmin())
        rule = (
            "must be integers from 0 unless kinds has continuous "
            f"(image {row}, factor {column})"
        )
        raise TableError("classes", rule, classes[row])
    largest, present = classes.max(), len(np.unique(classes))
    if largest >= max(SPARSE, 2 * present):
        cure = "np.unique(..., return_inverse=True)"
        rule = f"of factor {column} must be counted from 0 ({cure})"
        rule = f"{rule}, the largest of {present} classes"
        raise TableError("classes", rule, largest)
    return classes.astype(np.int64)


def check_one_hot(names: Sequence[str], classes: np.ndarray) -> None:
    """Refuses three columns or more of which each row has one 1."""
    is_bit = np.asarray((classes <= 1).all(axis=0))
    for start in range(len(names)):
        total = np.zeros(len(classes), int)
        for end in range(start, len(names)):
            total += classes[:, end]
            if not is_bit[end] or (total > 1).any():
                break
            if end >= start + 2 and (total == 1).all():
                cure = f"classes[:, {start}:{end + 1}].argmax(1)"
                rule = f"must not be a one-hot code, but one factor ({cure})"
                got = f"one 1 in each row of {names[start]} to {names[end]}"
                raise TableError("classes", rule, got)


def allocate(shape: Sequence[int], dtype: Any) -> np.ndarray:
    """Returns an empty array of images, if they fit into the memory."""
    check_bytes("images", math.prod(shape) * dtype.itemsize, None)
    return np.empty(shape, dtype)


def check_bytes(name: str, size: int, most: int | None) -> None:
    """Refuses arrays above a size, by default the size of the memory."""
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
    return _order_rows(images)


def _order_rows(images: np.ndarray) -> np.ndarray:
    """Returns images whose memory has row after row, image after image.

    Arrays that have this order stay as they are, also those that are mapped to
    a file. Others (transposed or from MATLAB) are copied once: their pixels
    lie far apart, and reading a batch takes some 25 times as long.
    """
    if images.flags.c_contiguous:
        return images

    check_bytes("images", images.nbytes, None)
    return np.ascontiguousarray(images)


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


def note_darkness(images: np.ndarray, divisor: float) -> tuple[str, ...]:
    """Returns a note if all pixels are dark."""
    high = float(images.max())
    if high <= 0 or high / divisor >= FAINT:
        return ()
    scaled = f", {high:g} divided by {divisor:g}" if divisor > 1 else ""
    return (
        f"dark: no pixel is above {high / divisor:.2g}{scaled}; if this is "
        f"not meant, scale them (images / {high:g})",
    )


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
