"""Datasets on disk in TFDS's format, and training from them.

    <examples_dir>/<dataset>/<dataset>-<hash>/<version>/

The hash covers the settings that decide the examples, and the code. A batch
from disk has the bits of a rendered one. An example has `image`, `is_ood`, and
for each factor `value_<name>` (NaN where absent) and `label_<name>` (-1).
"""

import contextlib
import dataclasses
import hashlib
import io
import json
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from numpy import ndarray as Array

from tfcomp.config.errors import RunError, first_line
from tfcomp.config.hashes import compute_code_version
from tfcomp.config.process import start_tensorflow
from tfcomp.config.run_config import DataConfig, RunConfig
from tfcomp.datasets.dataset import Dataset, make_dataset
from tfcomp.datasets.table_columns import TableError
from tfcomp.storage.files import lock_folder, make_folder, read_json

VERSION = "1.2.0"
INFO_FILE = "dataset_info.json"
# Settings of data that change no example.
OTHERS = "dataset data data_dir examples_dir noise balance correlation".split()
REMEDY = "with tfcomp train --materialize and the flags of the run"
TFDS_CODE = "tensorflow_datasets."
# Keys of a class or message: of TFDS, Protocol Buffers, and older versions.
CLASS_KEYS = (
    "pythonClassName",
    "python_class_name",
    "type",
    "proto_cls",
)


@dataclasses.dataclass(frozen=True)
class Examples:
    """A split on disk: factors [n, F] and images [n, *image_shape], float32."""

    factors: Array
    images: Array


def materialize(
    config: RunConfig,
    examples_dir: str | Path,
    dataset: Dataset | None = None,
) -> Path:
    """Writes the examples of a run unless they exist.

    Args:
        config: The settings of the run.
        examples_dir: The folder of all examples.
        dataset: The dataset of the run, if it is known.

    Returns:
        The folder of the examples.

    Raises:
        RunError: If the folder cannot be written.
    """
    parent = Path(examples_dir)
    folder = _name_folder(config, parent)
    try:
        make_folder(parent)
        with lock_folder(parent, wait=True):
            if not (folder / INFO_FILE).is_file():
                dataset = dataset or make_dataset(config)
                _write(config, dataset, parent)
    except OSError as error:
        rule = "must be a folder that can be written"
        raise RunError(f"--examples_dir {rule}: {error}") from error
    return folder


def attach_examples(
    config: RunConfig,
    dataset: Dataset,
) -> Dataset:
    """Returns the dataset with the training images of `--examples_dir`.

    Args:
        config: The settings of the run.
        dataset: The dataset of the run.

    Raises:
        RunError: If the folder lacks them, or has other ones.
    """
    folder = config.data.examples_dir
    train = load_split(
        config,
        folder,
        "train",
        dataset,
    )
    expected = dataset.splits.train
    if not np.array_equal(train.factors, expected, equal_nan=True):
        raise RunError(
            f"--examples_dir={folder} has other examples than the flags "
            f"describe; remove {name_examples(config)} and write it again"
        )
    return dataclasses.replace(dataset, draw_train=train.images.__getitem__)


def load_split(
    config: RunConfig,
    examples_dir: str | Path,
    split: str,
    dataset: Dataset,
) -> Examples:
    """Returns a split on disk.

    Args:
        config: The settings of the run.
        examples_dir: The folder of all examples.
        split: `train` or `ood`.
        dataset: The dataset of the run.

    Raises:
        RunError: If there are no such examples, or they are damaged.
    """
    name = name_examples(config)
    folder = _name_folder(config, examples_dir)
    if not (folder / INFO_FILE).is_file():
        raise RunError(
            f"--examples_dir: no examples of this run, {name}, in "
            f"{examples_dir}; write them {REMEDY}"
        )
    try:
        check_features(folder)
        table = _read_columns(folder, split)
        columns = [table[f"value_{name}"] for name in dataset.space.names]
        factors = np.stack(columns, axis=1)
        return Examples(factors, images=table["image"])
    except Exception as error:  # whatever a damaged file leads to
        raise RunError(
            f"--examples_dir: {name} in {examples_dir} cannot be read "
            f"({first_line(error)}); remove it and write it again {REMEDY}"
        ) from error


def _read_columns(
    folder: Path,
    split: str,
) -> dict[str, Array]:
    """Reads all examples of a split, an array for each feature."""
    with start_tensorflow():
        import tensorflow_datasets as tfds

        builder = tfds.builder_from_directory(folder)
        examples = builder.as_dataset(
            split=split,
            batch_size=-1,
            shuffle_files=False,
            # Small data sets are cached, which costs time here.
            read_config=tfds.ReadConfig(try_autocache=False),
        )
        return tfds.as_numpy(examples)


