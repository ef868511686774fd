"""Datasets on disk in TFDS's format, and training from them.

    <examples_dir>/<builder>/<name>-<hash>/<version>/

The hash is that of the settings that decide the examples, which many runs
share, and of the code that renders them. A batch from disk has the bits of a
rendered one.
"""

import dataclasses
import hashlib
import importlib
import io
import json
from contextlib import redirect_stdout
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from tfcomp.config.data_hash import find_data_dir
from tfcomp.config.errors import RunError, first_line
from tfcomp.config.quiet import start_tensorflow
from tfcomp.config.run_config import RunConfig
from tfcomp.datasets.data_card import CARD_FILE, format_data_card
from tfcomp.datasets.dataset import Dataset, make_dataset
from tfcomp.storage.code_version import compute_code_version
from tfcomp.storage.files import (
    make_folder,
    refuse_links_between,
    write_text,
)
from tfcomp.storage.output_folders import lock_folder

PIXELS = "region grid_size sigma polarity"
DRAWN = "coordinates num_train"
DIGIT = "digit_source digit_class digit_classes digit_index"
# The TFDS builder of a dataset, and the flags that decide its examples.
RECIPES = {
    "gaussian_bumps": ("gaussian_bumps", f"{PIXELS} {DRAWN}"),
    "stripes": ("gaussian_bumps", f"{PIXELS} num_bumps"),
    "rotated_digits": ("rotated_digits", f"region num_angles {DIGIT} {DRAWN}"),
    "sprites": ("sprite_images", f"region grid_size sprite_sizes {DRAWN}"),
}


@dataclasses.dataclass(frozen=True)
class Examples:
    """One split as it is on disk, in the order of its table, float32.

    Factors [n, F] are NaN where they are absent; images [n, *image_shape].
    """

    factors: np.ndarray
    images: np.ndarray


def materialize(config: RunConfig, examples_dir: str | Path) -> Path:
    """Writes the examples of a run unless they exist; returns their folder.

    Of several processes at once, one writes and the others wait.

    Raises:
        RunError: If the dataset has no TFDS builder, the data that it is
            rendered from cannot be read or the folder cannot be written.
    """
    parent, name = Path(examples_dir), name_examples(config)
    try:
        make_folder(parent)
        # The builder's own files are shared by all of its configurations.
        # TFDS tells on stdout of a download, and there is none.
        with lock_folder(parent, wait=True), redirect_stdout(io.StringIO()):
            for card in parent.glob(f"*/{name}/*/{CARD_FILE}"):
                refuse_links_between(parent, card.parent)
                return card.parent  # it was written last
            builder = make_builder(config, parent)
            folder = Path(builder.data_dir)
            refuse_links_between(parent, folder)
            builder.download_and_prepare()
            settings = select_settings(config)
            text = format_data_card(make_dataset(config), settings)
            write_text(folder / CARD_FILE, text)
            return folder
    except OSError as error:
        rule = "must be a folder that can be written"
        raise RunError(f"--examples_dir {rule}: {error}") from error


def attach_examples(config: RunConfig, dataset: Dataset) -> Dataset:
    """Returns the dataset with the images of `--examples_dir`, if it is set.

    Raises:
        RunError: If they are absent, damaged or not the ones that the flags
            describe, down to the last bit of every factor.
    """
    folder = config.data.examples_dir
    if not folder:
        return dataset
    found, expected = load_split(config, folder, "train"), dataset.splits.train
    if not np.array_equal(found.factors, expected, equal_nan=True):
        raise RunError(
            f"--examples_dir={folder} has other examples than the flags "
            f"describe; remove {name_examples(config)} and write it again"
        )
    return dataclasses.replace(dataset, train_images=found.images)


def load_split(
    config: RunConfig, examples_dir: str | Path, split: str
) -> Examples:
    """Returns a split on disk, `train` or `ood`, without checking its content.

    Raises:
        RunError: If it is absent or cannot be read.
    """
    name = name_examples(config)
    remedy = "with tfcomp materialize and the flags of the run"
    if not list(Path(examples_dir).glob(f"*/{name}/*/dataset_info.json")):
        raise RunError(
            f"--examples_dir: no examples of this run, {name}, in "
            f"{examples_dir}; write them {remedy}"
        )
    try:
        return _load(make_builder(config, examples_dir), split)
    except Exception as error:  # whatever a damaged file leads to
        raise RunError(
            f"--examples_dir: {name} in {examples_dir} cannot be read "
            f"({first_line(error)}); remove it and write it again {remedy}"
        ) from error


def name_examples(config: RunConfig) -> str:
    """Returns the name of the folder of a run's examples."""
    text = json.dumps(select_settings(config), sort_keys=True)
    code = compute_code(config.plugins)
    digest = hashlib.sha256(f"{text} {code}".encode()).hexdigest()[:16]
    return f"{config.data.dataset}-{digest}"


def make_builder(config: RunConfig, examples_dir: str | Path) -> Any:
    """Returns the TFDS builder of a run's dataset."""
    settings = select_settings(config)
    package, _ = RECIPES[config.data.dataset]
    folder = find_data_dir(config.data.data_dir)
    with start_tensorflow():  # TFDS warns of configurations of users
        module = importlib.import_module(f"tfcomp.datasets.{package}")
        table_config = module.TableConfig(
            name=name_examples(config),
            description=f"Made from the flags {json.dumps(settings)}.",
            flags={"data_dir": str(folder), **settings},
        )
        return module.Builder(config=table_config, data_dir=examples_dir)


def compute_code(plugins: str) -> str:
    """Returns the hash of the code and the version of TensorFlow."""
    return f"{compute_code_version(plugins)} tensorflow {version('tensorflow')}"


def select_settings(config: RunConfig) -> dict[str, object]:
    """Returns the settings that decide examples, with the seed if it counts.

    Raises:
        RunError: If the dataset has no TFDS builder.
    """
    name = config.data.dataset
    if name not in RECIPES:
        raise RunError(
            f"--examples_dir: the dataset {name} has no TFDS builder "
            f"({', '.join(sorted(RECIPES))} have)"
        )
    flags = config.to_flags()
    settings = {key: flags[key] for key in RECIPES[name][1].split()}
    is_sampled = settings.get("num_train") or settings.get("num_bumps")
    if is_sampled or settings.get("coordinates") == "continuous":
        settings["seed"] = config.training.seed
    return {"dataset": name, **settings}


def _load(builder: Any, split: str) -> Examples:
    import tensorflow_datasets as tfds

    # Small data sets are cached, which costs time here.
    options = tfds.ReadConfig(try_autocache=False)
    examples = builder.as_dataset(
        split=split, batch_size=-1, shuffle_files=False, read_config=options
    )
    table = tfds.as_numpy(examples)
    order = np.argsort(table["row"])
    if not np.array_equal(table["row"][order], np.arange(len(order))):
        raise ValueError("rows are missing")
    columns = [table[f"value_{name}"] for name in builder.factor_names]
    return Examples(np.stack(columns, axis=1)[order], table["image"][order])
