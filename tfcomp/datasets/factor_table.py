"""`FactorTable`: images of one's own, and the factors that they show.

    table = tfcomp.FactorTable(images, classes, names=["shape", "angle"])

Every image is one combination of factors; combinations may be missing. Images
keep their type in memory, a byte per pixel, and are made float32 when they are
drawn: divided by 255 if they are integers that exceed 1.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from tfcomp.config.machine import count_memory
from tfcomp.datasets.factors import FactorSpace
from tfcomp.datasets.table_factors import TableError, make_factors

# Largest values of an integer pixel: of masks, and of 8 and 16 bits.
WHITES = (1, 255, 65535)
# Images that are looked at together, in bytes.
BLOCK = 2**26
COLORS = (1, 3, 4)  # channels that come first in other libraries
LOOKED_AT = 256  # images whose brightness is looked at
# Brightness is from 0 to 1; standardized images exceed that a little.
BRIGHTEST = 10.0


@dataclass(frozen=True)
class LazyImages:
    """Images [n, H, W] or [n, H, W, C] that are read when they are needed."""

    shape: tuple[int, ...]
    dtype: np.dtype
    load: Callable[[], np.ndarray]
    load_first: Callable[[], np.ndarray]


class FactorTable:
    """Images and the classes of their factors.

    Args:
        images: [n, H, W] or [n, H, W, C], integers or floating point numbers;
            may be mapped to a file, or `LazyImages`.
        classes: Integers from 0, [n, F]: the value of every factor.
        values: What the classes stand for, in the unit of the factor, rising:
            a list of numbers (or None) per factor, or [n, F] as images have
            it. By default the classes themselves.
        names: Names of the factors.
        sizes: Numbers of classes; by default as many as occur.
        kinds: Per factor `ordered`, `categorical`, `periodic` (the period is
            one step more than the values) or `periodic:PERIOD`. By default
            factors are ordered, and categorical if they have `levels` and no
            values.
        levels: Names of the classes, a list (or None) per factor.
        units: Units of the values.

    Attributes:
        space: The factors that vary; `notes` names those that don't.
        points: The combinations that exist, [n, F], in the order of the grid.
        image_shape: Rows, columns, channels.

    Raises:
        TableError: If something does not fit together; one line, which names
            the argument, the rule and the value.
    """

    def __init__(
        self,
        images: np.ndarray | LazyImages,
        classes: np.ndarray,
        values: Sequence[Any] | np.ndarray | None = None,
        names: Sequence[str] | None = None,
        sizes: Sequence[int] | None = None,
        kinds: Sequence[str] | None = None,
        levels: Sequence[Sequence[str] | None] | None = None,
        units: Sequence[str] | None = None,
    ) -> None:
        self._source = images = _check_images(images)
        shape = tuple(images.shape)
        self.image_shape: tuple[int, int, int] = (*shape[1:], 1)[:3]
        factors, classes = make_factors(
            shape[0], classes, values, names, sizes, kinds, levels, units
        )
        varies = np.ptp(classes, axis=0) > 0
        if not varies.any():
            raise TableError("classes", "must vary", classes[0].tolist())
        parts = list(zip(factors, varies, strict=True))
        self.notes = tuple(
            f"left out: {factor.name}, which has a single value"
            for factor, is_kept in parts
            if not is_kept
        )
        self.space = FactorSpace(tuple(f for f, is_kept in parts if is_kept))
        classes = classes[:, varies]
        self._order, self._places = self._sort(classes)
        columns = zip(self.space, classes[self._order].T, strict=True)
        self.points = np.stack([f.values()[c] for f, c in columns], axis=1)

    @cached_property
    def images(self) -> np.ndarray:
        """All images as they are given; `TableError` if one cannot be."""
        lazy = isinstance(self._source, LazyImages)
        images = self._source.load() if lazy else self._source
        _check_pixels(images)
        return images

    @cached_property
    def scale(self) -> float:
        """What a white pixel is divided by; 1 for 0/1 images and floats."""
        if self.images.dtype.kind not in "ui":
            return 1.0
        top = 0
        for _, block in _split_images(self.images):
            top = max(top, int(block.max()))
            if self.images.dtype == np.uint8 and top > 1:
                break  # only images of 0 and 1 are looked at in full
        if top > WHITES[-1]:
            raise TableError("images", f"must be at most {WHITES[-1]}", top)
        return float(min(white for white in WHITES if top <= white))

    @property
    def stored_bytes(self) -> int:
        """What the images take in memory, nothing if they are mapped."""
        if isinstance(self._source, np.memmap):
            return 0
        return math.prod(self._source.shape) * self._source.dtype.itemsize

    @property
    def polarity(self) -> str:
        """`dark` if most pixels are bright, of a fixed sample of images."""
        step = len(self.points) // LOOKED_AT + 1
        brightness = np.median(self.draw(self.points[::step]))
        return "dark" if brightness > 0.5 else "bright"

    def __repr__(self) -> str:
        factors = ", ".join(f"{f.name} ({f.size})" for f in self.space)
        size = " x ".join(map(str, self.image_shape))
        count = f"{len(self.points):,} images of {size}"
        return "; ".join([f"FactorTable of {count}", factors, *self.notes])

    def find(self, images: np.ndarray) -> np.ndarray:
        """Which of `points` some images are, bool [n].

        They are given by a bool for every image, or by numbers, both in the
        order of the images. `TableError` if there is no such image.
        """
        chosen = np.asarray(images)
        count = len(self._order)
        if chosen.dtype == bool and chosen.shape != (count,):
            rule = f"must have a bool for each of the {count} images"
            raise TableError("region", rule, list(chosen.shape))
        if chosen.dtype != bool:
            is_number = chosen.dtype.kind in "ui" and chosen.ndim == 1
            if not is_number or not chosen.size or chosen.min() < 0:
                rule = "must be text, a bool for each image, or their numbers"
                raise TableError("region", rule, repr(images))
            if chosen.max() >= count:
                rule = f"must be numbers below {count}"
                raise TableError("region", rule, chosen.max())
            chosen = np.isin(np.arange(count), chosen)
        return chosen[self._order]

    def draw(self, factors: np.ndarray) -> np.ndarray:
        """Images of the nearest factor values, float32 [n, *image_shape].

        Raises:
            TableError: If a combination has no image.
        """
        index = self.space.to_index(np.asarray(factors))
        places = np.ravel_multi_index(index.T, self.space.shape)
        rows = np.searchsorted(self._places, places)
        rows = np.minimum(rows, len(self._places) - 1)
        absent = np.flatnonzero(self._places[rows] != places)
        if absent.size:
            row = self.space.name_point(index[absent[0]])
            raise TableError("images", "must contain the combination", row)
        found = self.images[self._order[rows]].astype(np.float32)
        found /= np.float32(self.scale)
        return found.reshape(-1, *self.image_shape)

    def _sort(self, classes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Rows in the order of the grid, and their places in it, rising."""
        shape = self.space.shape
        if math.prod(shape) > np.iinfo(np.int64).max:
            raise TableError("sizes", "must have a product below 2^63", shape)
        places = np.ravel_multi_index(classes.T, shape)
        order = np.argsort(places, kind="stable")
        places = places[order]
        twice = np.flatnonzero(places[1:] == places[:-1])
        if twice.size:
            first, second = order[twice[0] : twice[0] + 2]
            row = self.space.name_point(classes[first])
            rule = f"must differ, images {first} and {second} are both"
            raise TableError("classes", rule, row)
        return order, places


