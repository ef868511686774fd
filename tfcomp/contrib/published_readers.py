"""Readers of published data sets: Cars3D, smallNORB, MPI3D, and TFDS.

Cars3D and smallNORB are folders of `.mat` files, MPI3D is an `.npz` file with
images alone, and TFDS datasets are read as TFDS has prepared them.
"""

import io
import math
import struct
import zlib
from collections.abc import Iterator, Mapping
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
from tfcomp.datasets.table_columns import TableError, allocate
from tfcomp.datasets.table_readers import (
    FOLDER_READERS,
    LAYOUTS,
    READERS,
)

CAR_BYTES = 2**28  # of a car; a car of Cars3D takes 5 MB
CAR_RULE = f"must take at most {CAR_BYTES >> 20} MB"
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

    classes = np.indices(sizes)
    classes = classes.reshape(3, -1)
    flat_images = images.reshape(-1, *image_shape)
    names = [file.stem for file in files]
    return FactorTable(
        flat_images,
        classes.T,
        names=["elevation", "azimuth", "type"],
        kinds=["ordered", "periodic", "categorical"],
        levels=[None, None, names],
    )


def _load_car(file: Path) -> Array:
    """Returns the images of a car, [elevation, azimuth, H, W, C]."""
    import scipy.io

    unpacked = _unpack(file)
    content = io.BytesIO(unpacked)
    shape: tuple[int, ...] = ()
    for variable, size, _ in scipy.io.whosmat(content):
        if variable == "im":
            shape = size
    if len(shape) != 5 or 0 in shape:
        raise TableError("im", "must have 5 dimensions", file.name)
    most_numbers = CAR_BYTES // 8  # of the largest type
    num_numbers = math.prod(shape)
    if num_numbers > most_numbers:
        raise TableError("im", CAR_RULE, f"{list(shape)} in {file.name}")

    content.seek(0)
    variables = scipy.io.loadmat(content, variable_names=["im"])
    images = variables["im"]
    axes = (4, 3, 0, 1, 2)
    return images.transpose(axes)


def _unpack(file: Path) -> bytes:
    """Returns a MATLAB 5 file with its variables unpacked, up to a limit."""
    content = file.read_bytes()
    magic = content[126:128]
    if magic != b"IM":
        raise TableError(file.name, "must be a MATLAB 5 file", "another")

    unpacked = content[:MAT_HEAD]
    start = MAT_HEAD
    while len(content) >= start + 8:
        header = struct.unpack_from("<II", content, start)
        kind, size = header
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
            raise TableError("im", CAR_RULE, file.name)
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
        for end in NORB_ENDS:
            kind = end.removeprefix("-")
            if kind not in part:
                rule = "must lie beside the others of its part"
                raise TableError(f"{prefix}{end}.mat", rule, "no file")
        row_parts = [part["cat"], part["info"]]
        row = np.column_stack(row_parts)
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
    head = np.fromfile(file, "<i4", 2)
    padded = [*head.tolist(), 0, 0]
    kind, dimensions = padded[:2]
    is_matrix = 1 <= dimensions <= 4
    if kind not in NORB_TYPES or not is_matrix:
        rule = "must be a matrix of smallNORB"
        raise TableError(file.name, rule, "another")

    sizes = np.fromfile(file, "<i4", dimensions, offset=8)
    shape = tuple(sizes.tolist())
    num_sizes = max(3, dimensions)
    dtype = NORB_TYPES[kind]
    offset = 8 + 4 * num_sizes
    return np.memmap(
        file,
        dtype=dtype,
        mode="r",
        offset=offset,
        shape=shape,
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
    description = PUBLISHED.get("MPI3D").load()
    sizes = description.classes
    count = len(images)
    num_combinations = math.prod(sizes.values())
    if count != num_combinations:
        sizes = sizes | MPI3D_COMPLEX
        num_combinations = math.prod(sizes.values())
        del columns["levels"]
    if count != num_combinations:
        return None

    shape = tuple(sizes.values())
    numbers = np.arange(count)
    places = np.unravel_index(numbers, shape)
    classes = np.stack(places, axis=1)
    return FactorTable(
        images,
        classes,
        sizes=shape,
        **columns,
    )


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
    label_names = list(labels)

    columns = _describe_tfds(builder.name, label_names)
    factors = columns["names"]
    keys = [labels[factor] for factor in factors]
    classes = _read_columns(builder, keys)
    if "instance" in factors and "levels" in columns:  # a part of smallNORB
        _number_instances(classes, columns)
    values = [VALUE + factor for factor in factors]
    if set(values) <= set(features):
        columns["values"] = _read_columns(builder, values)

    images = _read_images(builder, len(classes))
    return FactorTable(images, classes, **columns)


def _find_labels(features: dict[str, Any], class_type: type) -> dict[str, str]:
    """Returns the feature of each factor: `label_*`, and other classes."""
    labels = []
    for key in sorted(features):
        if key.startswith(LABEL):
            labels.append(key)
    if not labels or "image" not in features:
        rule = "must be image, label_<factor> and value_<factor>"
        names = ", ".join(features)
        raise TableError("features", rule, names)

    factors = {}
    for key in labels:
        factor = key.removeprefix(LABEL)
        factors[factor] = key
    for key, feature in features.items():
        is_class = isinstance(feature, class_type)
        if is_class and key not in labels:
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
    names = []
    for published_name in published["names"]:
        synonym = TFDS_SYNONYMS.get(published_name, published_name)
        names.append(synonym)
    published["names"] = names
    if not set(factors).issubset(names):
        return {"names": factors}

    columns: dict[str, Any] = {}
    for key, column in published.items():
        entries = []
        pairs = zip(names, column, strict=True)
        for factor, entry in pairs:
            if factor in factors:
                entries.append(entry)
        columns[key] = entries
    return columns


def _read_columns(builder: Any, keys: list[str]) -> Array:
    """Reads features of one number for each example, [n, keys]."""
    rows = []
    for batch in _read_batches(builder, keys):
        columns = [batch[key] for key in keys]
        table = np.stack(columns, axis=1)
        rows.append(table)
    return np.concatenate(rows)


def _read_images(builder: Any, count: int) -> Array:
    """Reads all images [n, H, W, C], which must have one size."""
    pixels = builder.info.features["image"]
    if None in pixels.shape:
        raise TableError("image", "must have one size", list(pixels.shape))

    dtype = np.dtype(pixels.np_dtype)
    images = allocate((count, *pixels.shape), dtype)
    start = 0
    for batch in _read_batches(builder, ["image"]):
        batch_images = batch["image"]
        end = start + len(batch_images)
        images[start:end] = batch_images
        start = end
    return images


def _read_batches(builder: Any, keys: list[str]) -> Iterator[Any]:
    """Yields some features of all examples, always in the same order."""
    import tensorflow_datasets as tfds

    features = dict.fromkeys(keys, True)
    examples = builder.as_dataset(
        split="train",
        shuffle_files=False,
        decoders=tfds.decode.PartialDecoding(features),
        # Small data sets are cached, which costs time here.
        read_config=tfds.ReadConfig(try_autocache=False),
    )
    return examples.batch(BATCH).as_numpy_iterator()
