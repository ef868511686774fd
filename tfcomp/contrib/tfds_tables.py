"""Factor tables from prepared TFDS datasets."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from tfcomp.config.data_files import TFDS
from tfcomp.config.quiet import quiet_startup
from tfcomp.contrib.matlab_folders import drop_absent
from tfcomp.datasets.factor_table import FactorTable
from tfcomp.datasets.published import describe_published
from tfcomp.datasets.table_checks import TableError, allocate
from tfcomp.datasets.table_formats import READERS
from tfcomp.datasets.tfds_features import check_features

LABEL, VALUE = "label_", "value_"
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
        is_class = tfds.features.ClassLabel
    features = builder.info.features or {}
    labels = _find_labels(features, is_class)
    known = _describe(builder.name, list(labels))
    factors = known["names"]
    classes = _read_columns(builder, [labels[factor] for factor in factors])
    if "instance" in factors and "levels" in known:  # a part of smallNORB
        drop_absent(classes, known)
    values = [f"{VALUE}{factor}" for factor in factors]
    if {*values} <= {*features}:
        known["values"] = _read_columns(builder, values)
    pixels = features["image"]
    if None in pixels.shape:
        raise TableError("image", "must have one size", list(pixels.shape))
    dtype = np.dtype(pixels.np_dtype)
    images = allocate((len(classes), *pixels.shape), dtype)
    for number, batch in enumerate(_read_batches(builder, ["image"])):
        images[BATCH * number :][: len(batch["image"])] = batch["image"]
    return FactorTable(images, classes, **known)


def _read_columns(builder: Any, keys: list[str]) -> np.ndarray:
    batches = _read_batches(builder, keys)
    return np.concatenate(
        [np.stack([batch[key] for key in keys], axis=1) for batch in batches]
    )


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


def _find_labels(features: dict[str, Any], is_class: type) -> dict[str, str]:
    """Returns the feature of each factor: `label_*`, and other classes."""
    labels = sorted(key for key in features if key.startswith(LABEL))
    if not labels or "image" not in features:
        rule = "must be image, label_<factor> and value_<factor>"
        raise TableError("features", rule, ", ".join(features))
    others = [key for key in features if isinstance(features[key], is_class)]
    named = {key.removeprefix(LABEL): key for key in labels}
    return named | {key: key for key in others if key not in labels}


def _describe(name: str, factors: list[str]) -> dict[str, Any]:
    """Returns names of the factors in order, and published facts of them."""
    if name not in PUBLISHED_NAMES:
        return {"names": factors}
    known = describe_published(PUBLISHED_NAMES[name])
    known["names"] = [SYNONYMS.get(n, n) for n in known["names"]]
    if not {*factors} <= {*known["names"]}:
        return {"names": factors}
    places = [i for i, n in enumerate(known["names"]) if n in factors]
    return {key: [column[i] for i in places] for key, column in known.items()}