def _check_images(images: Any) -> np.ndarray | LazyImages:
    """Checks what is known of images without looking at them all."""
    if not hasattr(images, "shape"):
        images = np.asarray(images)
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


def _check_pixels(images: np.ndarray) -> None:
    """Looks at all images, in blocks."""
    differs = len(images) == 1
    has_alpha = images.ndim == 4 and images.shape[3] == 4
    is_float = images.dtype.kind == "f"
    for start, block in _split_images(images):
        if is_float:
            _check_floats(block, start)
        differs = differs or bool((block != images[0]).any())
        has_alpha = has_alpha and bool((block[..., 3] == block.flat[3]).all())
        if differs and not has_alpha and not is_float:
            return
    if not differs:
        got = f"{len(images)} times the same"
        raise TableError("images", "must differ", got)
    if has_alpha:
        rule = "must have channels that vary (images[..., :3] has no alpha)"
        raise TableError("images", rule, "a fourth one that does not")


def _check_floats(block: np.ndarray, start: int) -> None:
    finite = np.isfinite(block).reshape(len(block), -1).all(axis=1)
    if not finite.all():
        rule = "must be finite, there is NaN or infinity in image"
        raise TableError("images", rule, start + int(finite.argmin()))
    if (top := float(np.abs(block).max())) > BRIGHTEST:
        rule = "must be from 0 to 1 if they are floats (images / 255)"
        raise TableError("images", rule, f"{top:g}")


def _split_images(images: np.ndarray) -> Iterator[tuple[int, np.ndarray]]:
    """Blocks of images that are small beside all of them, and their start."""
    size = max(1, BLOCK // max(1, images[0].nbytes))
    for start in range(0, len(images), size):
        yield start, images[start : start + size]
