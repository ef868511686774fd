"""`FactorTable`: users' images, and the factors that they show.

    table = tfcomp.FactorTable(images, classes, names=["shape", "angle"])

Every image is one combination of factors; combinations may be missing. Images
keep their type in memory, a byte per pixel, and are made float32 from 0 to 1
when they are drawn (`table_images`).
"""

import math
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from tfcomp.datasets.factors import FactorSpace
from tfcomp.datasets.table_factors import TableError, make_factors
from tfcomp.datasets.table_images import (
    LazyImages,
    check_images,
    choose_divisor,
    note_faint,
    scan_pixels,
    to_array,
)

SAMPLE = 256  # number of images whose brightness is measured


class FactorTable:
    """Images and the classes of their factors.

    Args:
        images: [n, H, W] or [n, H, W, C], integers or floating point numbers;
            may be mapped to a file, or `LazyImages`.
        classes: Integers from 0, [n, F]: the value of every factor.
        values: Values of the classes, rising: a list of numbers (or None) per
            factor, or [n, F] by image. By default the classes themselves.
        names: Names of the factors.
        sizes: Numbers of classes; by default the number that occurs.
        kinds: Per factor `ordered`, `categorical`, `periodic` (the period is
            one step more than the values) or `periodic:PERIOD`. By default
            factors are ordered, and categorical if they have `levels` and no
            values.
        levels: Names of the classes, a list (or None) per factor.
        units: Units of the values.

    Attributes:
        space: The factors that vary; `notes` names the others.
        points: Existing combinations [n, F], in the order of the grid.
        image_shape: Rows, columns, channels.

    Raises:
        TableError: For invalid arguments; one line with the argument, the
            rule and the value.

    Example:
        >>> images = np.random.default_rng(0).random((6, 8, 8))
        >>> classes = [[0, 0], [0, 1], [0, 2], [1, 0], [1, 1], [1, 2]]
        >>> tfcomp.FactorTable(images, np.array(classes), names=["shape", "x"])
        FactorTable of 6 images of 8 x 8 x 1; shape (2), x (3)
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
        self._source = images = check_images(images)
        shape = tuple(images.shape)
        self.image_shape: tuple[int, int, int] = (*shape[1:], 1)[:3]
        if names is None and hasattr(classes, "columns"):
            names = [str(column) for column in classes.columns]
        options = {
            "values": to_array(values) if hasattr(values, "shape") else values,
            "names": names,
            "sizes": sizes,
            "kinds": kinds,
            "levels": levels,
            "units": units,
        }
        factors, classes = make_factors(to_array(classes), shape[0], options)
        varies = np.ptp(classes, axis=0) > 0
        if not varies.any():
            raise TableError("classes", "must vary", classes[0].tolist())
        parts = list(zip(factors, varies, strict=True))
        self.notes: tuple[str, ...] = tuple(
            f"left out: {factor.name}, which has a single value"
            for factor, is_kept in parts
            if not is_kept
        )
        self.space = FactorSpace(tuple(f for f, is_kept in parts if is_kept))
        classes = classes[:, varies]
        self.notes += _note_numbering(self.space, classes)
        self._order, self._places = self._sort(classes)
        columns = zip(self.space, classes[self._order].T, strict=True)
        self.points = np.stack([f.values()[c] for f, c in columns], axis=1)

    @cached_property
    def images(self) -> np.ndarray:
        """All images as they are given, read when first asked for."""
        source = self._source
        return source.load() if isinstance(source, LazyImages) else source

    @cached_property
    def _range(self) -> tuple[float, float]:
        return scan_pixels(self.images)

    @cached_property
    def scale(self) -> float:
        """Number that pixels are divided by; 1 for 0/1 images and floats."""
        high = self._range[1]
        is_float = self.images.dtype.kind == "f"
        return 1.0 if is_float else float(choose_divisor(int(high)))

    def inspect(self) -> tuple[str, ...]:
        """Reads and checks all images; returns notes on them."""
        notes = note_faint(*self._range, self.scale)
        if isinstance(self._source, LazyImages):
            notes += tuple(self._source.notes)
        return notes

    @property
    def polarity(self) -> str:
        """`dark` if most pixels of a fixed sample of images are bright."""
        step = len(self.points) // SAMPLE + 1
        brightness = np.median(self.draw(self.points[::step]))
        return "dark" if brightness > 0.5 else "bright"

    def __repr__(self) -> str:
        factors = ", ".join(f"{f.name} ({f.size})" for f in self.space)
        size = " x ".join(map(str, self.image_shape))
        count = f"{len(self.points):,} images of {size}"
        return "; ".join([f"FactorTable of {count}", factors, *self.notes])

    def find(self, images: np.ndarray | Callable) -> np.ndarray:
        """Returns a mask of `points` [n] for a mask or numbers of images.

        A function from factor values [n, F] to a mask [n] is called.

        Raises:
            TableError: If there is no such image, or the function is wrong.
        """
        if callable(images):
            mask = np.asarray(images(self.points.copy()))
            if mask.dtype != bool or mask.shape != (len(self.points),):
                rule = f"must return {len(self.points)} bools, one for each row"
                raise TableError("region", rule, f"{mask.dtype} {mask.shape}")
            return mask
        given, count = np.asarray(images), len(self._order)
        if given.dtype == bool and given.shape == (count,):
            return given[self._order]
        is_list = given.dtype.kind in "ui" and given.ndim == 1 and given.size
        if not is_list or not 0 <= given.min() <= given.max() < count:
            rule = (
                f"must be text, a function, a bool for each of the {count} "
                "images, or their numbers"
            )
            raise TableError("region", rule, repr(images))
        return np.isin(self._order, given)

    def draw(self, factors: np.ndarray) -> np.ndarray:
        """Returns the images of the nearest factor values, in float32.

        Raises:
            TableError: If a combination has no image.
        """
        found = self.fetch(factors).astype(np.float32)
        found /= np.float32(self.scale)
        return found.reshape(-1, *self.image_shape)

    def fetch(self, factors: np.ndarray) -> np.ndarray:
        """Returns the images of the nearest factor values as given."""
        index = self.space.to_index(np.asarray(factors))
        places = np.ravel_multi_index(index.T, self.space.shape)
        rows = np.searchsorted(self._places, places)
        rows = np.minimum(rows, len(self._places) - 1)
        absent = np.flatnonzero(self._places[rows] != places)
        if absent.size:
            row = self.space.name_point(index[absent[0]])
            raise TableError("images", "must contain the combination", row)
        return self.images[self._order[rows]]

    def _sort(self, classes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Returns the rows in the order of the grid, and their places in it."""
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


def _note_numbering(space: FactorSpace, classes: np.ndarray) -> tuple[str, ...]:
    if len(space) == 1:
        return ()
    return tuple(
        f"every image has its own value of {factor.name}; if it is a number of "
        "the image and no factor, leave it out"
        for factor, column in zip(space, classes.T, strict=True)
        if len(np.unique(column)) == len(column)
    )
