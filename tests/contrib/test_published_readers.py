"""Readers of Cars3D, smallNORB, MPI3D and TFDS datasets."""

import itertools
import json
import struct
import zlib
from pathlib import Path

import numpy as np
import pytest
import scipy.io
import tensorflow as tf
import tensorflow_datasets as tfds
from numpy import ndarray as Array
from numpy.testing import assert_allclose, assert_array_equal

from tests.datasets.own_tables import CLASSES, IMAGES, NAMES, SIZES, load
from tfcomp.config.errors import RunError
from tfcomp.config.plugins import Registry
from tfcomp.contrib import published_readers
from tfcomp.datasets import tables
from tfcomp.datasets.factor_table import FactorTable
from tfcomp.datasets.table_columns import TableError
from tfcomp.datasets.tables import read_table

NORB_NAMES = ("category", "instance", "elevation", "azimuth", "lighting")
MAGIC = {"uint8": 0x1E3D4C55, "int32": 0x1E3D4C54}


def test_cars3d(tmp_path, rng):
    cars = rng.integers(0, 256, (2, 3, 4, 3, 5, 4), np.uint8)
    for number, car in enumerate(cars):
        scipy.io.savemat(tmp_path / f"car_{number}.mat", {"im": car})

    table = read_table(str(tmp_path))

    assert table.space.names == ("elevation", "azimuth", "type")
    stacked = cars.transpose(5, 4, 0, 1, 2, 3)  # as the field has it
    expected = stacked.reshape(-1, 3, 4, 3)
    assert_array_equal(read_pixels(table), expected)


def write_bomb(path: Path, size: int, shape: tuple[int, ...]):
    """Writes a packed car as MATLAB does, of `size` zeros."""
    count = len(shape)
    array = struct.pack("<IIII", 6, 8, 9, 0)  # uint8
    array += struct.pack(f"<II{count}i", 5, 4 * count, *shape)
    array += bytes(-len(array) % 8)
    array += struct.pack("<HH4s", 1, 2, b"im")
    array += struct.pack("<II", 2, size)
    variable = struct.pack("<II", 14, len(array) + size)
    packed = zlib.compress(variable + array + bytes(size))

    content = b"MATLAB 5.0 MAT-file".ljust(124)
    content += struct.pack("<H2s", 256, b"IM")
    content += struct.pack("<II", 15, len(packed))
    path.write_bytes(content + packed)


@pytest.mark.parametrize(
    "size, shape, word",
    [
        (1 << 20, (1024, 1024, 3, 24, 18), "reshape"),
        (5 << 20, (4, 4, 3, 2, 2), "at most"),
    ],
)
def test_car_above_the_limit(size, shape, word, tmp_path, monkeypatch):
    """A packed file has a limit, whatever its header says."""
    monkeypatch.setattr(published_readers, "CAR_BYTES", 4 << 20)
    write_bomb(tmp_path / "a.mat", size, shape)
    with pytest.raises(RunError, match=word):
        load(tmp_path)


def write_matrix(path: Path, matrix: Array):
    """Writes NORB's format: type, number of dimensions, three sizes or more."""
    sizes = [*matrix.shape]
    while len(sizes) < 3:
        sizes.append(1)
    magic = MAGIC[matrix.dtype.name]
    head = np.array([magic, matrix.ndim, *sizes], "<i4")
    path.write_bytes(head.tobytes() + matrix.tobytes())


def read_pixels(table: FactorTable) -> Array:
    """The pixels of all images from 0 to 255, in the order of the grid."""
    return np.round(255 * table.draw(table.points))


def list_norb(instances: list[int]) -> Array:
    """All categories, and two values of the factors but the instance."""
    rows = itertools.product(
        range(5),
        instances,
        (0, 8),
        (0, 34),
        (1, 5),
    )
    return np.array(list(rows), "<i4")


def write_norb(folder: Path, part: str, instances: list[int]) -> Array:
    """Writes a part in random order; returns its images in order."""
    rows = list_norb(instances)
    rng = np.random.default_rng(len(instances))
    size = (len(rows), 2, 4, 4)
    images = rng.integers(0, 256, size, np.uint8)
    order = rng.permutation(len(rows))
    matrices = {
        "cat": rows[:, 0],
        "info": rows[:, 1:],
        "dat": images,
    }
    for kind, matrix in matrices.items():
        path = folder / f"smallnorb-{part}-{kind}.mat"
        write_matrix(path, matrix[order])
    return images[:, 0]


def test_small_norb(tmp_path):
    first = write_norb(tmp_path, "training", [4, 6])
    second = write_norb(tmp_path, "testing", [0, 1, 3])

    table = read_table(str(tmp_path))

    assert table.space.names == NORB_NAMES
    assert table.space.shape == (5, 5, 9, 18, 6)
    assert table.space["instance"].names == ("0", "1", "3", "4", "6")
    assert table.space["azimuth"].periodic
    _, instance, _, azimuth, _ = table.space.to_index(table.points).T
    assert set(azimuth) == {0, 17}
    # In the order of the grid: of each category first the testing part.
    images = read_pixels(table)[..., 0]
    is_training = instance >= 3
    assert_array_equal(images[is_training], first)
    assert_array_equal(images[~is_training], second)


