"""Factor tables from prepared TFDS datasets."""

import contextlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from tfcomp.config.data_files import find_prepared
from tfcomp.config.quiet import quiet_startup
from tfcomp.datasets.factor_table import FactorTable
from tfcomp.datasets.table_checks import TableError, allocate
from tfcomp.datasets.table_files import describe_published, drop_absent
from tfcomp.storage.files import read_json

LABEL, VALUE = "label_", "value_"
PUBLISHED_NAMES = {
    "dsprites": "dSprites",
    "shapes3d": "3DShapes",
    "smallnorb": "smallNORB",
}
SYNONYMS = {"posX": "x_position", "posY": "y_position"}
BATCH = 1024  # examples that are read at a time
TFDS_CODE = "tensorflow_datasets."
# Keys of a class or message: of TFDS, Protocol Buffers, and older versions.
CLASS_KEYS = ("pythonClassName", "python_class_name", "type", "proto_cls")


def read_tfds(name: str, data_dir: str) -> FactorTable:
    """Returns the table of a dataset with `image`, `label_*` and `value_*`."""
    folder = find_prepared(name, data_dir)
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


def check_features(folder: Path) -> None:
    """Refuses classes of others, also in texts: TFDS imports named classes."""
    file = folder / "features.json"
    nodes: list[object] = [read_json(file)] if file.exists() else []
    while nodes:
        node = nodes.pop()
        if isinstance(node, str):
            with contextlib.suppress(ValueError, RecursionError):
                nodes.append(json.loads(node))
        elif isinstance(node, list):
            nodes += node
        elif isinstance(node, dict):
            nodes += node.values()
            for name in filter(None, map(node.get, CLASS_KEYS)):
                # Elsewhere "type" is a word such as "int64".
                if "." in str(name) and not str(name).startswith(TFDS_CODE):
                    rule = f"must be classes of {TFDS_CODE[:-1]}"
                    raise TableError("features", rule, name)
