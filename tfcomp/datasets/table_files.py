"""Factor tables from one file: `.npz` and `.h5`, our layout and published ones.

    images   [n, H, W] or [n, H, W, C]
    classes  integers [n, F]
    values, names, sizes, kinds, levels, units   as of `FactorTable`, optional

In a file, `values` may also be [F, largest size], padded with NaN, and
`levels` is a string per factor, `square,ellipse,heart`, empty where there are
none. dSprites, 3DShapes and MPI3D are known by what they contain. No pickle is
ever opened.
"""

import math
import os
import struct
import zipfile
from collections.abc import Callable, Mapping
from typing import IO, Any

import numpy as np

from tfcomp.datasets.factor_table import FactorTable
from tfcomp.datasets.named_splits import PUBLISHED
from tfcomp.datasets.table_factors import ROUNDING, TableError
from tfcomp.datasets.table_images import LazyImages

TEXTS = ("names", "kinds", "levels", "units")
OPTIONS = ("values", "sizes", *TEXTS)
# Of an array that is not the images, 8 bytes a number; dSprites has 35 MB.
MEMBER_BYTES = 2**28
TEXT_BYTES = 2**20  # of all names of factors, or of all levels
# Compression makes nothing smaller than this; what says so is a lie.
MAX_RATIO = 1100
Read = Callable[[str], Any]


def read_npz(path: str) -> FactorTable:
    """A table from an `.npz` file; its images are mapped, or read later."""

    def read(name: str) -> np.ndarray:
        with archive.open(f"{name}.npy") as file:
            shape, _, dtype = _read_header(file)
            _check_size(path, name, shape, dtype)
            file.seek(0)
            return np.lib.format.read_array(file, allow_pickle=False)

    def find(name: str) -> np.ndarray | LazyImages:
        return _find_images(path, archive, f"{name}.npy")

    with zipfile.ZipFile(path) as archive:
        names = {name.removesuffix(".npy") for name in archive.namelist()}
        return _read_layout(names, read, find)


def read_h5(path: str) -> FactorTable:
    """A table from an HDF5 file; its images are read later."""
    import h5py

    def find(name: str) -> LazyImages:
        def load() -> np.ndarray:
            with h5py.File(path) as again:
                # At once: chunks of dSprites have parts of thousands of images.
                found = np.empty(again[name].shape, again[name].dtype)
                again[name].read_direct(found)
                return found

        _check_declared(path, name, file[name].shape, file[name].dtype)
        return LazyImages(file[name].shape, file[name].dtype, load)

    def read(name: str) -> Any:
        member = file[name]
        if h5py.check_string_dtype(member.dtype):
            return _read_texts(name, member)
        if member.dtype.kind not in "buif":
            raise TableError(name, "must be numbers or text", member.dtype)
        _check_size(path, name, member.shape, member.dtype)
        return member[()]

    with h5py.File(path) as file:
        _check_members(file)
        latents = file.get("latents", {})
        if isinstance(latents, h5py.Dataset):
            raise TableError("latents", "must be a group", "an array")
        _check_members(latents)
        names = {name for name in file if hasattr(file[name], "shape")}
        names |= {f"latents/{name}" for name in latents}
        return _read_layout(names, read, find)


def _read_layout(
    names: set[str], read: Read, find: Callable[[str], Any]
) -> FactorTable:
    """Makes the table of a file with members of these names."""
    for latents in ("latents_", "latents/"):
        if {"imgs", f"{latents}classes"} <= names:
            has_values = f"{latents}values" in names
            values = read(f"{latents}values") if has_values else None
            classes = read(f"{latents}classes")
            known = describe_published("dSprites")
            return FactorTable(find("imgs"), classes, values, **known)
    if {"images", "classes"} <= names:
        options = {name: read(name) for name in OPTIONS if name in names}
        return FactorTable(find("images"), read("classes"), **_decode(options))
    if {"images", "labels"} <= names:
        labels = read("labels")
        known = describe_published("3DShapes")
        if labels.ndim != 2 or labels.shape[1] != len(known["names"]):
            raise TableError("labels", "must be [n, 6]", list(labels.shape))
        classes, values = find_classes(labels)
        return FactorTable(find("images"), classes, values, **known)
    if "images" in names:
        return _make_mpi3d(find("images"))
    rule = "must have images and classes (docs/extending.md has all layouts)"
    raise TableError("members", rule, ", ".join(sorted(names)) or "none")


def find_classes(labels: np.ndarray) -> tuple[np.ndarray, list[np.ndarray]]:
    """Classes [n, F] and the values of each factor, from values [n, F]."""
    if not np.isfinite(labels).all():
        row = np.argwhere(~np.isfinite(labels))[0, 0]
        raise TableError("labels", "must be finite", f"NaN for image {row}")
    found = [_group(column) for column in labels.T]
    classes = np.stack([index for index, _ in found], axis=1)
    return classes, [values for _, values in found]


