"""`Dataset`: factors, splits and a renderer."""

import dataclasses
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from tfcomp.datasets import grid_maps
from tfcomp.datasets.copies import Copies, find_copies
from tfcomp.datasets.factors import FactorSpace, number_rows
from tfcomp.datasets.regions import Region
from tfcomp.datasets.splits import Points, Splits, choose_rows

MAX_PIXELS = 2**18  # rendered at a time
Render = Callable[[Any], Any]
MAX_AVERAGED = 4096  # training images
MAX_VERTICAL = 128  # images that tell which way factors move them
GROUND_TOLERANCE = 1 / 255  # of pixels of the background
MAX_CELLS = 2 * 10**7  # of a space that maps are cut from
MAX_MAPPED = 10  # factors of it; ten have 45 pairs


@dataclass(frozen=True)
class Dataset:
    """Data for training and evaluation: factors, splits and a renderer.

    Attributes:
        render: Factor values [n, F] to images [n, *image_shape] of rows,
            columns and channels, in TensorFlow, imported when first called.
        polarity: "bright" if peaks are maxima, "dark" if they are minima.
        has_background: True declares that every image shows objects on a
            constant background, 0 if bright and 1 if dark; errors then refer
            to a blank image, else to the mean training image (`reference`).
        has_position: True if factors x and y are the peak in pixels, so that
            position scores make sense. By default true if they are the only
            factors, ordered, and their ranges lie on the image.
        is_continuous: True if `render` draws any value of an ordered factor,
            those between the values of the grid, too.
        other_truths: More renderers that outputs are compared with, by a
            name that is added to `id` and `ood` in the scores.
        first_row: Place of row 0 in pictures, "bottom" or "top".
        prepare: Called before a run writes anything; raises `RunError` for
            unreadable data. A tuple of notes that it returns is printed.
        notes: Lines that runs print first (`tfcomp.datasets.notes`).
        size_flag: Name of the flag that sets the number of combinations.
        draw_train: From rows of the training table to their images, where a
            combination has several or they lie on disk.
        compare: From factors [n, F] and images to the mean and the standard
            deviation, [n] each, of their MSE to all images of a combination,
            where one has several.
        draw_all: From factors [n, F] to all images of these combinations, where
            one has several.
        sigma: Standard deviation of bumps (px); 0 if there are none.
        noise: Standard deviation of Gaussian noise that batches add.
        weights: How often batches have each row of the training table, in
            relation to each other [n]; None for equally often.
        balance: True if batches repeat images of rare values.
        about: Content and origin of the images, for data cards.
        license: License as model hubs abbreviate it; "" if unknown.
    """

    name: str
    space: FactorSpace
    region: Region
    splits: Splits
    render: Render
    image_shape: tuple[int, int, int]
    polarity: str = "bright"
    has_position: bool | None = None
    has_background: bool | None = None
    is_continuous: bool = False
    other_truths: dict[str, Render] = field(default_factory=dict)
    first_row: str = "bottom"
    prepare: Callable[[], Any] = lambda: ()
    notes: tuple[str, ...] = ()
    size_flag: str = "dataset"
    draw_train: Render | None = None
    compare: Callable[..., tuple[np.ndarray, np.ndarray]] | None = None
    draw_all: Render | None = None
    sigma: float = 0.0
    noise: float = 0.0
    weights: np.ndarray | None = None
    balance: bool = False
    about: str = ""
    license: str = ""
    is_pixels: ClassVar[bool] = True  # False for `VectorDataset`

    def __post_init__(self) -> None:
        if self.has_position is None:
            object.__setattr__(self, "has_position", self._find_position())

    def _find_position(self) -> bool:
        """Tells whether the factors are a position in pixels."""
        if self.space.names != ("x", "y"):
            return False
        height, width, _ = self.image_shape
        for factor, side in zip(self.space, (width, height), strict=True):
            is_distance = not (factor.periodic or factor.categorical)
            is_inside = 0 <= factor.low and factor.high < side
            if factor.unit not in ("", "px") or not (is_distance and is_inside):
                return False
        return True

    @cached_property
    def ground(self) -> float | None:
        """Pixel value of the background, 0 or 1; None if there is none.

        Undeclared, it must fill more than half of each image of one channel.
        """
        if self.has_background:
            return 1.0 if self.polarity == "dark" else 0.0
        if self.has_background is False or self.image_shape[2] > 1:
            return None
        images = self._sample_training()
        for ground in (0.0, 1.0):
            is_ground = np.abs(images - ground) <= GROUND_TOLERANCE
            if (is_ground.mean(axis=(1, 2, 3)) > 0.5).all():
                return ground
        return None

    @cached_property
    def reference(self) -> Any:
        """The image whose error is the unit of relative errors.

        The pixel value of a blank image if the data declare a background, else
        the mean of at most `MAX_AVERAGED` training images, [H, W, C].
        """
        if self.has_background:
            return self.ground
        return self._sample_training().mean(axis=0, dtype=np.float64)

    @property
    def reference_name(self) -> str:
        """The reference within a sentence."""
        if self.has_background:
            return "a blank image"
        return "the mean training image"

    @property
    def reference_label(self) -> str:
        """The reference as `metrics.json` names it."""
        if self.has_background:
            return f"blank {self.ground:g}"
        return self.reference_name.removeprefix("the ")

    def _sample_training(self) -> np.ndarray:
        rows = choose_rows(len(self.splits.train), MAX_AVERAGED)
        return self.render_training(rows)

    def render_training(self, rows: np.ndarray) -> np.ndarray:
        """Returns the images of rows of the training table, without noise."""
        if self.draw_train is not None:
            return self.render_array(rows, self.draw_train)
        return self.render_array(self.splits.train[rows])

    @property
    def is_mapped(self) -> bool:
        """True if the grid is small enough to be an array, [*sizes]."""
        num_cells = math.prod(self.space.shape)
        return num_cells <= MAX_CELLS and len(self.space) <= MAX_MAPPED

    @cached_property
    def known(self) -> np.ndarray | None:
        """Mask of ID combinations, [*sizes]; None for a large space."""
        if not self.is_mapped:
            return None
        points = self.splits.all
        return grid_maps.spread(
            self.space, points.factors, values=~points.is_ood, empty=False
        )

    @property
    def held_out(self) -> np.ndarray:
        """Mask of held-out combinations, [*sizes], where `is_mapped`."""
        points = self.splits.all
        return grid_maps.spread(
            self.space, points.factors, values=points.is_ood, empty=False
        )

    @cached_property
    def planes(self) -> list[grid_maps.Plane]:
        """Planes for maps; none without two ordered factors or if large."""
        if not self.is_mapped:
            return []
        points = self.splits.all
        index = self.space.to_index(points.factors)
        return grid_maps.list_planes(self.space.factors, index, points.is_ood)

    @cached_property
    def vertical(self) -> dict[str, int]:
        """1 for factors that move pictures up as they grow, -1 for down.

        The height of a picture, the mean of where it differs from the median
        of all, has to correlate with the factor by more than 1/2.
        """
        up = 1 if self.first_row == "bottom" else -1
        if self.has_position:
            return {"y": up}
        # A vector has a picture of its item, or none.
        render = self.render if self.is_pixels else vars(self)["pictures"]
        if render is None:
            return {}

        points = self.splits.all.factors
        points = points[choose_rows(len(points), MAX_VERTICAL)]
        images = self.render_array(points, render)
        mass = np.abs(images - np.median(images, axis=0)).sum(axis=(2, 3))
        with np.errstate(all="ignore"):  # NaN for constant values
            shares = mass / mass.sum(axis=1, keepdims=True).clip(1e-9)
            heights = up * shares @ np.arange(mass.shape[1])
            correlations = np.corrcoef(points.T, heights)[-1, :-1]

        directions = {}
        for factor, r in zip(self.space, correlations, strict=True):
            is_distance = not (factor.categorical or factor.periodic)
            if is_distance and abs(r) > 0.5:
                directions[factor.name] = int(np.sign(r))
        return directions

    def at_points(self, points: Points) -> "Dataset":
        """Returns the dataset with these points as its grid."""
        splits = dataclasses.replace(
            self.splits,
            points=points,
            existing=self.splits.all,
            is_complete=False,
            is_streamed=False,
        )
        dataset = dataclasses.replace(self, splits=splits)
        if "copies" in vars(self):  # of all combinations, which stay
            vars(dataset)["copies"] = self.copies
        return dataset

    @cached_property
    def copies(self) -> Copies:
        """Held-out images that training contains, and equal training images."""
        return find_copies(self._draw_compared, self.space, self.splits)

    def _draw_compared(self, factors: np.ndarray) -> Iterator[Any]:
        draw_all = self.draw_all
        if draw_all is None:
            return self.render_parts(factors)
        # All images as one: different images may have equal means.
        return ([draw_all(row)] for row in factors[:, None])

    @cached_property
    def subsets(self) -> dict[str, np.ndarray]:
        """Masks of the scored points: `id`, `ood`, and `id_test` if any.

        `ood_new` has the held-out points whose images training lacks, where
        it contains others.
        """
        scored = self.splits.scored
        is_copy = self.copies.is_copy
        if not self.splits.is_streamed:
            is_copy = self.select_points(is_copy)
        is_new = scored.is_ood & ~is_copy

        masks = {"id": ~scored.is_ood, "ood": scored.is_ood}
        if is_copy.any() and is_new.any():
            masks["ood_new"] = is_new
        return masks | scored.subsets

    def select_points(self, values: np.ndarray) -> np.ndarray:
        """Selects the values at grid points from values at all combinations."""
        splits = self.splits
        if splits.existing is None:
            return values
        every = splits.all.factors
        places = number_rows(np.concatenate([every, splits.grid]))
        places, grid_places = np.split(places, [len(every)])
        rows = np.argsort(places)
        return values[rows[grid_places]]

    @cached_property
    def grid_images(self) -> np.ndarray:
        """True images of the evaluated points, [n, H, W, C], not writable.

        The mean image where a point has several.
        """
        images = self.render_array(self.splits.grid)
        images.flags.writeable = False
        return images

    @property
    def truth_label(self) -> str:
        """Label of `grid_images` in pictures."""
        return "truth" if self.draw_all is None else "mean of true images"

    def render_all(
        self, points: np.ndarray, limit: int
    ) -> tuple[np.ndarray, np.ndarray]:
        """Renders single true images, where `render_array` has their means.

        Args:
            points: Factor values, [n, F].
            limit: Total number of images, unless there are more points.
                Each point has an equal share, a random sample that is the
                same in every call, and at least one image.

        Returns:
            Images [m, *image_shape], those of a point one after the other,
            and the row of the point of each image, [m].
        """
        if self.draw_all is None:
            return self.render_array(points), np.arange(len(points))

        share = max(1, limit // max(1, len(points)))
        parts = []
        for point in points[:, None]:
            images = self.draw_all(point)
            parts.append(images[choose_rows(len(images), share)])

        counts = [len(part) for part in parts]
        return np.concatenate(parts), np.repeat(np.arange(len(points)), counts)

    def render_array(
        self, factors: np.ndarray, render: Render | None = None
    ) -> np.ndarray:
        """Renders a factor table into an array, by default with `render`.

        Where a combination has several images, this is their mean.
        """
        return np.concatenate(list(self.render_parts(factors, render)))

    def render_parts(
        self, factors: np.ndarray, render: Render | None = None
    ) -> Iterator[np.ndarray]:
        """Yields images by parts that stay in a cache of the processor."""
        render = render or self.render
        size = max(1, MAX_PIXELS // math.prod(self.image_shape))
        for part in np.array_split(factors, len(factors) // size + 1):
            # Renderers of plugins may transpose their images.
            yield np.ascontiguousarray(render(part))

    def to_pictures(self, images: np.ndarray) -> np.ndarray:
        """Returns images as they are shown, [n, H, W, C]."""
        return images
