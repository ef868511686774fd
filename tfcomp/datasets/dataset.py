"""`Dataset`: factors, splits and a renderer; `make_dataset` builds it."""

import dataclasses
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy import ndarray as Array

from tfcomp.config.errors import ConfigError
from tfcomp.config.plugins import Registry
from tfcomp.config.run_config import RunConfig
from tfcomp.datasets import grid_maps, splits
from tfcomp.datasets.factors import (
    MAX_DIRECTIONS,
    FactorSpace,
    find_rows,
    number_rows,
)
from tfcomp.datasets.regions import Region, parse_region
from tfcomp.datasets.splits import (
    Copies,
    Points,
    Splits,
    choose_rows,
    find_copies,
)

DATASETS = Registry("dataset")
# Datasets that make their images; a plugin's may read a file.
READ_NO_FILE = "gaussian_bumps stripes rotated_digits sprites composed".split()
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
            unreadable data.
        notes: Lines that runs print first (see `list_notes`).
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
        pass_rows: The rows of the training table in a pass, some of them
            several times (`--balance`, `--correlation`); None for each once.
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
    compare: Callable[..., tuple[Array, Array]] | None = None
    draw_all: Render | None = None
    sigma: float = 0.0
    noise: float = 0.0
    pass_rows: Array | None = None
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
            if factor.periodic or factor.categorical:
                return False
            if factor.low < 0 or factor.high >= side:
                return False
            if factor.unit not in ("", "px"):
                return False
        return True

    @cached_property
    def ground(self) -> float | None:
        """Pixel value of the background, 0 or 1; None if there is none.

        Undeclared, it must fill more than half of each image of one channel.
        """
        if self.has_background:
            return 1.0 if self.polarity == "dark" else 0.0
        if self.has_background is False:
            return None
        if self.image_shape[2] > 1:
            return None

        images = self._sample_training()
        for ground in (0.0, 1.0):
            distances = np.abs(images - ground)
            is_ground = distances <= GROUND_TOLERANCE
            shares = is_ground.mean(axis=(1, 2, 3))
            if (shares > 0.5).all():
                return ground
        return None

    @cached_property
    def reference(self) -> Any:
        """The image whose error is the unit of the relative MSE.

        The pixel value of a blank image if the data declare a background, else
        the mean of at most `MAX_AVERAGED` training images, [H, W, C].
        """
        if self.has_background:
            return self.ground
        images = self._sample_training()
        return images.mean(axis=0, dtype=np.float64)

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

    def _sample_training(self) -> Array:
        count = len(self.splits.train)
        rows = choose_rows(count, MAX_AVERAGED)
        return self.render_training(rows)

    def render_training(self, rows: Array) -> Array:
        """Returns the images of rows of the training table, without noise.

        Args:
            rows: Rows of the training table, [n].
        """
        if self.draw_train is not None:
            return self.render_array(rows, self.draw_train)
        points = self.splits.train[rows]
        return self.render_array(points)

    @property
    def is_mapped(self) -> bool:
        """True if the grid is small enough to be an array, [*sizes]."""
        if len(self.space) > MAX_MAPPED:
            return False
        num_cells = math.prod(self.space.shape)
        return num_cells <= MAX_CELLS

    @cached_property
    def id_mask(self) -> Array | None:
        """Mask of ID combinations, [*sizes]; None for a large space."""
        if not self.is_mapped:
            return None
        is_id = ~self.splits.all.is_ood
        return self._spread(is_id)

    @property
    def held_out(self) -> Array:
        """Mask of held-out combinations, [*sizes], where `is_mapped`."""
        return self._spread(self.splits.all.is_ood)

    def _spread(self, mask: Array) -> Array:
        points = self.splits.all.factors
        return grid_maps.arrange_on_grid(
            self.space,
            points,
            values=mask,
            empty=False,
        )

    @cached_property
    def planes(self) -> list[grid_maps.Plane]:
        """Planes for maps; none without two ordered factors or if large."""
        if not self.is_mapped:
            return []
        points = self.splits.all
        return grid_maps.list_planes(
            self.space.factors,
            index=self.space.to_index(points.factors),
            is_ood=points.is_ood,
        )

    @cached_property
    def vertical(self) -> dict[str, int]:
        """1 for factors that move pictures up as they grow, -1 for down.

        The height of a picture, the mean of where it differs from the median
        of all, has to correlate with the factor by more than 1/2.
        """
        up = 1 if self.first_row == "bottom" else -1
        if self.has_position:
            return {"y": up}
        render = self.render
        if not self.is_pixels:
            # A vector has a picture of its item, or none.
            render = vars(self)["pictures"]
        if render is None:
            return {}

        points = self.splits.all.factors
        sample = choose_rows(len(points), MAX_VERTICAL)
        points = points[sample]
        images = self.render_array(points, render)
        correlations = _correlate_heights(points, images, up)

        directions = {}
        for column, factor in enumerate(self.space):
            if factor.categorical or factor.periodic:
                continue
            r = correlations[column]
            if abs(r) > 0.5:
                directions[factor.name] = int(np.sign(r))
        return directions

    def at_points(self, points: Points) -> "Dataset":
        """Returns the dataset with these points as its grid.

        Args:
            points: Some of the combinations that exist.
        """
        sample = dataclasses.replace(
            self.splits,
            points=points,
            existing=self.splits.all,
            is_complete=False,
            is_streamed=False,
        )
        dataset = dataclasses.replace(self, splits=sample)
        if "copies" in vars(self):  # of all combinations, which stay
            vars(dataset)["copies"] = self.copies
        return dataset

    @cached_property
    def copies(self) -> Copies:
        """Held-out images that training contains, and equal training images."""
        return find_copies(self._draw_compared, self.space, self.splits)

    def _draw_compared(self, factors: Array) -> Iterator[Any]:
        if self.draw_all is None:
            yield from self.render_parts(factors)
            return
        for point in factors[:, None]:
            # All images as one: different images may have equal means.
            yield [self.draw_all(point)]

    def list_notes(self) -> list[str]:
        """Returns notes to read before scores of this split, a line each."""
        lines = [*self.notes]
        sample = _describe_sample(self)
        if sample:
            lines.append(sample)
        hidden = " and ".join(self.splits.hidden)
        if hidden:
            lines.append(
                f"not compositional: training lacks values of {hidden} that "
                f"--region={self.region.spec} holds out"
            )
        if self.region.contains(self.splits.train).any():
            lines.append("control: trained on the region as well (--train_all)")
        return lines

    @cached_property
    def subsets(self) -> dict[str, Array]:
        """Masks of the scored points: `id`, `ood`, and `id_test` if any.

        `ood_new` has the held-out points whose images training lacks, where
        it contains others.
        """
        scored = self.splits.scored
        is_copy = self.copies.is_copy
        if not self.splits.is_streamed:
            is_copy = self.select_points(is_copy)
        is_new = scored.is_ood & ~is_copy

        masks = {
            "id": ~scored.is_ood,
            "ood": scored.is_ood,
        }
        if is_copy.any() and is_new.any():
            masks["ood_new"] = is_new
        if scored.is_test.any():
            masks["id_test"] = scored.is_test
        return masks

    def select_points(self, values: Array) -> Array:
        """Selects the values at grid points from values at all combinations.

        Args:
            values: A value for each combination that exists, [n].
        """
        if self.splits.existing is None:
            return values
        rows = find_rows(self.splits.grid, self.splits.all.factors)
        return values[rows]

    @cached_property
    def grid_images(self) -> Array:
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
        self,
        points: Array,
        limit: int,
    ) -> tuple[Array, Array]:
        """Renders single true images, where `render_array` has their means.

        Args:
            points: Factor values, [n, F].
            limit: Total number of images, unless there are more points.
                Each point has an equal share, a random sample that is the
                same in every call, and at least one image.

        Returns:
            Images [m, *image_shape], point after point,
            and the row of the point of each image, [m].
        """
        num_points = len(points)
        rows = np.arange(num_points)
        if self.draw_all is None:
            return self.render_array(points), rows

        share = limit // max(1, num_points)
        share = max(1, share)
        parts = []
        counts = []
        for point in points[:, None]:
            images = self.draw_all(point)
            sample = choose_rows(len(images), share)
            parts.append(images[sample])
            counts.append(len(sample))
        images = np.concatenate(parts)
        image_rows = np.repeat(rows, counts)
        return images, image_rows

    def render_array(
        self,
        factors: Array,
        render: Render | None = None,
    ) -> Array:
        """Renders a factor table into an array.

        Args:
            factors: Factor values, [n, F].
            render: By default the renderer of the dataset, which draws the
                mean where a combination has several images.
        """
        parts = self.render_parts(factors, render)
        return np.concatenate(list(parts))

    def render_parts(
        self,
        factors: Array,
        render: Render | None = None,
    ) -> Iterator[Array]:
        """Yields images by parts that stay in a cache of the processor.

        Args:
            factors: Factor values, [n, F].
            render: By default the renderer of the dataset.
        """
        if render is None:
            render = self.render
        num_pixels = math.prod(self.image_shape)
        size = max(1, MAX_PIXELS // num_pixels)
        num_parts = len(factors) // size + 1
        for part in np.array_split(factors, num_parts):
            # Renderers of plugins may transpose their images.
            yield np.ascontiguousarray(render(part))

    def to_pictures(self, images: Array) -> Array:
        """Returns images as they are shown, [n, H, W, C].

        Args:
            images: Images of the dataset, [n, *image_shape].
        """
        return images


def _correlate_heights(
    points: Array,
    images: Array,
    up: int,
) -> Array:
    """Correlates factors with the heights of pictures, [F].

    Args:
        points: Factor values, [n, F].
        images: Their pictures, [n, H, W, C].
        up: 1 if row 0 is at the bottom, -1 if it is at the top.
    """
    median = np.median(images, axis=0)
    contrast = np.abs(images - median)
    mass = contrast.sum(axis=(2, 3))  # [n, H]
    total = mass.sum(axis=1, keepdims=True)
    rows = np.arange(mass.shape[1])
    with np.errstate(all="ignore"):  # NaN for constant values
        shares = mass / total.clip(1e-9)
        heights = up * shares @ rows
        correlations = np.corrcoef(points.T, heights)
    return correlations[-1, :-1]


def make_dataset(config: RunConfig) -> Dataset:
    """Builds the dataset that a configuration names, without TensorFlow.

    Args:
        config: The settings of a run, as `parse_config` makes them.

    Raises:
        ConfigError: For settings that do not fit each other.
        RunError: For data that are not as the run had them.
    """
    data = config.data
    if data.data and data.dataset in READ_NO_FILE:
        rule = "must go with --dataset=table, which reads it"
        raise ConfigError("data", rule, data.data)
    if data.correlation and data.balance:
        rule = "must be false with --correlation, which weighs images"
        raise ConfigError("balance", rule, True)

    registered = DATASETS.get(data.dataset)
    build = registered.load()
    dataset = build(config)
    if not isinstance(dataset, Dataset):
        kind = type(dataset).__name__
        rule = f"must return a Dataset, not {kind}"
        raise ConfigError("dataset", rule, data.dataset)

    if data.correlation:
        dataset = _correlate(dataset, data.correlation)
    if data.balance:
        train = dataset.splits.train
        rows = splits.repeat_rare(dataset.space, train)
        dataset = dataclasses.replace(dataset, pass_rows=rows)
    # A builder of a plugin may have noise of its own.
    if data.noise:
        dataset = dataclasses.replace(dataset, noise=data.noise)
    return dataset


def _correlate(dataset: Dataset, pairs: str) -> Dataset:
    """Repeats the training images of a dataset by `--correlation`."""
    train = dataset.splits.train
    weights = splits.weigh_correlated(train, dataset.space, pairs)
    rows = splits.repeat_rows(weights)
    count = len(train)

    # This number of images of equal weight is as good (Kish 1965).
    total = weights.sum()
    squares = np.square(weights)
    num_equal = total**2 / squares.sum()
    note = (
        f"correlated: {pairs}, like {num_equal:,.1f} of {count:,} "
        "training images of equal weight, (sum w)^2 / sum w^2"
    )
    num_hidden = count - len(np.unique(rows))
    if num_hidden:
        note += f"; {num_hidden:,} are too rare to be shown at all"
    return dataclasses.replace(
        dataset,
        pass_rows=rows,
        notes=(*dataset.notes, note),
    )


def build_dataset(
    config: RunConfig,
    space: FactorSpace,
    region: Region | None = None,
    train: Array | None = None,
    cells: Array | None = None,
    kind: type[Dataset] = Dataset,
    **fields: Any,
) -> Dataset:
    """Builds a dataset with the splits of a configuration.

    Args:
        config: The settings of a run.
        space: The factors.
        region: What is held out; by default `--region`.
        train: Factor values of the training examples [n, F]; by default they
            are sampled as `--num_train` and `--coordinates` say.
        cells: The combinations that exist [n, F]; by default the grid.
        kind: The class of the dataset.
        **fields: Its other fields.
    """
    if region is None:
        region = parse_region(config.data.region, space)
    if train is None:
        train = splits.draw_training_table(
            config,
            space,
            region,
            cells,
        )
    points = splits.make_splits(
        space,
        region,
        train,
        eval_points=config.eval_points,
        cells=cells,
        train_all=config.data.train_all,
    )
    return kind(
        name=config.data.dataset,
        space=space,
        region=region,
        splits=points,
        **fields,
    )


def _describe_sample(dataset: Dataset) -> str:
    """Describes coverage of the results, if they leave out combinations."""
    splits = dataset.splits
    if splits.is_complete:
        return ""
    missing = "tuning, which needs a complete grid, is left out"
    if not dataset.is_mapped:
        missing = f"{missing}, and so are maps of so large a grid"
    if len(dataset.space.ordered) > MAX_DIRECTIONS:
        missing += f", and the geometry of more than {MAX_DIRECTIONS} factors"
    if splits.existing is None:
        return f"{_describe_existing(dataset)}; {missing}"
    subject = "analyses look" if splits.is_streamed else "evaluation looks"
    return (
        f"{subject} at a sample of {len(splits.points):,} of the "
        f"{len(splits.all):,} combinations, {splits.is_ood.sum():,} of them "
        f"held out (--eval_points); {missing}"
    )


def _describe_existing(dataset: Dataset) -> str:
    """Says how much of the grid exists."""
    space = dataset.space
    size = math.prod(space.shape)
    of_size = f"of {_format_size(size)}"
    index = space.to_index(dataset.splits.grid)
    num_points = len(index)
    num_bins = len(np.unique(number_rows(index)))
    if num_bins < num_points or num_bins == size:
        return f"{num_points:,} points lie in {num_bins:,} {of_size} bins"
    return f"{num_bins:,} {of_size} combinations exist"


def _format_size(size: int) -> str:
    """Formats the number of combinations of a grid, which may be huge."""
    if size < 10**12:
        return f"{size:,}"
    return f"some 10^{round(math.log10(size))}"