def _group(column: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Returns the class of each number and the value of each class.

    Values that differ by rounding alone, as 0.1 and 0.1 + 1e-9, are one.
    """
    values, index = np.unique(column, return_inverse=True)
    is_next = np.diff(values) > ROUNDING * np.ptp(values)
    classes = np.cumsum([0, *is_next])
    return classes[index.reshape(-1)], values[np.flatnonzero([1, *is_next])]


def drop_absent(classes: np.ndarray) -> tuple[np.ndarray, list[str]]:
    """Returns classes without those that never occur, and their numbers."""
    present, index = np.unique(classes, return_inverse=True)
    return index.reshape(-1), [f"{number:g}" for number in present]


def _make_mpi3d(images: Any) -> FactorTable:
    count = images.shape[0] if images.shape else 0
    data, known = PUBLISHED["MPI3D"], describe_published("MPI3D")
    plain = data["classes"]
    # By the number of images, which is all that such a file says.
    kinds = {math.prod(k.values()): k for k in (plain, plain | data["complex"])}
    if count not in kinds:
        sizes = " or ".join(f"{n:,}" for n in kinds)
        rule = f"must come with classes, unless they are MPI3D ({sizes} images)"
        raise TableError("images", rule, f"{count:,}")
    if kinds[count] != plain:
        known["levels"] = None
    sizes = (*kinds[count].values(),)
    classes = np.stack(np.unravel_index(np.arange(count), sizes), axis=1)
    return FactorTable(images, classes, sizes=sizes, **known)


def describe_published(name: str) -> dict[str, list]:
    """Returns the published facts of a data set's factors for `FactorTable`."""
    factors = PUBLISHED[name]["factors"]
    values = [factor.get("values") for factor in factors]
    return {
        **({"values": values} if any(values) else {}),
        "names": [factor["name"] for factor in factors],
        "kinds": [factor.get("kind", "ordered") for factor in factors],
        "levels": [factor.get("levels") for factor in factors],
        "units": [factor.get("unit", "") for factor in factors],
    }


def _decode(options: Mapping[str, np.ndarray]) -> dict[str, Any]:
    """Text as strings, lists of levels without their padding."""
    found: dict[str, Any] = {}
    for name, value in options.items():
        if name in TEXTS and (value.dtype.kind not in "SUO" or value.ndim != 1):
            got = f"{value.dtype} {list(value.shape)}"
            raise TableError(name, "must be a list of texts", got)
        if value.dtype.kind in "SO":  # HDF5 has bytes
            texts = value.ravel()
            value = np.array(
                [t.decode() if isinstance(t, bytes) else str(t) for t in texts]
            )
        found[name] = value
        if name == "levels":
            found[name] = [text.split(",") if text else None for text in value]
    return found


def _find_images(
    path: str, archive: zipfile.ZipFile, name: str
) -> np.ndarray | LazyImages:
    """Maps an array of an archive that is stored, reads others later."""
    info = archive.getinfo(name)
    with archive.open(info) as file:
        shape, is_fortran, dtype = _read_header(file)
    if dtype.hasobject:
        raise TableError("images", "must be no pickled objects", dtype)
    _check_declared(path, "images", shape, dtype)
    if info.compress_type == zipfile.ZIP_STORED:
        with open(path, "rb") as raw:
            raw.seek(info.header_offset)
            # A file's header ends with the lengths of two fields behind it.
            lengths = struct.unpack("<HH", raw.read(30)[26:])
            raw.seek(sum(lengths), 1)
            _read_header(raw)
            order = "F" if is_fortran else "C"
            return np.memmap(raw, dtype, "r", raw.tell(), shape, order)

    def load() -> np.ndarray:
        with zipfile.ZipFile(path) as again, again.open(name) as file:
            return np.lib.format.read_array(file, allow_pickle=False)

    return LazyImages(shape, dtype, load)


def _read_header(file: IO[bytes]) -> tuple[tuple[int, ...], bool, np.dtype]:
    version = np.lib.format.read_magic(file)
    if version == (1, 0):
        return np.lib.format.read_array_header_1_0(file)
    return np.lib.format.read_array_header_2_0(file)


def _check_declared(
    path: str, name: str, shape: tuple[int, ...], dtype: np.dtype
) -> None:
    """Refuses an array that says it is larger than its file can hold."""
    size, stored = math.prod(shape) * dtype.itemsize, os.path.getsize(path)
    if size > MAX_RATIO * stored + MEMBER_BYTES // 256:
        rule = f"must be in the file, which has {stored / 2**20:,.1f} MB"
        raise TableError(name, rule, f"{size >> 20:,} MB")


def _check_size(
    path: str, name: str, shape: tuple[int, ...], dtype: np.dtype
) -> None:
    """Refuses a large array before memory is taken for it."""
    size = math.prod(shape) * max(dtype.itemsize, 8)
    if size > MEMBER_BYTES:
        rule = f"must take at most {MEMBER_BYTES >> 20:,} MB"
        raise TableError(name, rule, f"{size >> 20:,} MB")
    _check_declared(path, name, shape, dtype)


def _read_texts(name: str, member: Any) -> np.ndarray:
    """Reads texts of any length one by one: each may lie there many times."""
    if member.ndim != 1:
        got = f"{member.dtype} {list(member.shape)}"
        raise TableError(name, "must be a list of texts", got)
    rule = f"must take at most {TEXT_BYTES:,} bytes"
    if member.dtype.itemsize * member.size > TEXT_BYTES:
        raise TableError(name, rule, f"{member.size * member.dtype.itemsize:,}")
    texts, size = [], 0
    for place in range(member.size):
        texts.append(member[place])
        size += len(texts[-1])
        if size > TEXT_BYTES:
            raise TableError(name, rule, f"{size:,} or more")
    return np.array(texts, object)


def _check_members(group: Any) -> None:
    """Refuses members that HDF5 would read from other files of this machine.

    A file of somebody else could else show what only we can read as images.
    """
    import h5py

    for name in group:
        is_link = not isinstance(group.get(name, getlink=True), h5py.HardLink)
        member = None if is_link else group[name]
        if isinstance(member, h5py.Dataset):
            is_link = bool(member.external) or member.is_virtual
        if is_link:
            raise TableError(name, "must lie in the file itself", "a link")