@pytest.mark.parametrize("damage", ["absent", "short", "another", "rows"])
def test_damaged_norb(damage, tmp_path):
    write_norb(tmp_path, "training", [4, 6])
    path = tmp_path / "smallnorb-training-info.mat"
    content = path.read_bytes()

    if damage == "absent":
        path.unlink()
    elif damage == "short":
        path.write_bytes(content[:-1])
    elif damage == "another":
        path.write_bytes(bytes(4) + content[4:])
    else:
        write_matrix(path, np.zeros((7, 4), "<i4"))

    with pytest.raises(RunError):
        load(tmp_path)


def test_complex_mpi3d(tmp_path):
    images = np.zeros((460_800, 1, 1, 3), np.uint8)
    images[-1] = 255
    np.savez(tmp_path / "mpi3d.npz", images=images)

    table = read_table(str(tmp_path / "mpi3d.npz"))

    assert table.space.shape == (4, 4, 2, 3, 3, 40, 40)
    last = table.space.grid()[-1:]
    assert (table.draw(last) == 1).all()
    assert not table.space["shape"].names


def test_a_reader_must_return_a_table(tmp_path, monkeypatch):
    registry = Registry("data")
    registry.register(".none", lambda path: None)
    monkeypatch.setattr(tables, "READERS", registry)
    (tmp_path / "a.none").touch()
    with pytest.raises(RunError, match="FactorTable"):
        load(tmp_path / "a.none")


# TFDS datasets


def store(name: str, folder: Path, features: dict, columns: dict):
    """Prepares a TFDS dataset of one split."""
    examples = tf.data.Dataset.from_tensor_slices(columns)
    tfds.dataset_builders.store_as_tfds_dataset(
        name=name,
        version="2.1.0",
        features=tfds.features.FeaturesDict(features),
        split_datasets={"train": examples},
        data_dir=folder,
    )


def test_small_norb_of_tfds(tmp_path, rng):
    """Its instances are a factor although their name has no `label_`."""
    rows = list_norb([4, 6])
    rows[:, 3] //= 2  # TFDS numbers the azimuths
    images = rng.integers(0, 256, (80, 4, 4, 1), np.uint8)
    picture = tfds.features.Image(shape=(4, 4, 1))
    features = {"image": picture, "image2": picture}
    columns = {
        "image": images,
        "image2": images[::-1],
    }
    sizes = (5, 10, 9, 18, 6)
    for name, size, column in zip(NORB_NAMES, sizes, rows.T, strict=True):
        key = f"label_{name}".replace("label_instance", "instance")
        features[key] = tfds.features.ClassLabel(num_classes=size)
        columns[key] = column
    store("smallnorb", tmp_path, features, columns)

    table = read_table("tfds:smallnorb", str(tmp_path))

    assert table.space.names == NORB_NAMES
    assert table.space["instance"].names == ("4", "6")
    assert table.space["azimuth"].describe(340) == "340"
    assert_array_equal(read_pixels(table), images)


def test_labels_and_values(tmp_path, rng):
    order = rng.permutation(24)
    features = {"image": tfds.features.Image(shape=(5, 6, 1))}
    columns = {"image": IMAGES[order, ..., None]}
    rows = CLASSES[order]
    for name, size, column in zip(NAMES, SIZES, rows.T, strict=True):
        features[f"label_{name}"] = tfds.features.ClassLabel(num_classes=size)
        features[f"value_{name}"] = np.float32
        columns[f"label_{name}"] = column
        columns[f"value_{name}"] = 2 * column.astype(np.float32)
    store("mine", tmp_path, features, columns)

    dataset = load("tfds:mine", f"--data_dir={tmp_path}")

    assert dataset.space.names == tuple(sorted(NAMES))
    values = dataset.space["x"].values()
    assert_array_equal(values, [0, 2, 4, 6])
    images = dataset.render(dataset.space.grid())
    assert_allclose(images, IMAGES[..., None] / 255)


GOOD = "tensorflow_datasets.core.features.image_feature.Image"
EVIL = "evil_part.Image"
PROTO = "tensorflow_datasets.FeaturesDict"
TOP = "tensorflow_datasets.core.features.features_dict.FeaturesDict"
INNER = json.dumps({"features": {"image": {"pythonClassName": EVIL}}})
NESTED = {"featuresDict": {"features": {"image": {"pythonClassName": EVIL}}}}


@pytest.mark.parametrize(
    "features",
    [
        {"pythonClassName": EVIL},
        {"python_class_name": EVIL},
        {"type": EVIL, "content": {}},
        {"pythonClassName": GOOD, "sequence": [NESTED]},
        {"pythonClassName": "tensorflow_datasets_evil.Image"},
        {"type": TOP, "content": INNER, "proto_cls": PROTO},
        {
            "type": TOP,
            "content": {},
            "proto_cls": EVIL,
        },
        {"pythonClassName": GOOD, "jsonFeature": {"json": f"[{INNER}]"}},
    ],
)
def test_a_dataset_of_others_runs_no_code(features, tmp_path, evil):
    folder = tmp_path / "ex" / "1.0.0"
    folder.mkdir(parents=True)
    (folder / "features.json").write_text(json.dumps(features))
    (folder / "dataset_info.json").write_text('{"name": "ex"}')

    with pytest.raises(TableError, match="tensorflow_datasets"):
        read_table("tfds:ex", str(tmp_path))

    assert not evil.exists()
