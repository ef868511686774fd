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
from tfcomp.datasets.table_factors import CONTINUOUS, make_factors, set_kinds

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
        self._images = (
            None if images is None else table_checks.check_images(images)
        )
        shape = (0, 0) if self._images is None else self._images.shape
        self.image_shape: tuple[int, int, int] = (*shape[1:], 1, 0)[:3]
        if names is None and hasattr(classes, "columns"):
            names = [str(column) for column in classes.columns]
        values = to_array(values) if hasattr(values, "shape") else values
        options: dict[str, Any] = {"values": values, "names": names}
        options |= {"sizes": sizes, "kinds": kinds}
        options |= {"levels": levels, "units": units}
        classes = to_array(classes)
        self._given = classes, dict(options)
        if factors is not None:
            options["kinds"] = set_kinds(names, kinds, factors)
        count = len(classes) if images is None else shape[0]
        made, index, exact = make_factors(classes, count, options, bins)
        varies = np.flatnonzero(np.ptp(index, axis=0) > 0)
        named = {name.partition(":")[0] for name in factors or options["names"]}
        keep = [i for i in varies if made[i].name in named]
        if not keep:
            raise TableError("classes", "must vary", index[0].tolist())
        self.space = FactorSpace(tuple(made[i] for i in keep))
        kinds = options["kinds"] or [""] * len(made)
        chosen = [str(kinds[i]) for i in keep]
        self.is_continuous = any(k.startswith(CONTINUOUS) for k in chosen)
        self.notes: tuple[str, ...] = tuple(
            f"left out: {factor.name}, which has a single value"
            for i, factor in enumerate(made)
            if i not in varies
        )
        self.notes += tuple(
            f"{factor.name}: periodic, {factor.describe_period()}"
            for factor in self.space
            if factor.periodic
        )
        others = [made[i] for i in varies if i not in keep]
        if others:
            nuisance = (f"{factor.name} ({factor.size})" for factor in others)
            self.notes += (f"nuisance: {', '.join(nuisance)}",)
        self.rows = number_rows(exact[:, keep])
        self._sort(exact[:, keep])

    def select(self, factors: Sequence[str]) -> "FactorTable":
        """Returns the table with these columns as factors, all others not."""
        classes, options = self._given
        return FactorTable(self._images, classes, **options, factors=factors)

    def _sort(self, values: np.ndarray) -> None:
        # Rows of images, sorted, and the first one of each combination.
        self._order = np.argsort(self.rows, kind="stable")
        self.counts = np.bincount(self.rows)
        self._starts = np.cumsum(self.counts) - self.counts
        self.points = values[self._order[self._starts]]
        if self.is_repeated:
            self.notes += (
                f"{len(self.rows):,} images of {len(self.points):,} "
                "combinations: scores are means over the images of each",
            )

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
        factors = ", ".join(f"{f.name} ({f.size})" for f in self.space)
        kind = "rows"
        if self._images is not None:
            kind = f"images of {' x '.join(map(str, self.image_shape))}"
        count = f"FactorTable of {len(self._order):,} {kind}"
        return "; ".join([count, factors, *self.notes])

    def find_points(self, factors: np.ndarray) -> np.ndarray:
        """Returns rows of `points` for factor values [n, F]; -1 for none."""
        if self.is_continuous:
            steps = np.array([factor.step for factor in self.space])
            asked = np.asarray(factors, float) / steps
            _, rows = self._tree.query(asked, distance_upper_bound=SAME)
            return np.where(rows < len(self.points), rows, -1)
        asked = make_keys(self.space.to_index(np.asarray(factors)))
        order, keys = self._keys
        places = find_keys(asked, keys)
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
        """Returns the images of factor values in float32, means of several.

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
        """Returns mean and deviation of the MSE to images of a combination."""
        means, spreads = np.zeros((2, len(factors)))
        for start in range(0, len(factors), SAMPLE):
            rows = slice(start, start + SAMPLE)
            truth, starts = self._take(factors[rows])
            counts = np.diff([*starts, len(truth)])
            wrong = np.repeat(images[rows].astype(float), counts, 0) - truth
            errors = np.square(wrong).mean(axis=(1, 2, 3))
            means[rows] = np.add.reduceat(errors, starts) / counts
            around = np.square(errors - np.repeat(means[rows], counts))
            spreads[rows] = np.sqrt(np.add.reduceat(around, starts) / counts)
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
        first = np.repeat(self._starts[rows] - starts, counts)
        return self.draw_images(first + np.arange(counts.sum())), starts
