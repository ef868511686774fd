"""The dataset `table`: a file of images and factors as training data."""

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from tfcomp.config.data_config import TFDS, hash_data
from tfcomp.config.errors import ConfigError, RunError, first_line
from tfcomp.config.run_config import RunConfig
from tfcomp.config.settings import CONTROLS
from tfcomp.datasets.dataset import Dataset, build_dataset
from tfcomp.datasets.factor_table import FactorTable
from tfcomp.datasets.regions import Region, parse_region
from tfcomp.datasets.splits import draw_cells
from tfcomp.datasets.table_factors import TableError

# The last table, by its hash: checks and training share it.
_read: dict[str, FactorTable] = {}


def make_table(config: RunConfig) -> Dataset:
    """Returns the dataset of `--data`, which must have the hash of the run."""
    data = config.data
    if not data.data:
        raise ConfigError("data", "must name a file for the dataset table", "")
    digest = hash_data(data.data, data.data_dir)
    if digest != data.data_hash:
        raise RunError(
            f"--data={data.data} is not what the run was made with: its hash "
            f"is {digest}, not {data.data_hash} (--data_hash= accepts it)"
        )
    with explain_damage(data.data):
        if digest not in _read:
            _read.clear()
            _read[digest] = read_table(data.data, data.data_dir)
        table = _read[digest]
        if data.factors:
            table = table.select(data.factors.split(","))
    return make_table_dataset(config, table)


def make_listed_region(table: FactorTable, images: Any) -> Region:
    """Returns a region of some images: a mask or their numbers."""
    chosen = table.find(images)
    if not chosen.any():
        raise TableError("region", "must hold something out", "no image")

    def contains(values: np.ndarray) -> np.ndarray:
        rows = table.find_points(values)
        return chosen[rows] & (rows >= 0)

    count = table.counts[chosen].sum()
    return Region(f"{count:,} images of a list", contains)


def make_table_dataset(
    config: RunConfig, table: FactorTable, region: Region | None = None
) -> Dataset:
    """Returns the dataset of a table, for plugins.

    The configuration sets the region by default.

    Raises:
        ConfigError: For an impossible region or number of examples.
    """
    data = config.data
    if data.coordinates != "grid":
        rule = "must be grid for a table, which has no images in between"
        raise ConfigError("coordinates", rule, data.coordinates)

    def render(factors: Any) -> Any:
        if isinstance(factors, np.ndarray):
            return table.draw(factors)
        import tensorflow as tf

        images = tf.numpy_function(table.draw, [factors], tf.float32)
        return tf.ensure_shape(images, (None, *table.image_shape))

    def prepare() -> tuple[str, ...]:
        with explain_damage(data.data):
            return table.inspect()

    others: dict[str, Any] = {}
    region = region or parse_region(data.region, table.space, table.points)
    if table.is_repeated:
        is_known = ~region.contains(table.points) | data.train_all
        # Of images, sorted by points.
        numbers = np.flatnonzero(np.repeat(is_known, table.counts))
        rng = np.random.default_rng([config.training.seed, 0])
        count = data.num_train or len(numbers)
        numbers = draw_cells(numbers, count, "num_train", rng)
        others = {
            "train": np.repeat(table.points, table.counts, axis=0)[numbers],
            "draw_train": lambda rows: table.draw_images(numbers[rows]),
            "compare": table.compare,
        }
    has_pixels = {factor.unit for factor in table.space} == {"px"}
    with explain_damage(data.data):
        # Only peaks depend on it: without positions no image is read.
        polarity = table.polarity if has_pixels else "bright"
    return build_dataset(
        config,
        table.space,
        region,
        cells=table.points,
        render=render,
        image_shape=table.image_shape,
        polarity=polarity,
        has_position=None if has_pixels else False,
        first_row="top",
        prepare=prepare,
        notes=table.notes,
        size_flag="eval_points",
        **others,
    )


def read_table(data: str, data_dir: str = "") -> FactorTable:
    """Reads what `--data` names; `TableError` if it breaks a rule."""
    # Here: the names of datasets must be known without them.
    from tfcomp.datasets import table_files, tfds_tables

    if data.startswith(TFDS):
        return tfds_tables.read_tfds(data.removeprefix(TFDS), data_dir)
    path = Path(data)
    if path.is_dir():
        return _read_folder(path)
    if path.suffix.lower() == ".npz":
        return table_files.read_npz(data)
    if path.suffix.lower() in (".h5", ".hdf5"):
        return table_files.read_h5(data)
    raise ConfigError("data", "must be .npz, .h5, a folder or tfds:NAME", data)


def _read_folder(folder: Path) -> FactorTable:
    """Reads a folder with one CSV file, of Cars3D, or of smallNORB."""
    from tfcomp.datasets import mat_folders, picture_folders

    tables = picture_folders.list_files(folder, *picture_folders.TABLES)
    if len(tables) == 1:
        return picture_folders.read_csv_folder(folder, tables[0])
    matrices = picture_folders.list_files(folder, ".mat")
    if matrices and not tables:
        return mat_folders.read_mat_folder(matrices)
    rule = "must have one .csv file (or the .mat files of Cars3D or smallNORB)"
    raise TableError("the folder", rule, f"{len(tables)} .csv files")


@contextlib.contextmanager
def explain_damage(data: str, flag: str = "data") -> Iterator[None]:
    """Turns errors of a damaged file into a `RunError` of one line."""
    try:
        yield
    except TableError as error:
        reason = str(error)
    except (ConfigError, RunError):
        raise
    except Exception as error:  # whatever a damaged file leads to
        reason = f"cannot be read ({first_line(error)})"
    else:
        return
    shown = CONTROLS.sub(lambda match: ascii(match[0])[1:-1], reason)
    raise RunError(f"--{flag}={data}: {shown}")
