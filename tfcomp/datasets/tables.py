"""Datasets of users' files: images of a table, and embeddings."""

import contextlib
import functools
import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy import ndarray as Array

from tfcomp.config.errors import ConfigError, RunError, first_line
from tfcomp.config.hashes import TFDS, find_tfds_folder, hash_data
from tfcomp.config.run_config import RunConfig
from tfcomp.config.settings import CONTROLS, split_names
from tfcomp.datasets.dataset import DATASETS, Dataset, Render, build_dataset
from tfcomp.datasets.factor_table import FactorTable
from tfcomp.datasets.regions import Region, parse_region
from tfcomp.datasets.splits import Copies, draw_cells
from tfcomp.datasets.table_columns import TableError, load_images
from tfcomp.datasets.table_readers import READERS, TableFile, read_folder

SAMPLE = 256  # number of images whose brightness is measured


@DATASETS.register("table")
def make_table(config: RunConfig) -> Dataset:
    """Returns the dataset of `--data`, which must have the hash of the run."""
    data = config.data
    if not data.data:
        raise ConfigError("data", "must name a file for the dataset table", "")
    digest = hash_data(data.data, data.data_dir)
    if data.data_hash != digest:
        raise RunError(
            f"--data={data.data} is not what the run was made with: its hash "
            f"is {digest}, not {data.data_hash} (--data_hash= accepts it)"
        )
    with explain_damage(data.data):
        table = _read_again(
            digest,
            data.data,
            data.data_dir,
            data.factors,
            data.ignore,
            data.image_size,
        )
    return make_table_dataset(config, table)


@functools.lru_cache(maxsize=1)
def _read_again(digest: str, *options: Any) -> FactorTable:
    """Reads a table, unless it is the last one that was read."""
    return read_table(*options)


def make_listed_region(table: FactorTable, images: Any) -> Region:
    """Makes a region that holds out some images of a table.

    Args:
        table: Has the images.
        images: A mask of all images, numbers of images, or a function from
            factor values [n, F] to bools [n]. Of several images of a
            combination, one is enough.

    Raises:
        TableError: If it has another form, or holds nothing out.
    """
    points = table.points
    count = len(points)
    if callable(images):
        result = images(points.copy())
        is_held_out = np.asarray(result)
    else:
        is_held_out = np.zeros(count, bool)
        try:
            rows = table.rows[np.asarray(images)]
        except IndexError:
            each = f"a bool for each of the {len(table.rows)} images"
            rule = f"must be text, a function, {each}, or their numbers"
            raise TableError("region", rule, repr(images)) from None
        is_held_out[rows] = True
    if is_held_out.dtype != bool or is_held_out.shape != (count,):
        rule = f"must return {count} bools, one for each row"
        got = f"{is_held_out.dtype} {is_held_out.shape}"
        raise TableError("region", rule, got)
    if not is_held_out.any():
        raise TableError("region", "must hold something out", "no image")

    def contains(values: Array) -> Array:
        rows = table.find_points(values)
        return is_held_out[rows] & (rows >= 0)

    num_images = table.counts[is_held_out].sum()
    return Region(f"{num_images:,} images of a list", contains)


def make_table_dataset(
    config: RunConfig,
    table: FactorTable,
    region: Region | None = None,
) -> Dataset:
    """Makes the dataset of a table, for plugins.

    Args:
        config: The settings of a run.
        table: Images and their factors.
        region: What is held out; by default `--region`.

    Raises:
        ConfigError: For an impossible region or number of examples.
    """
    data = config.data
    if data.coordinates != "grid":
        rule = "must be grid for a table, which has no images in between"
        raise ConfigError("coordinates", rule, data.coordinates)
    if region is None:
        region = parse_region(data.region, table.space)

    def prepare() -> None:
        with explain_damage(data.data):
            table.check_pixels()

    fields: dict[str, Any] = {}
    if table.is_repeated:
        fields = _train_on_images(config, table, region)
    has_pixels = {factor.unit for factor in table.space} == {"px"}
    if has_pixels:
        # Only peaks depend on it: without positions no image is read.
        with explain_damage(data.data):
            fields["polarity"] = find_polarity(table)
    else:
        fields["has_position"] = False
    return build_dataset(
        config,
        table.space,
        region,
        cells=table.points,
        render=_make_renderer(table),
        image_shape=table.image_shape,
        first_row="top",
        prepare=prepare,
        notes=table.notes,
        size_flag="eval_points",
        **fields,
    )


def _make_renderer(table: FactorTable) -> Render:
    """Makes a renderer of the images of a table."""

    def render(factors: Any) -> Any:
        if isinstance(factors, Array):
            return table.draw(factors)
        import tensorflow as tf

        images = tf.numpy_function(table.draw, [factors], tf.float32)
        shape = (None, *table.image_shape)
        return tf.ensure_shape(images, shape)

    return render


