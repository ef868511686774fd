"""Factor tables from one file: `.npz` and `.h5`, our layout and published ones.

docs/data.md has our layout, the arguments of `FactorTable`. dSprites, 3DShapes
and MPI3D are recognized by their members. No pickle is ever opened.
Embeddings (`.npz`) have `classes` or a column [n] for each factor; `images` are
optional, and every other array [n, ...] is a layer.
"""

import math
import zipfile
from collections.abc import Callable, Collection
from typing import Any

import numpy as np

from tfcomp.datasets.factor_table import FactorTable
from tfcomp.datasets.region_kinds import PUBLISHED
from tfcomp.datasets.table_checks import TableError, check_bytes
from tfcomp.datasets.table_factors import ROUNDING

TEXTS = ("names", "kinds", "levels", "units")
OPTIONS = ("values", "sizes", *TEXTS)
MAX_BYTES = 2**28  # of an array that is not the images; dSprites has 35 MB
APART = 1e-3  # of a value: rounding changes none of a side of 0 as much
Read = Callable[..., np.ndarray]  # of a name, and the most bytes


def read_npz(path: str) -> FactorTable:
    """Returns the table of an `.npz` file."""
    return _make_table(*_open_npz(path))


def _open_npz(path: str) -> tuple[list[str], Read]:
    """Returns the names of the members, and a function that reads one."""
    with zipfile.ZipFile(path) as archive:
        members = archive.infolist()
    sizes = {m.filename.removesuffix(".npy"): m.file_size for m in members}

    def read(name: str, most: int | None = MAX_BYTES) -> np.ndarray:
        check_bytes(name, sizes[name], most)
        with np.load(path) as arrays:
            return arrays[name]

    return list(sizes), read


def read_embeddings(path: str) -> tuple[FactorTable, dict[str, np.ndarray]]:
    """Reads the table and the layers of an `.npz` file."""
    members, read = _open_npz(path)
    options = OPTIONS if "classes" in members else ()  # else a factor's name
    arrays = {name: read(name, None) for name in members if name not in options}
    images = arrays.pop("images", None)
    columns = {n: array for n, array in arrays.items() if array.ndim == 1}
    if "classes" in arrays:
        given = _read_options(members, read)
        table = FactorTable(images, arrays.pop("classes"), **given)
    else:
        table = tabulate(columns, images)
    return table, {n: a for n, a in arrays.items() if n not in columns}


def read_h5(path: str) -> FactorTable:
    """Returns the table of an HDF5 file."""
    import h5py

    def read(name: str, most: int | None = MAX_BYTES) -> np.ndarray:
        member = members[name]
        check_bytes(name, member.nbytes, most)
        if h5py.check_string_dtype(member.dtype):
            return np.asarray(member.asstr()[()], object)
        if member.dtype.kind not in "buif":
            raise TableError(name, "must be numbers or text", member.dtype)
        return member[()]

    with h5py.File(path) as file:
        members = _list_arrays(file)
        if isinstance(file.get("latents"), h5py.Group):
            latents = _list_arrays(file["latents"])
            members |= {f"latents/{name}": a for name, a in latents.items()}
        return _make_table(members, read)


def _list_arrays(group: Any) -> dict[str, Any]:
    """Returns the arrays of a group.

    Raises:
        TableError: For an array whose numbers lie in another file, which the
            hash of the data does not cover.
    """
    import h5py

    arrays = {}
    for name in group:
        member = group.get(name)
        if not isinstance(member, h5py.Dataset):
            continue
        is_elsewhere = member.file.filename != group.file.filename
        if is_elsewhere or member.external or member.is_virtual:
            raise TableError(name, "must lie in the file itself", "a link")
        arrays[name] = member

    return arrays


