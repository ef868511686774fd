"""`FactorTable`: users' images, and the factors that they show.

    table = tfcomp.FactorTable(images, classes, names=["shape", "angle"])

Combinations may be missing, and have several images, which differ in columns
that are no factors (*nuisance*) or in nothing that is named. Images keep their
type in memory, and are made float32 from 0 to 1 when they are drawn: integers
are divided by the largest number with the bits that their values have (1, 255
up to eight bits, 511, 1023 ... 65535), floating point numbers stay.
"""

import dataclasses
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy import ndarray as Array

from tfcomp.datasets.factors import FactorSpace, number_rows
from tfcomp.datasets.table_columns import (
    PART,
    TableError,
    check_bytes,
    describe_storage,
    make_frame,
    release_memory,
    split_head,
)
from tfcomp.datasets.table_factors import (
    Description,
    FactorColumn,
    check_classes,
    describe_columns,
    make_factor,
)

MAX_BITS = 16  # of an integer pixel
COLORS = (1, 3, 4)  # channels that come first in other libraries
SAMPLED = 32  # images that are looked at early
TOLERANCE = 0.1  # images that were resized exceed 0 to 1 a little
FEW_ROWS = 10  # may all differ by chance
COMPARED = 256  # combinations at a time


class FactorTable:
    """Images and the classes of their factors.

    Args:
        images: [n, H, W] or [n, H, W, C], integers or floating point numbers;
            may be mapped to a file. None for factors alone.
        classes: Integers from 0, [n, F]: the value of every factor; of
            continuous factors any numbers. Or columns [n] of values, numbers or
            texts, by the name of their factor: a data frame or a mapping.
        values: Values of the classes, rising: a list of numbers (or None) per
            factor, or [n, F] by image. By default the classes themselves.
        names: Names of the factors; spaces in them become underscores.
        sizes: Numbers of classes; by default those that occur, or have a
            value or a name.
        kinds: Per factor `ordered`, `categorical`, `periodic` (the period is
            one step more than the values; a note tells it),
            `periodic:PERIOD`, `continuous` or `continuous:BINS`. By default
            factors are ordered, and categorical if they have `levels` and
            no values.
        levels: Names of the classes, a list (or None) per factor.
        units: Units of the values.
        factors: The columns that are factors, by name or as `x:continuous`;
            by default all. The others are nuisance.
        ignore: Columns that are neither.
        bins: Grid values of a continuous factor, evenly spaced from its
            smallest to its largest value; each point belongs to the nearest.

    Attributes:
        space: The factors that vary; `notes` names the others.
        nuisance: Names of nuisance columns with values that occur repeatedly.
        points: Existing combinations [n, F], in the order of the grid;
            continuous factors have their own values, not values of bins.
        counts: Number of images of each combination [n].
        rows: Row of `points` of each image, in the given order.
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
        images: Array | None,
        classes: Any,
        values: Sequence[Any] | Array | None = None,
        names: Sequence[str] | None = None,
        sizes: Sequence[int] | None = None,
        kinds: Sequence[str] | None = None,
        levels: Sequence[Sequence[str] | None] | None = None,
        units: Sequence[str] | None = None,
        factors: Sequence[str] | None = None,
        ignore: Sequence[str] | None = None,
        bins: int = 8,
    ) -> None:
        self._images = None
        self.image_shape = (0, 0, 1)
        num_images = None
        if images is not None:
            self._images = check_images(images)
            num_images, height, width, *colors = self._images.shape
            self.image_shape = (height, width, *(colors or [1]))

        self._given: dict[str, Any] = {
            "classes": classes,
            "values": values,
            "names": names,
            "sizes": sizes,
            "kinds": kinds,
            "levels": levels,
            "units": units,
            "bins": bins,
        }
        columns = self._describe_columns(num_images, ignore or ())
        selected = _select_factors(columns, factors)
        varied = self._make_space(selected)
        others = {}
        for name, given in columns.items():
            if name not in self.space.names:
                others[name] = len({str(cell) for cell in given.numbers})
        count = len(self.rows)
        self.nuisance = [name for name in others if 1 < others[name] < count]
        self.notes = self._list_notes(others, varied)

    def _describe_columns(
        self,
        num_images: int | None,
        ignore: Sequence[str],
    ) -> dict[str, Description]:
        """Reads the columns, of classes or of a frame, by name."""
        options = dict(self._given)
        classes = options["classes"]
        if hasattr(options["values"], "shape"):
            options["values"] = to_array(options["values"])
        if hasattr(classes, "keys"):
            classes = make_frame(classes)
            if options["names"] is None:
                options["names"] = [str(head) for head in classes]
            # These options describe numbers of classes.
            has_levels = any(options["levels"] or ())
            has_values = options["values"] is not None
            if has_levels or has_values or options["sizes"] is not None:
                classes = classes.to_numpy()
        else:
            classes = to_array(classes)
        check_classes(classes, num_images)
        return describe_columns(classes, options, ignore)

    def _make_space(
        self,
        selected: Mapping[str, Description],
    ) -> list[FactorColumn]:
        """Makes the factors that vary, and sorts the images."""
        varied = []
        for given in selected.values():
            column = make_factor(given, self._given["bins"])
            if np.ptp(column.values) > 0:
                varied.append(column)
        if not varied:
            raise TableError("classes", "must vary", "one value of each")

        factors = tuple(column.factor for column in varied)
        self.space = FactorSpace(factors)
        self.is_continuous = any(factor.continuous for factor in factors)

        values = np.stack([column.values for column in varied], axis=1)
        values = values.astype(np.float32)
        self.rows = number_rows(values)
        self._check_shared(varied)

        # Images, sorted, and the first one of each combination.
        self._order = np.argsort(self.rows, kind="stable")
        self.counts = np.bincount(self.rows)
        self._starts = np.cumsum(self.counts) - self.counts
        first_images = self._order[self._starts]
        self.points = values[first_images]
        return varied

    def _check_shared(self, varied: Sequence[FactorColumn]) -> None:
        """Refuses a factor that differs in all rows, as a name of a file.

        Beside it no other factor could be told apart from chance.
        """
        if len(varied) == 1 or len(self.rows) <= FEW_ROWS:
            return
        for column in varied:
            count = len(column.values)
            num_levels = len(np.unique(column.values))
            if num_levels == count and not column.factor.continuous:
                name = column.factor.name
                rule = "must be the same in some rows to be a factor"
                raise TableError(
                    f"the column {name}",
                    rule,
                    f"{count:,} values in {count:,} rows (--ignore={name} "
                    f"leaves it out, {name}:continuous takes numbers)",
                )

    def _list_notes(
        self,
        others: Mapping[str, int],
        varied: Sequence[FactorColumn],
    ) -> tuple[str, ...]:
        """Lists what must be known of factors, and what is none.

        Args:
            others: Numbers of values of the columns that are not factors.
            varied: The factors.
        """
        notes = []
        if self._images is not None:
            notes += describe_storage(self._images)

        nuisance = []
        for name, size in others.items():
            if size > 1:
                nuisance.append(f"{name} ({size})")
            else:
                notes.append(f"left out: {name}, which has a single value")

        for factor in self.space:
            if factor.periodic:
                period = factor.describe_period()
                notes.append(f"{factor.name}: periodic, {period}")
        for column in varied:
            if column.origin:
                name = column.factor.name
                start = f"{name}: counted from {column.origin:,.15g}"
                notes.append(f"{start} (models have 32-bit numbers)")
        if nuisance:
            notes.append(f"nuisance: {', '.join(nuisance)}")
        if self.is_repeated:
            notes.append(
                f"{len(self.rows):,} images of {len(self.points):,} "
                "combinations: scores are means over the images of each"
            )
        return tuple(notes)

    def select(
        self,
        factors: Sequence[str] | None = None,
        ignore: Sequence[str] | None = None,
        images: Array | None = None,
    ) -> "FactorTable":
        """Returns the table with other columns as factors, or other images.

        Args:
            factors: The columns that are factors; by default all.
            ignore: Columns that are left out.
            images: By default the images of this table.
        """
        if images is None:
            images = self._images
        return FactorTable(
            images,
            **self._given,
            factors=factors,
            ignore=ignore,
        )

    @property
    def is_repeated(self) -> bool:
        """True if a combination has several images."""
        return len(self.rows) > len(self.points)

    @property
    def images(self) -> Array:
        """All images as they are given."""
        if self._images is None:
            raise TableError("images", "must be given to be drawn", None)
        return self._images

    @cached_property
    def scale(self) -> float:
        """Number that pixels are divided by; 1 for 0/1 images and floats.

        Raises:
            TableError: If a pixel of any image is no shade, or all are equal.
        """
        dtype = self.images.dtype
        low, high = _find_limits(self.images)
        _check_range(low, high, dtype)
        if dtype.kind == "f" or high <= 1:
            return 1.0
        num_bits = max(8, int(high).bit_length())
        return 2.0**num_bits - 1

    def check_pixels(self) -> None:
        """Reads and checks all images, if there are any."""
        if self._images is not None:
            _ = self.scale

    def __repr__(self) -> str:
        items = "rows"
        if self._images is not None:
            sides = map(str, self.image_shape)
            items = f"images of {' x '.join(sides)}"
        count = f"FactorTable of {len(self.rows):,} {items}"
        factors = [f"{factor.name} ({factor.size})" for factor in self.space]
        parts = [count, ", ".join(factors), *self.notes]
        return "; ".join(parts)

    def find_points(self, factors: Array) -> Array:
        """Finds rows of `points`.

        Args:
            factors: Factor values, [n, F]; of continuous factors, they must
                be equal to the images of a point.

        Returns:
            Rows, -1 where there is no such point, [n].
        """
        order, keys = self._keys
        asked = self._make_keys(factors)
        last = len(keys) - 1
        places = np.searchsorted(keys, asked)
        places = np.minimum(places, last)
        is_equal = keys[places] == asked
        return np.where(is_equal, order[places], -1)

    def _make_keys(self, factors: Array) -> Array:
        """Makes a key of each row, [n], which can be sorted and searched.

        Unlike the place of a row in the grid, keys exist for any number of
        factors: a grid of 40 binary ones has 10^12 places.
        """
        if self.is_continuous:
            rows = np.asarray(factors, np.float32)
            rows = rows + np.float32(0)  # which makes 0 of -0
        else:
            index = self.space.to_index(np.asarray(factors))
            rows = index.astype(np.int32)
        rows = np.ascontiguousarray(rows)
        num_bytes = rows.itemsize * len(self.space)
        return rows.view(f"V{num_bytes}").reshape(len(rows))

    @cached_property
    def _keys(self) -> tuple[Array, Array]:
        """Rows of `points` in the order of their keys, and these keys."""
        keys = self._make_keys(self.points)
        order = np.argsort(keys)
        return order, keys[order]

    def draw(self, factors: Array) -> Array:
        """Returns the image of each combination, the mean of several.

        Args:
            factors: Factor values, [n, F].

        Returns:
            Images from 0 to 1, float32 [n, *image_shape].

        Raises:
            TableError: If a combination has no image.
        """
        images, counts = self._take(factors)
        if len(counts) == len(images):
            return images
        starts = np.cumsum(counts) - counts
        sums = np.add.reduceat(images, starts)
        counts = counts.astype(np.float32)
        return sums / counts[:, None, None, None]

    def compare(self, factors: Array, images: Array) -> tuple[Array, Array]:
        """Compares images with all images of their combinations.

        Args:
            factors: Factor values, [n, F].
            images: An image of each combination, [n, *image_shape].

        Returns:
            The mean and the standard deviation of the MSE, [n] each.
        """
        means = np.zeros(len(factors))
        spreads = np.zeros(len(factors))
        for start in range(0, len(factors), COMPARED):
            rows = slice(start, start + COMPARED)
            truth, counts = self._take(factors[rows])
            starts = np.cumsum(counts) - counts
            outputs = images[rows].astype(float)
            outputs = np.repeat(outputs, counts, axis=0)

            squares = np.square(outputs - truth)
            errors = squares.mean(axis=(1, 2, 3))
            means[rows] = np.add.reduceat(errors, starts) / counts
            deviations = errors - np.repeat(means[rows], counts)
            squares = np.square(deviations)
            sums = np.add.reduceat(squares, starts)
            spreads[rows] = np.sqrt(sums / counts)
        return means, spreads

    def draw_images(self, numbers: Array) -> Array:
        """Returns images in float32 by their numbers, sorted by points."""
        rows = self._order[numbers]
        images = self.images[rows].astype(np.float32)
        release_memory(self.images)
        images /= np.float32(self.scale)
        return images.reshape(-1, *self.image_shape)

    def draw_all(self, factors: Array) -> Array:
        """Returns all images of combinations [n, F], one after the other."""
        images, _ = self._take(factors)
        return images

    def _take(self, factors: Array) -> tuple[Array, Array]:
        """Returns all images of combinations, and how many each has."""
        rows = self.find_points(factors)
        if (rows < 0).any():
            absent = np.asarray(factors)[[rows.argmin()]]
            index = self.space.to_index(absent)
            point = self.space.name_point(index[0])
            rule = "must contain the combination"
            raise TableError("images", rule, point)

        counts = self.counts[rows]
        starts = np.cumsum(counts) - counts
        # Images of a combination are neighbors in `_order`.
        first = np.repeat(self._starts[rows] - starts, counts)
        numbers = first + np.arange(counts.sum())
        return self.draw_images(numbers), counts


def _select_factors(
    columns: Mapping[str, Description],
    factors: Sequence[str] | None,
) -> dict[str, Description]:
    """Selects the columns that are factors, by default all.

    Args:
        columns: All columns by name.
        factors: Names of factors; some have a kind, `x:continuous`.

    Raises:
        TableError: If there is no column of a name.
    """
    kinds = {}
    for factor in factors or columns:
        name, kind = split_head(factor)
        if name not in columns:
            rule = f"must be among {', '.join(columns)}"
            raise TableError("factors", rule, name)
        kinds[name] = kind

    selected = {}
    for name, given in columns.items():
        if name in kinds:
            kind = kinds[name] or given.kind
            selected[name] = dataclasses.replace(given, kind=kind)
    return selected


def to_array(given: Any) -> Any:
    """Returns tensors of PyTorch or TensorFlow and lists as NumPy arrays."""
    if isinstance(given, Array):
        return given
    if hasattr(given, "detach"):  # PyTorch
        given = given.detach().cpu()
        if "bfloat16" in str(given.dtype):
            given = given.float()
    return np.asarray(given)


def check_images(given: Any) -> Array:
    """Returns images as an array [n, H, W] or [n, H, W, C].

    Raises:
        TableError: For another type or shape, or more than the memory.
    """
    images = to_array(given)
    shape = list(images.shape)
    if len(shape) not in (3, 4) or 0 in shape:
        rule = "must be [n, H, W] or [n, H, W, C] and not empty"
        raise TableError("images", rule, shape)
    has_colors = shape[-1] in COLORS
    if len(shape) == 4 and shape[1] in COLORS and not has_colors:
        rule = "must be [n, H, W, C] (images.transpose(0, 2, 3, 1))"
        raise TableError("images", rule, shape)
    if images.dtype.kind not in "buif":
        rule = "must be integers or floating point numbers"
        raise TableError("images", rule, images.dtype)
    # The rest is checked when it is read; a file may be large.
    sample = images[:: len(images) // SAMPLED + 1]
    _check_range(sample.min(), sample.max(), images.dtype)

    if images.flags.c_contiguous:
        return images
    # Transposed images and MATLAB's are copied once: their pixels lie
    # far apart, and reading a batch takes some 25 times as long.
    check_bytes("images", images.nbytes)
    return np.ascontiguousarray(images)


def _check_range(low: float, high: float, dtype: np.dtype) -> None:
    """Refuses pixels that are no shades; NaN is refused elsewhere."""
    rule = "must be of at most 16 bits, from 0"
    lowest = 0.0
    highest = 2.0**MAX_BITS - 1
    if dtype.kind == "f":
        rule = "must be 0 to 1 if they are floats"
        lowest = -TOLERANCE
        highest = 1 + TOLERANCE
        if highest < high <= 255:
            rule += " (images / 255)"
    if low < lowest or high > highest:
        raise TableError("images", rule, f"{low:g} to {high:g}")


def _find_limits(images: Array) -> tuple[float, float]:
    """Finds the smallest and largest pixel; all must be finite and differ."""
    lowest = images[0]
    highest = images[0]
    for start in range(0, len(images), PART):
        part = images[start : start + PART]
        lowest = np.minimum(lowest, part.min(axis=0))
        highest = np.maximum(highest, part.max(axis=0))
        release_memory(images)

    low = float(lowest.min())
    high = float(highest.max())
    if not np.isfinite([low, high]).all():
        flat = images.reshape(len(images), -1)
        is_finite = np.isfinite(flat).all(axis=1)
        rule = "must be finite, there is NaN or infinity in image"
        raise TableError("images", rule, int(is_finite.argmin()))
    if len(images) > 1 and np.array_equal(lowest, highest):
        got = f"{len(images)} times the same"
        raise TableError("images", "must differ", got)
    return low, high
