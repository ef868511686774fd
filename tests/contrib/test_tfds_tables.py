"""A TFDS dataset of another person runs no code."""

import itertools
import json
import sys
from pathlib import Path

import numpy as np
import pytest

from tests.datasets.own_tables import CLASSES, IMAGES, NAMES, SIZES, load
from tfcomp.datasets.materialized import check_features
from tfcomp.datasets.table_factors import TableError
from tfcomp.datasets.tables import read_table

GOOD = "tensorflow_datasets.core.features.image_feature.Image"
EVIL = "evil_features.Image"
PROTO = "tensorflow_datasets.FeaturesDict"
TOP = "tensorflow_datasets.core.features.features_dict.FeaturesDict"
INNER = json.dumps({"features": {"image": {"pythonClassName": EVIL}}})
NESTED = {"featuresDict": {"features": {"image": {"pythonClassName": EVIL}}}}


def write(folder: Path, features: object) -> Path:
    """The folder of a dataset, as far as TFDS reads it first."""
    folder.mkdir(parents=True)
    (folder / "features.json").write_text(json.dumps(features))
    (folder / "dataset_info.json").write_text('{"name": "ex"}')
    return folder


@pytest.fixture
def evil(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file that appears when the stranger's module is imported."""
    mark = tmp_path / "mark"
    code = f"open({str(mark)!r}, 'w').close()"
    (tmp_path / "evil_features.py").write_text(code)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "evil_features", raising=False)
    return mark


@pytest.mark.parametrize(
    "features",
    [
        {"pythonClassName": EVIL},
        {"python_class_name": EVIL},
        {"type": EVIL, "content": {}},
        {"pythonClassName": GOOD, **NESTED},
        {"pythonClassName": GOOD, "sequence": [NESTED]},
        {"pythonClassName": "tensorflow_datasets_evil.Image"},
        {"type": TOP, "content": INNER, "proto_cls": PROTO},
        {"type": TOP, "content": {}, "proto_cls": "evil_features.Image"},
        {"pythonClassName": GOOD, "jsonFeature": {"json": f"[{INNER}]"}},
    ],
)
def test_classes_of_others(features: dict, evil: Path, tmp_path: Path) -> None:
    write(tmp_path / "data" / "ex" / "1.0.0", features)
    with pytest.raises(TableError, match="classes of tensorflow_datasets"):
        read_table("tfds:ex", str(tmp_path / "data"))
    assert not evil.exists()


def store(name: str, folder: Path, features: dict, columns: dict) -> None:
    """Prepares a TFDS dataset of one split."""
    import tensorflow as tf
    import tensorflow_datasets as tfds

    tfds.dataset_builders.store_as_tfds_dataset(
        name=name,
        version="2.1.0",
        features=tfds.features.FeaturesDict(features),
        split_datasets={"train": tf.data.Dataset.from_tensor_slices(columns)},
        data_dir=folder,
    )


def test_small_norb(tmp_path: Path) -> None:
    """Its instances are a factor although their name has no `label_`."""
    import tensorflow_datasets as tfds

    sizes = {"category": 5, "elevation": 9, "azimuth": 18, "lighting": 6}
    features = {
        f"label_{name}": tfds.features.ClassLabel(num_classes=size)
        for name, size in sizes.items()
    }
    picture = tfds.features.Image(shape=(4, 4, 1))
    features |= {"image": picture, "image2": picture}
    features |= {"instance": tfds.features.ClassLabel(num_classes=10)}
    features |= {"id": tfds.features.Text()}
    rows = np.array(
        list(itertools.product(range(5), (4, 6), (0, 8), (0, 17), (2, 5)))
    )
    names = ["category", "instance", "elevation", "azimuth", "lighting"]
    images = np.random.default_rng(0).integers(0, 256, (80, 4, 4, 1), np.uint8)
    columns = {
        name if name == "instance" else f"label_{name}": column
        for name, column in zip(names, rows.T, strict=True)
    }
    columns |= {"image": images, "image2": images[::-1]}
    columns |= {"id": np.array([f"train_{i}" for i in range(80)])}
    store("smallnorb", tmp_path, features, columns)
    table = read_table("tfds:smallnorb", str(tmp_path))
    assert table.space.names == (*names,)
    assert table.space["instance"].names == ("4", "6")
    assert table.space["azimuth"].describe(340) == "340"
    drawn = np.round(255 * table.draw(table.points))
    np.testing.assert_array_equal(drawn, images)


def test_labels_and_values(tmp_path: Path) -> None:
    import tensorflow_datasets as tfds

    features = {
        f"label_{name}": tfds.features.ClassLabel(num_classes=size)
        for name, size in zip(NAMES, SIZES, strict=True)
    }
    features |= {f"value_{name}": np.float32 for name in NAMES}
    features["image"] = tfds.features.Image(shape=(5, 6, 1))
    order = np.random.default_rng(0).permutation(24)
    columns = {"image": IMAGES[order, ..., None]}
    for name, column in zip(NAMES, CLASSES[order].T, strict=True):
        columns[f"label_{name}"] = column
        columns[f"value_{name}"] = column.astype(np.float32) * 2
    store("mine", tmp_path, features, columns)
    dataset = load("tfds:mine", f"--data_dir={tmp_path}")
    assert dataset.space.names == tuple(sorted(NAMES))
    assert dataset.space["x"].values().tolist() == [0, 2, 4, 6]
    images = dataset.render(dataset.space.grid())
    np.testing.assert_allclose(images, IMAGES[..., None] / 255)


def test_what_tfds_writes_is_taken(tmp_path: Path) -> None:
    label = {"pythonClassName": GOOD, "classLabel": {"type": "int64"}}
    check_features(write(tmp_path / "a", {**label, "features": [label]}))
