"""Readers of published data sets: Cars3D, smallNORB, MPI3D, and TFDS.

Cars3D and smallNORB are folders of `.mat` files, MPI3D is an `.npz` file with
images alone, and TFDS datasets are read as TFDS has prepared them.
"""

import io
import math
import struct
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy import ndarray as Array

from tfcomp.config.hashes import TFDS, list_files
from tfcomp.config.process import quiet_startup
from tfcomp.datasets.factor_table import FactorTable
from tfcomp.datasets.materialized import check_features
from tfcomp.datasets.published import (
    PUBLISHED,
    describe_published,
    register_published,
)
from tfcomp.datasets.table_columns import (
    TableError,
    allocate,
    release_memory,
)
from tfcomp.datasets.table_readers import (
    FOLDER_READERS,
    LAYOUTS,
    READERS,
)

CAR_BYTES = 2**28  # of a car; a car of Cars3D takes 5 MB
MAT_HEAD = 128  # bytes before the first variable
COMPRESSED = 15  # the type of a compressed variable

# The ends of the names of files of smallNORB.
NORB_ENDS = ("-cat", "-info", "-dat")
NORB_TYPES: dict[int, np.dtype[Any]] = {
    0x1E3D4C55: np.dtype("u1"),
    0x1E3D4C54: np.dtype("<i4"),
}

# The file of complex shapes has fewer colors and shapes, without names.
MPI3D_COMPLEX = {
    "color": 4,
    "shape": 4,
}

LABEL = "label_"
VALUE = "value_"
TFDS_NAMES = {
    "dsprites": "dSprites",
    "shapes3d": "3DShapes",
    "smallnorb": "smallNORB",
}
TFDS_SYNONYMS = {
    "posX": "x_position",
    "posY": "y_position",
}
BATCH = 1024  # examples that are read at a time

for _file in ("smallnorb.toml", "mpi3d.toml"):
    register_published(Path(__file__).with_name(_file))


@FOLDER_READERS.register(".mat")
def read_matlab(folder: Path) -> FactorTable:
    """Reads a folder of smallNORB if files are named so, else of Cars3D."""
    files = list_files(folder, ".mat")
    norb_files = []
    for file in files:
        if file.stem.endswith(NORB_ENDS):
            norb_files.append(file)
    if norb_files:
        return _read_norb(norb_files)
    return _read_cars(files)


def _read_cars(files: list[Path]) -> FactorTable:
    """Reads Cars3D: a file has `im`, [H, W, C, azimuth, elevation]."""
    first = _load_car(files[0])
    elevations, azimuths, *image_shape = first.shape
    sizes = (elevations, azimuths, len(files))
    shape = (*sizes, *image_shape)
    images = allocate(shape, first.dtype)
    for number, file in enumerate(files):
        car = _load_car(file)
        if car.shape != first.shape:
            rule = f"must have one shape in all files, as {files[0].name}"
            raise TableError("im", rule, f"another in {file.name}")
        images[:, :, number] = car

    flat_images = images.reshape(-1, *image_shape)
    names = [file.stem for file in files]
    return FactorTable(
        flat_images,
        _list_classes(sizes),
        names=["elevation", "azimuth", "type"],
        kinds=["ordered", "periodic", "categorical"],
        levels=[None, None, names],
    )


def _load_car(file: Path) -> Array:
    """Returns the images of a car, [elevation, azimuth, H, W, C]."""
    import scipy.io

    content = io.BytesIO(_unpack(file))
    variables = scipy.io.loadmat(content, variable_names=["im"])
    images = variables.get("im", np.zeros(0))
    if images.ndim != 5 or not images.size:
        raise TableError("im", "must have 5 dimensions", file.name)
    axes = (4, 3, 0, 1, 2)
    return images.transpose(axes)


def _unpack(file: Path) -> bytes:
    """Returns a MATLAB 5 file with its variables unpacked, up to a limit."""
    content = file.read_bytes()
    unpacked = content[:MAT_HEAD]
    start = MAT_HEAD
    while len(content) >= start + 8:
        kind, size = struct.unpack_from("<II", content, start)
        end = start + 8 + size
        part = content[start:end]
        start = end
        if kind == COMPRESSED:
            limit = CAR_BYTES - len(unpacked) + 1
            stream = zlib.decompressobj()
            packed = part[8:]
            part = stream.decompress(packed, limit)
        unpacked += part
        if len(unpacked) > CAR_BYTES:
            rule = f"must take at most {CAR_BYTES >> 20} MB"
            raise TableError("im", rule, file.name)
    return unpacked


def _read_norb(files: list[Path]) -> FactorTable:
    """Reads parts of smallNORB; of two pictures of a scene, the first."""
    parts: dict[str, dict[str, Array]] = {}
    for file in files:
        prefix, _, kind = file.stem.rpartition("-")
        part = parts.setdefault(prefix, {})
        part[kind] = _map_norb(file)

    rows = []
    pictures = []
    for prefix, part in parts.items():
        if len(part) < len(NORB_ENDS):
            rule = f"must have files {', '.join(NORB_ENDS)}"
            raise TableError(prefix, rule, ", ".join(part))
        row = np.column_stack([part["cat"], part["info"]])
        rows.append(row)
        first_pictures = part["dat"][:, 0]
        pictures.append(first_pictures)

    classes = np.concatenate(rows)
    classes[:, 3] //= 2  # azimuths are 0, 2, 4 ... 34
    columns = describe_published("smallNORB")
    _number_instances(classes, columns)
    images = np.concatenate(pictures)
    return FactorTable(images, classes, **columns)


