"""`Dataset`: factors, splits and a renderer; chosen by `--dataset`."""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from tfcomp.config.registry import Registry
from tfcomp.config.run_config import RunConfig
from tfcomp.datasets.factors import FactorSpace
from tfcomp.datasets.grid_maps import GridMap, Plane, list_planes
from tfcomp.datasets.regions import Region, parse_region
from tfcomp.datasets.splits import (
    Points,
    Splits,
    draw_training_table,
    make_splits,
)

DATASETS = Registry("dataset")
MAX_PIXELS = 2**18  # that are rendered at once
Render = Callable[[Any], Any]
MAX_AVERAGED = 4096  # training images
GROUND_TOLERANCE = 1 / 255  # of pixels that show the ground
MAX_CELLS = 2 * 10**7  # of a space that maps are cut from


@dataclass(frozen=True)
class Dataset:
    """Everything that training and evaluation need to know of the data.

    Attributes:
        render: Factor values [n, F] to images [n, *image_shape] of rows,
            columns and channels, in TensorFlow, imported when first called.
        polarity: "bright" or "dark": whether peaks are maxima or minima.
        has_background: True declares that every image shows objects on a
            constant ground, 0 if bright and 1 if dark; errors then refer to
            a blank image. By default nothing is declared, and they refer to
            the mean training image (see `reference`).
        has_position: Whether factors x and y are the place of the peak in
            pixels, so that position scores make sense. By default so if they
            are the only factors, ordered, and their ranges lie on the image.
        other_truths: More renderers that outputs are compared with, by a
            name that is added to `id` and `ood` in the scores.
        first_row: Where row 0 is in pictures, "bottom" or "top".
        prepare: Called before a run writes anything; raises `RunError` if
            data that rendering needs cannot be read. A tuple of notes that it
            returns is printed.
        notes: More lines for `announcements`.
        size_flag: The flag that the number of combinations grows with.
        stored_bytes: Size of images that are held in memory to be rendered.
        train_images: Images of the training table [n, *image_shape] that
            batches take in place of rendering them; None renders.
        noise: Standard deviation of Gaussian noise that batches add.
        balance: Whether batches draw images of rare values more often.
        about: What the images show and where they come from, for data cards.
        license: Of the images, as model hubs abbreviate it; "" is not known.
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
    other_truths: dict[str, Render] = field(default_factory=dict)
    first_row: str = "bottom"
    prepare: Callable[[], Any] = lambda: ()
    notes: tuple[str, ...] = ()
    size_flag: str = "dataset"
    stored_bytes: int = 0
    train_images: np.ndarray | None = None
    noise: float = 0.0
    balance: bool = False
    about: str = ""
    license: str = ""

    def __post_init__(self) -> None:
        if self.has_position is None:
            sides = zip(self.space, self.image_shape[1::-1], strict=False)
            found = self.space.names == ("x", "y") and all(
                f.unit in ("", "px")
                and not (f.periodic or f.categorical)
                and 0 <= f.low < f.high < side
                for f, side in sides
            )
            object.__setattr__(self, "has_position", found)

    @cached_property
    def ground(self) -> float | None:
        """Pixel value where nothing is drawn, 0 or 1; None if there is none.

        Declared by `has_background`. If nothing is declared, images of one
        channel have a ground if more than half of the pixels of each of them
        have its value.
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
    def reference(self) -> float | np.ndarray:
        """The image whose error is the unit of relative errors.

        A blank image (its pixel value) if the data declare their ground, else
        the mean of at most `MAX_AVERAGED` training images, [H, W, C]. It does
        not depend on the order of images.
        """
        if self.has_background:
            return self.ground
        return self._sample_training().mean(axis=0, dtype=np.float64)

    @property
    def reference_label(self) -> str:
        """The reference as `metrics.json` names it."""
        if self.has_background:
            return f"blank {self.ground:g}"
        return "mean training image"

    @property
    def reference_name(self) -> str:
        """The reference within a sentence."""
        is_blank = self.has_background
        return "a blank image" if is_blank else "the mean training image"

    def _sample_training(self) -> np.ndarray:
        chosen = choose_rows(len(self.splits.train), MAX_AVERAGED)
        return self.render_array(self.splits.train[chosen])

    @cached_property
    def planes(self) -> list[Plane]:
        """Where maps can be drawn: none without two ordered factors.

        Of a large space none either: it would have to be written down.
        """
        if self.known is None:
            return []
        return list_planes(self.space.factors, self._held_out, self.known)

    @cached_property
    def known(self) -> np.ndarray | None:
        """Which combinations are ID, [*sizes]; None of a large space."""
        if math.prod(self.space.shape) > MAX_CELLS:
            return None
        every = self.splits.all
        return self._spread(every.factors, ~every.is_ood, False)

    @property
    def _held_out(self) -> np.ndarray:
        every = self.splits.all
        return self._spread(every.factors, every.is_ood, False)

    def make_map(self, values: np.ndarray) -> GridMap:
        """Numbers per grid point [n] as a map; NaN at all other points."""
        found = self._spread(self.splits.grid, values, np.nan)
        mask = self._held_out
        return GridMap(found, self.space.factors, mask if mask.any() else None)

    @cached_property
    def at_map_points(self) -> Dataset:
        """The data with a grid that has the points of all maps."""
        if self.splits.is_complete or not self.planes:
            return self
        every, space = self.splits.all, self.space
        is_shown = np.zeros(space.shape, bool)
        for plane in self.planes:
            is_shown[plane.index] = True
        return self.at_points(
            every[is_shown[tuple(space.to_index(every.factors).T)]]
        )

    def at_points(self, points: Points) -> Dataset:
        """The data with some of its points as the grid of what is scored."""
        splits = dataclasses.replace(
            self.splits,
            points=points,
            existing=self.splits.all,
            is_complete=False,
            is_streamed=False,
        )
        return dataclasses.replace(self, splits=splits)

    def _spread(
        self, points: np.ndarray, values: np.ndarray, empty: Any
    ) -> np.ndarray:
        """Values of points [n] in an array of the whole space."""
        spread = np.full(self.space.shape, empty, np.result_type(values, empty))
        spread[tuple(self.space.to_index(points).T)] = values
        return spread

    def render_array(
        self, factors: np.ndarray, render: Render | None = None
    ) -> np.ndarray:
        """Images of a factor table as an array, by default the true ones."""
        render = render or self.render
        # Parts that stay in a cache of the processor.
        size = max(1, MAX_PIXELS // math.prod(self.image_shape))
        parts = np.array_split(factors, len(factors) // size + 1)
        return np.concatenate([np.asarray(render(part)) for part in parts])

    @property
    def sample_note(self) -> str:
        """What results cover, where that is not every combination."""
        splits, size = self.splits, math.prod(self.space.shape)
        if splits.is_complete:
            return ""
        missing = "tuning, which needs a complete grid, is left out"
        if splits.existing is None:
            return f"{len(splits.grid):,} of {size:,} images exist; {missing}"
        what = "analyses look" if splits.is_streamed else "evaluation looks"
        return (
            f"{what} at a sample of {len(splits.grid):,} of the "
            f"{len(splits.all):,} combinations, {splits.is_ood.sum():,} of "
            f"them held out (--eval_points); {missing}"
        )

    @property
    def held_out_note(self) -> str:
        """Counts the held-out values of each factor that the region limits."""
        every = self.splits.all
        if not every.is_ood.any():
            return ""
        named = set(re.split("[:,|&]", self.region.spec))
        index = self.space.to_index(every.factors)
        parts = []
        for factor, column in zip(self.space, index.T, strict=True):
            held_out = np.unique(column[every.is_ood])
            known = np.intersect1d(held_out, column[~every.is_ood])
            hidden = len(held_out) - len(known)
            is_whole = len(known) == factor.size
            if factor.name in named or not is_whole:
                parts.append(
                    f"{factor.name}: {len(known)} of {factor.size} values in "
                    f"part, {hidden} altogether"
                )
        return f"held out of {'; '.join(parts)}" if parts else ""

    def announcements(self) -> list[str]:
        """What a user should know before reading scores of this split."""
        hidden = " and ".join(self.splits.hidden)
        warning = (
            f"not compositional: --region={self.region.spec} hides "
            f"values of {hidden} from training altogether"
        )
        lines = (*self.notes, self.sample_note, warning if hidden else "")
        return [line for line in lines if line]


def make_dataset(config: RunConfig) -> Dataset:
    """Builds the dataset that the configuration names, without TensorFlow.

    Raises:
        ConfigError: If its settings are impossible.
    """
    data = config.data
    dataset = DATASETS.get(data.dataset).load()(config)
    return dataclasses.replace(dataset, noise=data.noise, balance=data.balance)


def build_dataset(
    config: RunConfig,
    space: FactorSpace,
    region: Region | None = None,
    train: np.ndarray | None = None,
    cells: np.ndarray | None = None,
    **others: Any,
) -> Dataset:
    """A dataset with the splits that the configuration asks for.

    Region, training table and combinations that exist are by default those
    of the flags; the other arguments are those of `Dataset`.
    """
    region = region or parse_region(config.data.region, space)
    if train is None:
        train = draw_training_table(config, space, region, cells)
    splits = make_splits(space, region, train, config.eval_points, cells)
    return Dataset(config.data.dataset, space, region, splits, **others)


def choose_rows(count: int, limit: int) -> np.ndarray:
    """At most `limit` of 0 .. count - 1, rising, always the same ones."""
    if count <= limit:
        return np.arange(count)
    return np.sort(np.random.default_rng(0).choice(count, limit, replace=False))


def to_contrast(dataset: Dataset, images: np.ndarray) -> np.ndarray:
    """Images [n, H, W, C] as bumps of height 1 on 0, flattened, [n, pixels].

    Without a ground, their differences from the mean training image.
    """
    sign, reference = _find_origin(dataset)
    return sign * (images.reshape(len(images), -1) - reference)


def from_contrast(dataset: Dataset, bright: np.ndarray) -> np.ndarray:
    """The images [n, H, W, C] that `to_contrast` makes these of."""
    sign, reference = _find_origin(dataset)
    return (sign * bright + reference).reshape(-1, *dataset.image_shape)


def _find_origin(dataset: Dataset) -> tuple[float, float | np.ndarray]:
    ground = dataset.ground
    if ground is not None:
        return -1.0 if ground else 1.0, ground
    return 1.0, dataset.reference.ravel().astype(np.float32)


def restore(dataset: Dataset, bright: np.ndarray) -> np.ndarray:
    """Images [n, H, W, C] to look at, of bright ones [n, pixels].

    Each is scaled to its own maximum, since outputs can be faint; without a
    ground it becomes the image that it was.
    """
    images = bright.reshape(-1, *dataset.image_shape)
    if dataset.ground is None:
        return images + dataset.reference
    largest = np.abs(images).max(axis=(1, 2, 3), keepdims=True)
    return images / np.where(largest > 0, largest, 1.0)