def select_settings(config: RunConfig) -> dict[str, Any]:
    """Returns the settings that decide examples and are no defaults."""
    data = config.data
    settings: dict[str, Any] = {"dataset": data.dataset}
    for field in dataclasses.fields(DataConfig):
        value = getattr(data, field.name)
        if value != field.default and field.name not in OTHERS:
            settings[field.name] = value

    is_drawn = data.num_train or data.num_bumps or config.plugins
    if is_drawn or data.coordinates == "continuous":
        settings["seed"] = config.training.seed
    if config.plugins:
        settings["plugins"] = config.plugins
    return settings | config.own


def name_examples(config: RunConfig) -> str:
    """Returns the name of the folder of a run's examples."""
    settings = select_settings(config)
    text = json.dumps(settings, sort_keys=True)
    code = compute_code_version(config.plugins)
    text = f"{text} {code} tensorflow {version('tensorflow')}"
    digest = hashlib.sha256(text.encode())
    digits = digest.hexdigest()[:16]
    return f"{config.data.dataset}-{digits}"


def _name_folder(
    config: RunConfig,
    parent: str | Path,
) -> Path:
    folder = Path(parent) / config.data.dataset
    name = name_examples(config)
    return folder / name / VERSION


def render_splits(dataset: Dataset) -> dict[str, Examples]:
    """Renders the splits of a dataset: `train` and, if held out, `ood`."""
    dataset.prepare()
    train = dataset.splits.train
    # A combination can have several training images.
    images = dataset.render_training(np.arange(len(train)))
    splits = {"train": Examples(train, images)}

    points = dataset.splits.all
    if points.is_ood.any():
        held_out = points.factors[points.is_ood]
        images = dataset.render_array(held_out)
        splits["ood"] = Examples(held_out, images)
    return splits


def _write(
    config: RunConfig,
    dataset: Dataset,
    parent: Path,
) -> None:
    examples = {}
    for name, split in render_splits(dataset).items():
        examples[name] = _list_examples(dataset, split.factors, split.images)
    # TFDS tells on stdout of a download, and there is none.
    silence = contextlib.redirect_stdout(io.StringIO())
    with start_tensorflow(), silence:
        import tensorflow_datasets as tfds

        kinds = tfds.features
        pixels = kinds.Tensor(
            shape=dataset.image_shape,
            dtype=np.float32,
        )
        features = {
            "image": pixels,
            "is_ood": np.bool_,
        }
        for factor in dataset.space:
            label = kinds.ClassLabel(num_classes=factor.size)
            features[f"label_{factor.name}"] = label
            features[f"value_{factor.name}"] = np.float32
        tfds.dataset_builders.store_as_tfds_dataset(
            name=config.data.dataset,
            config=name_examples(config),
            version=VERSION,
            features=kinds.FeaturesDict(features),
            split_datasets=examples,
            data_dir=parent,
            description=f"Flags: {json.dumps(select_settings(config))}.",
            homepage="https://arxiv.org/abs/2501.18797",
            disable_shuffling=True,
        )


def _list_examples(
    dataset: Dataset,
    table: Array,
    images: Array,
) -> Iterator[tuple[int, dict[str, Any]]]:
    labels = dataset.space.to_index(table)
    is_ood = dataset.region.contains(table)
    for row, image in enumerate(images):
        example = {
            "image": image,
            "is_ood": is_ood[row],
        }
        for column, name in enumerate(dataset.space.names):
            label = labels[row, column]
            example[f"label_{name}"] = int(label)
            example[f"value_{name}"] = table[row, column]
        yield row, example


def check_features(folder: Path) -> None:
    """Refuses datasets that name classes of others, which TFDS would import.

    Args:
        folder: A prepared dataset. Its features may be texts within texts.

    Raises:
        TableError: If a class is not one of TFDS.
    """
    file = folder / "features.json"
    nodes: list[object] = []
    if file.exists():
        content = read_json(file)
        nodes.append(content)
    while nodes:
        node = nodes.pop()
        if isinstance(node, str):
            with contextlib.suppress(ValueError, RecursionError):
                nodes.append(json.loads(node))
        elif isinstance(node, list):
            nodes += node
        elif isinstance(node, dict):
            nodes += node.values()
            for key in CLASS_KEYS:
                name = str(node.get(key, ""))
                # Elsewhere "type" is a word such as "int64".
                if "." in name and not name.startswith(TFDS_CODE):
                    rule = f"must be classes of {TFDS_CODE[:-1]}"
                    raise TableError("features", rule, name)
