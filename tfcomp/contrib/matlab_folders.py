"""Folders of `.mat` files: Cars3D, and smallNORB with matrices of its own."""

import io
import math
import zlib
from pathlib import Path
from typing import Any, Literal

import numpy as np

from tfcomp.config.data_files import list_files
from tfcomp.datasets.factor_table import FactorTable, allocate
from tfcomp.datasets.published import describe_published, register_published
from tfcomp.datasets.table_factors import TableError
from tfcomp.datasets.table_readers import FOLDER_READERS

CAR_BYTES = 2**28  # of a car; a car of Cars3D takes 5 MB
MAT_HEAD = 128  # bytes before the first variable
COMPRESSED = 15  # the type of a compressed variable
TOO_LARGE = f"must take at most {CAR_BYTES >> 20} MB"

# The last word of the name of a file of smallNORB.
NORB_KINDS = ("cat", "info", "dat")
NORB_TYPES: dict[int, np.dtype[Any]] = {
    0x1E3D4C55: np.dtype("u1"),
    0x1E3D4C54: np.dtype("<i4"),
}

register_published(Path(__file__).with_name("smallnorb.toml"))


@FOLDER_READERS.register(".mat")
def read_matlab(folder: Path) -> FactorTable:
    """Reads a folder of smallNORB if files are named so, else of Cars3D."""
    files = list_files(folder, ".mat")
    norb = [f for f in files if f.stem.rpartition("-")[2] in NORB_KINDS]
    if norb:
        return _read_norb(norb)
    return _read_cars(files)


def _read_cars(files: list[Path]) -> FactorTable:
    """Reads Cars3D: a file has `im`, [H, W, C, azimuth, elevation]."""
    first = _load_car(files[0])
    elevations, azimuths, *image_shape = first.shape
    sizes = (elevations, azimuths, len(files))
    images = allocate((*sizes, *image_shape), first.dtype)
    for number, file in enumerate(files):
        car = _load_car(file)
        if car.shape != first.shape:
            rule = f"must have one shape in all files, as {files[0].name}"
            raise TableError("im", rule, f"another in {file.name}")
        images[:, :, number] = car

    return FactorTable(
        images.reshape(-1, *image_shape),
        np.indices(sizes).reshape(3, -1).T,
        names=["elevation", "azimuth", "type"],
        kinds=["ordered", "periodic", "categorical"],
        levels=[None, None, [file.stem for file in files]],
    )


def _load_car(file: Path) -> np.ndarray:
    """Returns the images of a car, [elevation, azimuth, H, W, C]."""
    import scipy.io

    content = io.BytesIO(_unpack(file))
    shapes = {name: shape for name, shape, _ in scipy.io.whosmat(content)}
    shape = shapes.get("im", ())
    if len(shape) != 5 or not all(shape):
        raise TableError("im", "must have 5 dimensions", file.name)
    if math.prod(shape) > CAR_BYTES // 8:  # in the largest type
        raise TableError("im", TOO_LARGE, f"{list(shape)} in {file.name}")

    content.seek(0)
    images = scipy.io.loadmat(content, variable_names=["im"])["im"]
    return images.transpose(4, 3, 0, 1, 2)


def _unpack(file: Path) -> bytes:
    """Returns a MATLAB 5 file with its variables unpacked, up to a limit."""
    stored = file.stat().st_size
    if not MAT_HEAD <= stored <= CAR_BYTES:
        rule = f"must be a MATLAB 5 file of at most {CAR_BYTES >> 20} MB"
        raise TableError(file.name, rule, f"{stored:,} bytes")
    content = file.read_bytes()
    order: Literal["big", "little"]
    order = "big" if content[126:128] == b"MI" else "little"

    unpacked = content[:MAT_HEAD]
    start = MAT_HEAD
    while content[start : start + 8]:
        kind = int.from_bytes(content[start : start + 4], order)
        size = int.from_bytes(content[start + 4 : start + 8], order)
        part = content[start : start + 8 + size]
        start += len(part)
        if kind == COMPRESSED:
            left = CAR_BYTES - len(unpacked) + 1
            part = zlib.decompressobj().decompress(part[8:], left)
        unpacked += part
        if len(unpacked) > CAR_BYTES:
            raise TableError("im", TOO_LARGE, file.name)
    return unpacked


def _read_norb(files: list[Path]) -> FactorTable:
    """Reads parts of smallNORB; of two pictures of a scene, the first."""
    parts: dict[str, dict[str, np.ndarray]] = {}
    for file in files:
        prefix, _, kind = file.stem.rpartition("-")
        parts.setdefault(prefix, {})[kind] = _map_norb(file)
    for prefix, part in parts.items():
        if absent := {*NORB_KINDS} - {*part}:
            rule = "must lie beside the others of its part"
            raise TableError(f"{prefix}-{min(absent)}.mat", rule, "no file")

    rows = []
    pictures = []
    for part in parts.values():
        rows.append(np.column_stack([part["cat"], part["info"]]))
        pictures.append(part["dat"][:, 0])
    classes = np.concatenate(rows)
    classes[:, 3] //= 2  # azimuths are 0, 2, 4 ... 34
    images = np.concatenate(pictures)
    known = describe_published("smallNORB")
    drop_absent(classes, known)
    return FactorTable(images, classes, **known)


def _map_norb(file: Path) -> np.ndarray:
    """Maps a matrix: type, number of dimensions, at least three sizes."""
    head = np.fromfile(file, "<i4", 2)
    if len(head) < 2 or head[0] not in NORB_TYPES or not 1 <= head[1] <= 4:
        raise TableError(file.name, "must be a matrix of smallNORB", "another")
    count = int(head[1])
    shape = np.fromfile(file, "<i4", count, offset=8).tolist()
    start = 8 + 4 * max(3, count)
    return np.memmap(file, NORB_TYPES[int(head[0])], "r", start, tuple(shape))


def drop_absent(classes: np.ndarray, known: dict[str, Any]) -> None:
    """Numbers the instances that occur; their own numbers become names.

    Args:
        classes: Classes [n, F], which change in place.
        known: The arguments of `FactorTable`, whose levels change.
    """
    column = known["names"].index("instance")
    present, index = np.unique(classes[:, column], return_inverse=True)
    classes[:, column] = index.reshape(-1)
    known["levels"][column] = [f"{number:g}" for number in present]