def _make_table(names: Collection[str], read: Read) -> FactorTable:
    for latents in ("latents_", "latents/"):
        if "imgs" in names and f"{latents}classes" in names:
            known = describe_published("dSprites")
            if f"{latents}values" in names:
                known["values"] = read(f"{latents}values")
            images = read("imgs", None)
            return FactorTable(images, read(f"{latents}classes"), **known)
    if "images" not in names:
        rule = "must have images and classes (docs/data.md has all layouts)"
        raise TableError("members", rule, ", ".join(sorted(names)) or "none")
    images = read("images", None)
    if "classes" in names:
        options = _read_options(names, read)
        return FactorTable(images, read("classes"), **options)
    if "labels" not in names:
        return _make_mpi3d(images)
    labels, known = read("labels"), describe_published("3DShapes")
    if labels.ndim != 2 or labels.shape[1] != len(known["names"]):
        raise TableError("labels", "must be [n, 6]", list(labels.shape))
    columns = dict(zip(known.pop("names"), labels.T, strict=True))
    return tabulate(columns, images, **known)


def _make_mpi3d(images: np.ndarray) -> FactorTable:
    """Recognizes MPI3D by the number of images, all that its file has."""
    count = images.shape[0] if images.shape else 0
    data, known = PUBLISHED["MPI3D"], describe_published("MPI3D")
    plain = data["classes"]
    kinds = {math.prod(k.values()): k for k in (plain, plain | data["complex"])}
    if count not in kinds:
        counts = " or ".join(f"{n:,}" for n in kinds)
        rule = f"must come with classes, unless MPI3D ({counts} images)"
        raise TableError("images", rule, f"{count:,}")
    if kinds[count] != plain:
        del known["levels"]
    sizes = (*kinds[count].values(),)
    classes = np.stack(np.unravel_index(np.arange(count), sizes), axis=1)
    return FactorTable(images, classes, sizes=sizes, **known)


def _read_options(names: Collection[str], read: Read) -> dict[str, Any]:
    """Returns the optional members, as arguments of `FactorTable`."""
    options: dict[str, Any] = {n: read(n) for n in OPTIONS if n in names}
    for name in {*options} & {*TEXTS}:
        option = options[name]
        if option.dtype.kind not in "SUO" or option.ndim != 1:
            got = f"{option.dtype} {list(option.shape)}"
            raise TableError(name, "must be a list of texts", got)
        options[name] = option.astype(str).tolist()
    if "levels" in options:
        texts = options["levels"]
        options["levels"] = [t.split(",") if t else None for t in texts]
    return options


def tabulate(
    columns: Any, images: np.ndarray | None = None, **options: Any
) -> FactorTable:
    """Returns the table of columns [n] of numbers or text, by factor."""
    if not len(columns):
        rule = "must be given, as classes [n, F] or columns [n]"
        raise TableError("factors", rule, "none")
    names = [str(name) for name in columns]
    arrays = [np.asarray(columns[name]) for name in columns]
    classes, values, levels = zip(*map(_classify, names, arrays), strict=True)
    table, options = np.stack(classes, axis=1), {"levels": levels} | options
    return FactorTable(images, table, values, names, **options)


def _classify(name: str, column: np.ndarray) -> tuple[np.ndarray, Any, Any]:
    """Returns classes [n], and values (equal but for rounding) or names."""
    if column.dtype.kind not in "buif":
        import pandas as pd

        codes, levels = pd.factorize(column.astype(str))
        return codes, None, levels.tolist()
    if not np.isfinite(column).all():
        raise TableError(f"the column {name}", "must have no gaps", "NaN")
    values, index = np.unique(column.astype(float), return_inverse=True)
    low, high, gaps = values[:-1], values[1:], np.diff(values)
    is_next = gaps > ROUNDING * np.ptp(values) * (values % 1).any()
    # On a logarithmic scale, small values are as far apart as large ones.
    is_next |= (low * high > 0) & (gaps > APART * np.abs(high))
    classes = np.cumsum([0, *is_next])[index.reshape(-1)]
    return classes, values[np.flatnonzero([1, *is_next])], None


def drop_absent(classes: np.ndarray, known: dict[str, Any]) -> None:
    """Numbers the instances that occur; their own numbers become names."""
    column = known["names"].index("instance")
    present, index = np.unique(classes[:, column], return_inverse=True)
    classes[:, column] = index.reshape(-1)
    known["levels"][column] = [f"{number:g}" for number in present]


def describe_published(name: str) -> dict[str, Any]:
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
