"""Factor tables from prepared TFDS datasets."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from tfcomp.config.data_files import TFDS
from tfcomp.config.quiet import quiet_startup
from tfcomp.contrib.matlab_folders import drop_absent
from tfcomp.datasets.factor_table import FactorTable, allocate
from tfcomp.datasets.materialized import check_features
from tfcomp.datasets.published import describe_published
from tfcomp.datasets.table_factors import TableError
from tfcomp.datasets.table_readers import READERS

LABEL = "label_"
VALUE = "value_"
PUBLISHED_NAMES = {
    "dsprites": "dSprites",
    "shapes3d": "3DShapes",
    "smallnorb": "smallNORB",
}
SYNONYMS = {"posX": "x_position", "posY": "y_position"}
BATCH = 1024  # examples that are read at a time


@READERS.register(TFDS)
def read_tfds(folder: Path) -> FactorTable:
    """Reads a prepared dataset with `image`, `label_*` and `value_*`."""
    check_features(folder)
    with quiet_startup():
        import tensorflow_datasets as tfds

        builder = tfds.builder_from_directory(folder)
        class_type = tfds.features.ClassLabel
    features = builder.info.features or {}
    labels = _find_labels(features, class_type)

    columns = _describe(builder.name, list(labels))
    factors = columns["names"]
    classes = _read_columns(builder, [labels[factor] for factor in factors])
    if "instance" in factors and "levels" in columns:  # a part of smallNORB
        drop_absent(classes, columns)
    values = [f"{VALUE}{factor}" for factor in factors]
    if {*values} <= {*features}:
        columns["values"] = _read_columns(builder, values)

    images = _read_images(builder, len(classes))
    return FactorTable(images, classes, **columns)


def _read_images(builder: Any, count: int) -> np.ndarray:
    """Reads all images [n, H, W, C], which must have one size."""
    pixels = builder.info.features["image"]
    if None in pixels.shape:
        raise TableError("image", "must have one size", list(pixels.shape))
    images = allocate((count, *pixels.shape), np.dtype(pixels.np_dtype))
    start = 0
    for batch in _read_batches(builder, ["image"]):
        end = start + len(batch["image"])
        images[start:end] = batch["image"]
        start = end
    return images


def _read_columns(builder: Any, keys: list[str]) -> np.ndarray:
    """Reads features of one number for each example, [n, keys]."""
    rows = []
    for batch in _read_batches(builder, keys):
        rows.append(np.stack([batch[key] for key in keys], axis=1))
    return np.concatenate(rows)


def _read_batches(builder: Any, keys: list[str]) -> Iterator[Any]:
    """Yields some features of all examples, always in the same order."""
    import tensorflow_datasets as tfds

    examples = builder.as_dataset(
        split="train",
        shuffle_files=False,
        decoders=tfds.decode.PartialDecoding(dict.fromkeys(keys, True)),
        # Small data sets are cached, which costs time here.
        read_config=tfds.ReadConfig(try_autocache=False),
    )
    return examples.batch(BATCH).as_numpy_iterator()


def _find_labels(features: dict[str, Any], class_type: type) -> dict[str, str]:
    """Returns the feature of each factor: `label_*`, and other classes."""
    labels = sorted(key for key in features if key.startswith(LABEL))
    if not labels or "image" not in features:
        rule = "must be image, label_<factor> and value_<factor>"
        raise TableError("features", rule, ", ".join(features))
    factors = {key.removeprefix(LABEL): key for key in labels}
    for key, feature in features.items():
        if isinstance(feature, class_type) and key not in labels:
            factors[key] = key
    return factors


def _describe(name: str, factors: list[str]) -> dict[str, Any]:
    """Returns names of the factors in order, and published facts of them.

    Args:
        name: The name of the TFDS dataset.
        factors: Names of its factors.
    """
    if name not in PUBLISHED_NAMES:
        return {"names": factors}
    published = describe_published(PUBLISHED_NAMES[name])
    names = [SYNONYMS.get(n, n) for n in published["names"]]
    published["names"] = names
    if not {*factors} <= {*names}:
        return {"names": factors}

    places = [place for place, name in enumerate(names) if name in factors]
    columns = {}
    for key, column in published.items():
        columns[key] = [column[place] for place in places]
    return columns