def _map_norb(file: Path) -> Array:
    """Maps a matrix: type, number of dimensions, at least three sizes."""
    head = np.fromfile(file, "<i4", 6)
    kind, dimensions, *sizes = head.tolist()
    if kind not in NORB_TYPES:
        rule = "must be a matrix of smallNORB"
        raise TableError(file.name, rule, "another")

    num_sizes = max(3, dimensions)
    return np.memmap(
        file,
        dtype=NORB_TYPES[kind],
        mode="r",
        offset=8 + 4 * num_sizes,
        shape=tuple(sizes[:dimensions]),
    )


def _number_instances(classes: Array, columns: dict[str, Any]) -> None:
    """Numbers the instances that occur; their own numbers become names.

    Args:
        classes: Classes [n, F], which change in place.
        columns: The arguments of `FactorTable`, whose levels change.
    """
    place = columns["names"].index("instance")
    numbers = classes[:, place]
    present, index = np.unique(numbers, return_inverse=True)
    classes[:, place] = index.reshape(-1)
    names = [f"{number:g}" for number in present]
    columns["levels"][place] = names


@LAYOUTS.register("MPI3D")
def read_mpi3d(arrays: Mapping[str, Array]) -> FactorTable | None:
    """Recognizes MPI3D by the number of its images, one per combination."""
    if "images" not in arrays or "labels" in arrays:
        return None
    images = arrays["images"]
    if not images.ndim:
        return None

    columns = describe_published("MPI3D")
    sizes = PUBLISHED.get("MPI3D").load().classes
    if len(images) != math.prod(sizes.values()):
        sizes = sizes | MPI3D_COMPLEX
        del columns["levels"]
    shape = tuple(sizes.values())
    if len(images) != math.prod(shape):
        return None
    return FactorTable(
        images,
        _list_classes(shape),
        sizes=shape,
        **columns,
    )


def _list_classes(sizes: Sequence[int]) -> Array:
    """Lists all combinations of classes [n, F], the last factor fastest."""
    classes = np.indices(sizes)
    return classes.reshape(len(sizes), -1).T


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
    columns = _describe_tfds(builder.name, list(labels))
    factors = columns["names"]
    keys = [labels[factor] for factor in factors]
    values = [VALUE + factor for factor in factors]
    has_values = set(values) <= set(features)
    if not has_values:
        values = []

    examples = _read_examples(builder, ["image", *keys, *values])
    classes = np.stack([examples[key] for key in keys], axis=1)
    if "instance" in factors and "levels" in columns:  # a part of smallNORB
        _number_instances(classes, columns)
    if has_values:
        arrays = [examples[key] for key in values]
        columns["values"] = np.stack(arrays, axis=1)
    return FactorTable(examples["image"], classes, **columns)


def _find_labels(features: dict[str, Any], class_type: type) -> dict[str, str]:
    """Returns the feature of each factor: `label_*`, and other classes."""
    factors = {}
    for key in sorted(features):
        if key.startswith(LABEL):
            factor = key.removeprefix(LABEL)
            factors[factor] = key
    if not factors or "image" not in features:
        rule = "must be image, label_<factor> and value_<factor>"
        names = ", ".join(features)
        raise TableError("features", rule, names)

    for key, feature in features.items():
        is_class = isinstance(feature, class_type)
        if is_class and not key.startswith(LABEL):
            factors[key] = key
    return factors


def _describe_tfds(name: str, factors: list[str]) -> dict[str, Any]:
    """Returns the names of factors in order, and what is published of them.

    Args:
        name: The name of the TFDS dataset.
        factors: Names of its factors.

    Returns:
        Arguments of `FactorTable`.
    """
    if name not in TFDS_NAMES:
        return {"names": factors}
    published = describe_published(TFDS_NAMES[name])
    names = published["names"]
    names = [TFDS_SYNONYMS.get(factor, factor) for factor in names]
    published["names"] = names
    if not set(factors).issubset(names):
        return {"names": factors}

    columns = {}
    for key, column in published.items():
        entries = []
        for factor, entry in zip(names, column, strict=True):
            if factor in factors:
                entries.append(entry)
        columns[key] = entries
    return columns


def _read_examples(builder: Any, keys: list[str]) -> dict[str, Array]:
    """Reads some features of all examples, always in the same order.

    Args:
        builder: The TFDS dataset, whose images must have one size.
        keys: Names of features, `image` among them.
    """
    import tensorflow_datasets as tfds

    count = builder.info.splits["train"].num_examples
    arrays = {}
    for key in keys:
        feature = builder.info.features[key]
        if None in feature.shape:
            raise TableError(key, "must have one size", list(feature.shape))
        dtype = np.dtype(feature.np_dtype)
        arrays[key] = allocate((count, *feature.shape), dtype)

    features = dict.fromkeys(keys, True)
    examples = builder.as_dataset(
        split="train",
        shuffle_files=False,
        decoders=tfds.decode.PartialDecoding(features),
        # Small data sets are cached, which costs time here.
        read_config=tfds.ReadConfig(try_autocache=False),
    )
    start = 0
    for batch in examples.batch(BATCH).as_numpy_iterator():
        end = start + len(batch["image"])
        for key, array in arrays.items():
            array[start:end] = batch[key]
        release_memory(arrays["image"])
        start = end
    return arrays
