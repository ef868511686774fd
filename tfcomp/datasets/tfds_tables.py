"""Factor tables from prepared TFDS datasets."""

from __future__ import annotations

import itertools
import json
import math
from pathlib import Path
from typing import Any

import numpy as np

from tfcomp.config.data_hash import find_prepared
from tfcomp.config.machine import count_memory
from tfcomp.config.quiet import quiet_startup
from tfcomp.datasets.factor_table import FactorTable
from tfcomp.datasets.table_factors import TableError
from tfcomp.datasets.table_files import describe_published, drop_absent
from tfcomp.storage.files import read_json

TFDS_BATCH = 1024
LABEL, VALUE = "label_", "value_"
PUBLISHED_NAMES = {
    "dsprites": "dSprites",
    "shapes3d": "3DShapes",
    "smallnorb": "smallNORB",
}


def read_tfds(name: str, data_dir: str) -> FactorTable:
    """A table from a TFDS dataset with `image`, `label_*` and `value_*`.

    All images are read at once, since labels cannot be read without them.
    """
    folder = find_prepared(name, data_dir)
    check_features(folder)
    with quiet_startup():
        import tensorflow_datasets as tfds

        builder = tfds.builder_from_directory(folder)
        is_class = tfds.features.ClassLabel
    features = builder.info.features or {}
    keys = _find_labels(features, is_class)
    pixels, count = features["image"], builder.info.splits["train"].num_examples
    _check_size(count, pixels)
    factors, options = _describe(builder.name, list(keys))
    keys = {factor: keys[factor] for factor in factors}
    columns = [*keys.values()]
    has_values = all(f"{VALUE}{factor}" in features for factor in factors)
    if has_values:
        columns += [f"{VALUE}{factor}" for factor in factors]
    images = np.empty((count, *pixels.shape), pixels.np_dtype)
    table = np.full((count, len(columns)), np.nan)
    # Small data sets are cached, which costs time here.
    batches = builder.as_dataset(
        split="train",
        shuffle_files=False,
        decoders=tfds.decode.PartialDecoding(
            dict.fromkeys(["image", *columns], True)
        ),
        read_config=tfds.ReadConfig(try_autocache=False),
    ).batch(TFDS_BATCH)
    start = 0
    for batch in batches.as_numpy_iterator():
        rows = slice(start, start + len(batch["image"]))
        images[rows] = batch["image"]
        table[rows] = np.stack([batch[key] for key in columns], axis=1)
        start = rows.stop
    classes = table[:, : len(factors)]
    if "instance" in factors and "levels" in options:  # a part of smallNORB
        column = factors.index("instance")
        classes[:, column], options["levels"][column] = drop_absent(
            classes[:, column]
        )
    if has_values:
        options["values"] = table[:, len(factors) :]
    return FactorTable(images, classes, names=factors, **options)


def _find_labels(features: dict[str, Any], is_class: type) -> dict[str, str]:
    """Returns the feature of each factor: `label_*`, and other classes."""
    labels = sorted(key for key in features if key.startswith(LABEL))
    if not labels or "image" not in features:
        rule = "must be image, label_<factor> and value_<factor>"
        raise TableError("features", rule, ", ".join(features))
    others = [key for key in features if isinstance(features[key], is_class)]
    named = {key.removeprefix(LABEL): key for key in labels}
    return named | {key: key for key in others if key not in labels}


def _check_size(count: int, pixels: Any) -> None:
    """Refuses images of several sizes, and more than fit into memory."""
    if None in pixels.shape:
        raise TableError("image", "must have one size", list(pixels.shape))
    size = count * math.prod(pixels.shape) * pixels.np_dtype.itemsize
    if size > (most := count_memory()):
        rule = f"must fit into the memory ({most >> 20:,} MB)"
        raise TableError("images", rule, f"{size >> 20:,} MB")


def _describe(name: str, factors: list[str]) -> tuple[list, dict[str, Any]]:
    """Factors of a TFDS dataset in order, and what is known of each."""
    data = PUBLISHED_NAMES.get(name)
    known = describe_published(data) if data else {}
    synonyms = {"posX": "x_position", "posY": "y_position"}
    names = [synonyms.get(n, n) for n in known.pop("names", ())]
    if not set(factors) <= set(names):
        return factors, {}
    is_there = [name in factors for name in names]
    options = {
        key: list(itertools.compress(column, is_there))
        for key, column in known.items()
    }
    return list(itertools.compress(names, is_there)), options


TFDS_CODE = "tensorflow_datasets."
# Keys of a feature that name a class or a message: as TFDS writes them, as
# Protocol Buffers also read them, and as TFDS wrote them once.
CLASS_KEYS = ("pythonClassName", "python_class_name", "type", "proto_cls")


def check_features(folder: Path) -> None:
    """Refuses a TFDS dataset whose features are classes of others.

    TFDS imports the class that each feature names, also those in texts that are
    JSON themselves, so that a foreign dataset could run any code in the current
    folder.
    """
    file = folder / "features.json"
    nodes: list[object] = [read_json(file)] if file.exists() else []
    while nodes:
        node = nodes.pop()
        if isinstance(node, str):
            nodes += _parse(node)
        elif isinstance(node, list):
            nodes += node
        elif isinstance(node, dict):
            nodes += node.values()
            for name in filter(None, map(node.get, CLASS_KEYS)):
                # Elsewhere "type" is a word such as "int64".
                if "." in str(name) and not str(name).startswith(TFDS_CODE):
                    rule = f"must be classes of {TFDS_CODE[:-1]}"
                    raise TableError("features", rule, name)


def _parse(text: str) -> list[object]:
    """Returns the object or list that a text is in JSON, if it is one."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return []
    return [found] if isinstance(found, dict | list | str) else []