def _train_on_images(
    config: RunConfig,
    table: FactorTable,
    region: Region,
) -> dict[str, Any]:
    """Returns fields of a dataset whose combinations have several images."""
    is_trained = ~region.contains(table.points) | config.data.train_all
    is_trained = np.repeat(is_trained, table.counts)
    numbers = np.flatnonzero(is_trained)  # of images, sorted by points
    count = config.data.num_train or len(numbers)
    rng = np.random.default_rng([config.training.seed, 0])
    numbers = draw_cells(numbers, count, "num_train", rng)
    points = np.repeat(table.points, table.counts, axis=0)
    return {
        "train": points[numbers],
        "draw_train": lambda rows: table.draw_images(numbers[rows]),
        "compare": table.compare,
        "draw_all": table.draw_all,
    }


def find_polarity(table: FactorTable) -> str:
    """Returns `dark` if most pixels of a fixed sample of images are bright."""
    step = len(table.points) // SAMPLE + 1
    images = table.draw(table.points[::step])
    if np.median(images) > 0.5:
        return "dark"
    return "bright"


def read_table(
    data: str,
    data_dir: str = "",
    factors: str = "",
    ignore: str = "",
    image_size: int = 0,
) -> FactorTable:
    """Reads the table of a file, a folder, or a TFDS dataset.

    Args:
        data: The value of `--data`.
        data_dir: The folder of TFDS datasets.
        factors: The columns that are factors, separated by commas; empty for
            all.
        ignore: Columns that are left out, separated by commas.
        image_size: Rows and columns that images are scaled to; 0 for none.

    Raises:
        ConfigError: For a file of an unknown ending.
        TableError: If the table breaks a rule.
    """
    content = _read_content(data, data_dir)
    names = split_names(factors)
    ignored = split_names(ignore)
    if isinstance(content, TableFile):
        return content.make_table(names, ignored, image_size)
    if not isinstance(content, FactorTable):
        kind = type(content).__name__
        raise TableError("the reader", "must return a FactorTable", kind)

    if not (names or ignored or image_size):
        return content
    images = load_images(content.images, image_size)
    return content.select(names, ignored, images)


def _read_content(data: str, data_dir: str) -> TableFile | FactorTable:
    """Reads a file, a folder, or a TFDS dataset by the reader of its ending."""
    path = Path(data)
    ending = path.suffix.lower()
    if data.startswith(TFDS):
        path = find_tfds_folder(data.removeprefix(TFDS), data_dir)
        ending = TFDS
    elif path.is_dir():
        return read_folder(path)
    elif ending not in READERS.names():
        endings = ", ".join(READERS.names())
        rule = f"must be a folder, or one of {endings}"
        raise ConfigError("data", rule, data)
    read = READERS.get(ending).load()
    return read(path)


@contextlib.contextmanager
def explain_damage(data: str, flag: str = "data") -> Iterator[None]:
    """Turns errors of a damaged file into a `RunError` of one line.

    Args:
        data: The file, as the user named it.
        flag: The flag that named it.

    Raises:
        RunError: For any error but `ConfigError`.
    """
    try:
        yield
    except (ConfigError, RunError):
        raise
    except Exception as error:  # whatever a damaged file leads to
        reason = f"cannot be read ({first_line(error)})"
        if isinstance(error, TableError):
            reason = str(error)
        reason = CONTROLS.sub(lambda match: ascii(match[0])[1:-1], reason)
        raise RunError(f"--{flag}={data}: {reason}") from error


@dataclass(frozen=True)
class VectorDataset(Dataset):
    """A dataset whose `render` returns vectors, [n, 1, units, 1]."""

    pictures: Render | None = None  # to show; else vectors are shades of gray
    is_pixels: ClassVar[bool] = False
    reference_name = "the mean training embedding"

    @cached_property
    def copies(self) -> Copies:
        """Nothing: equal embeddings are a result, not a fault of the data."""
        is_copy = np.zeros(len(self.splits.all), bool)
        return Copies(is_copy, {})

    @cached_property
    def _vectors(self) -> Array:
        vectors = self.render_array(self.splits.grid)
        return vectors.reshape(len(vectors), -1)

    def find_items(self, vectors: Array) -> Array:
        """Returns rows of the grid with the nearest vectors, [n]."""
        from sklearn import metrics

        flat = vectors.reshape(len(vectors), -1)
        flat = np.nan_to_num(flat)
        return metrics.pairwise_distances_argmin(flat, self._vectors)

    def to_pictures(self, vectors: Array) -> Array:
        """Returns pictures of the nearest items, or shades, [n, H, W, C]."""
        if self.pictures is not None:
            items = self.splits.grid[self.find_items(vectors)]
            return self.render_array(items, self.pictures)
        return self._shade(vectors)

    def _shade(self, vectors: Array) -> Array:
        """Returns vectors as rows of gray pixels, almost square."""
        flat = vectors.reshape(len(vectors), -1)
        low, high = np.percentile(self._vectors, (1, 99))
        span = high - low or 1.0
        shades = (flat - low) / span
        shades = shades.clip(0, 1)

        num_units = flat.shape[1]
        width = math.isqrt(num_units - 1) + 1
        height = math.ceil(num_units / width)
        num_empty = height * width - num_units
        margins = ((0, 0), (0, num_empty))
        padded = np.pad(shades, margins)
        return padded.reshape(-1, height, width, 1)
