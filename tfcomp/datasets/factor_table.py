"""`FactorTable`: users' images, and the factors that they show.

    table = tfcomp.FactorTable(images, classes, names=["shape", "angle"])

Combinations may be missing, and have several images, which differ in columns
that are no factors (*nuisance*) or in nothing that is named. Images keep their
type in memory, and are made float32 from 0 to 1 when they are drawn.
"""

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np

from tfcomp.datasets import table_checks
from tfcomp.datasets.factors import (
    FactorSpace,
    find_keys,
    make_keys,
    number_rows,
)
from tfcomp.datasets.table_checks import TableError, to_array
from tfcomp.datasets.table_factors import (
    FactorColumn,
    make_factors,
    set_kinds,
)

SAMPLE = 256  # number of images whose brightness is measured
SAME = 1e-4  # of a bin: points that are closer are one


class FactorTable:
    """Images and the classes of their factors.

    Args:
        images: [n, H, W] or [n, H, W, C], integers or floating point numbers;
            may be mapped to a file. None for factors alone.
        classes: Integers from 0, [n, F]: the value of every factor; of
            continuous factors any numbers.
        values: Values of the classes, rising: a list of numbers (or None) per
            factor, or [n, F] by image. By default the classes themselves.
        names: Names of the factors.
        sizes: Numbers of classes; by default the number that occurs.
        kinds: Per factor `ordered`, `categorical`, `periodic` (the period is
            one step more than the values; a note tells it),
            `periodic:PERIOD`, `continuous` or `continuous:BINS`. By default
            factors are ordered, and categorical if they have `levels` and
            no values.
        levels: Names of the classes, a list (or None) per factor.
        units: Units of the values.
        factors: The columns that are factors, by name or as `x:continuous`;
            by default all. The others are nuisance.
        bins: Grid values of a continuous factor, evenly spaced from its
            smallest to its largest value; each point belongs to the nearest.

    Attributes:
        space: The factors that vary; `notes` names the others.
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
        images: np.ndarray | None,
        classes: np.ndarray,
        values: Sequence[Any] | np.ndarray | None = None,
        names: Sequence[str] | None = None,
        sizes: Sequence[int] | None = None,
        kinds: Sequence[str] | None = None,
        levels: Sequence[Sequence[str] | None] | None = None,
        units: Sequence[str] | None = None,
        factors: Sequence[str] | None = None,
        bins: int = 8,
    ) -> None:
        self._images = None
        if images is not None:
            self._images = table_checks.check_images(images)
        self.image_shape = self._find_image_shape()
        if names is None and hasattr(classes, "columns"):
            names = [str(column) for column in classes.columns]
        classes = to_array(classes)
        options: dict[str, Any] = {
            "values": to_array(values) if hasattr(values, "shape") else values,
            "names": names,
            "sizes": sizes,
            "kinds": kinds,
            "levels": levels,
            "units": units,
        }
        self._given = (classes, dict(options))

        if factors is not None:
            options["kinds"] = set_kinds(names, kinds, factors)
        num_images = len(classes if self._images is None else self._images)
        columns = make_factors(classes, num_images, options, bins)
        varied = [column for column in columns if np.ptp(column.index) > 0]
        chosen = varied
        if factors:
            asked = {name.partition(":")[0] for name in factors}
            chosen = [c for c in varied if c.factor.name in asked]
        if not chosen:
            first = [int(column.index[0]) for column in columns]
            raise TableError("classes", "must vary", first)

        self.space = FactorSpace(tuple(column.factor for column in chosen))
        self.is_continuous = any(column.is_continuous for column in chosen)
        values = np.stack([column.values for column in chosen], axis=1)
        self._sort(values.astype(np.float32))
        self.notes = self._list_notes(columns, varied)

    def _find_image_shape(self) -> tuple[int, int, int]:
        if self._images is None:
            return (0, 0, 1)
        _, height, width, *channels = self._images.shape
        return height, width, channels[0] if channels else 1

    def _list_notes(
        self, columns: Sequence[FactorColumn], varied: Sequence[FactorColumn]
    ) -> tuple[str, ...]:
        notes = []
        for column in columns:
            if column not in varied:
                name = column.factor.name
                notes.append(f"left out: {name}, which has a single value")
        for factor in self.space:
            if factor.periodic:
                period = factor.describe_period()
                notes.append(f"{factor.name}: periodic, {period}")
        others = [c.factor for c in varied if c.factor not in self.space]
        if others:
            sizes = ", ".join(f"{f.name} ({f.size})" for f in others)
            notes.append(f"nuisance: {sizes}")
        if self.is_repeated:
            notes.append(
                f"{len(self.rows):,} images of {len(self.points):,} "
                "combinations: scores are means over the images of each"
            )
        return tuple(notes)

    def select(self, factors: Sequence[str]) -> "FactorTable":
        """Returns the table with these columns as factors, all others not."""
        classes, options = self._given
        return FactorTable(self._images, classes, **options, factors=factors)

    def _sort(self, values: np.ndarray) -> None:
        """Sorts images by their factor values, [n, F]."""
        self.rows = number_rows(values)
        # Images, sorted, and the first one of each combination.
        self._order = np.argsort(self.rows, kind="stable")
        self.counts = np.bincount(self.rows)
        self._starts = np.cumsum(self.counts) - self.counts
        self.points = values[self._order[self._starts]]

    @property
    def is_repeated(self) -> bool:
        """True if a combination has several images."""
        return len(self._order) > len(self.points)

    @property
    def images(self) -> np.ndarray:
        """All images as they are given."""
        if self._images is None:
            raise TableError("images", "must be given to be drawn", None)
        return self._images

    @cached_property
    def scale(self) -> float:
        """Number that pixels are divided by; 1 for 0/1 images and floats."""
        return table_checks.choose_divisor(self.images)

    def inspect(self) -> tuple[str, ...]:
        """Reads and checks all images; returns notes on them."""
        if self._images is None:
            return ()
        return table_checks.note_darkness(self.images, self.scale)

    def __repr__(self) -> str:
        items = "rows"
        if self._images is not None:
            items = f"images of {' x '.join(map(str, self.image_shape))}"
        count = f"FactorTable of {len(self.rows):,} {items}"
        factors = ", ".join(f"{f.name} ({f.size})" for f in self.space)
        return "; ".join([count, factors, *self.notes])

    def find_points(self, factors: np.ndarray) -> np.ndarray:
        """Finds rows of `points` for factor values [n, F]; -1 for none."""
        if self.is_continuous:
            steps = np.array([factor.step for factor in self.space])
            scaled = np.asarray(factors, float) / steps
            _, rows = self._tree.query(scaled, distance_upper_bound=SAME)
            return np.where(rows < len(self.points), rows, -1)
        order, keys = self._keys
        index = self.space.to_index(np.asarray(factors))
        places = find_keys(make_keys(index), keys)
        return np.where(places < 0, -1, order[places])

    @cached_property
    def _tree(self) -> Any:
        from scipy.spatial import cKDTree

        return cKDTree(self.points / [factor.step for factor in self.space])

    @cached_property
    def _keys(self) -> tuple[np.ndarray, np.ndarray]:
        """Rows of `points` in the order of their keys, and these keys."""
        keys = make_keys(self.space.to_index(self.points))
        order = np.argsort(keys)
        return order, keys[order]

    def draw(self, factors: np.ndarray) -> np.ndarray:
        """Returns the image of each combination, the mean of several.

        Args:
            factors: Factor values, [n, F].

        Returns:
            Images from 0 to 1, float32 [n, *image_shape].

        Raises:
            TableError: If a combination has no image.
        """
        images, starts = self._take(factors)
        if len(starts) == len(images):
            return images
        sums = np.add.reduceat(images, starts)
        counts = np.diff([*starts, len(images)]).astype(np.float32)
        return sums / counts[:, None, None, None]

    def compare(
        self, factors: np.ndarray, images: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Compares images with all images of their combinations.

        Args:
            factors: Factor values, [n, F].
            images: An image of each combination, [n, *image_shape].

        Returns:
            The mean and the standard deviation of the MSE, [n] each.
        """
        means = np.zeros(len(factors))
        spreads = np.zeros(len(factors))
        for start in range(0, len(factors), SAMPLE):
            rows = slice(start, start + SAMPLE)
            truth, starts = self._take(factors[rows])
            counts = np.diff([*starts, len(truth)])
            outputs = np.repeat(images[rows].astype(float), counts, axis=0)
            errors = np.square(outputs - truth).mean(axis=(1, 2, 3))
            means[rows] = np.add.reduceat(errors, starts) / counts
            squares = np.square(errors - np.repeat(means[rows], counts))
            spreads[rows] = np.sqrt(np.add.reduceat(squares, starts) / counts)
        return means, spreads

    def draw_images(self, numbers: np.ndarray) -> np.ndarray:
        """Returns images in float32 by their numbers, sorted by points."""
        images = self.images[self._order[numbers]].astype(np.float32)
        images /= np.float32(self.scale)
        return images.reshape(-1, *self.image_shape)

    def draw_all(self, factors: np.ndarray) -> np.ndarray:
        """Returns all images of combinations [n, F], one after the other."""
        return self._take(factors)[0]

    def _take(self, factors: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Returns all images of combinations, and the start of each."""
        rows = self.find_points(factors)
        if (rows < 0).any():
            absent = np.asarray(factors)[[rows.argmin()]]
            point = self.space.name_point(self.space.to_index(absent)[0])
            raise TableError("images", "must contain the combination", point)
        counts = self.counts[rows]
        starts = np.cumsum(counts) - counts
        # Images of a combination are neighbors in `_order`.
        first = np.repeat(self._starts[rows] - starts, counts)
        numbers = first + np.arange(counts.sum())
        return self.draw_images(numbers), starts
