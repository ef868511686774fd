"""Factor tables from one file: `.npz` and `.h5`, our layout and published ones.

docs/data.md has our layout, the arguments of `FactorTable`. dSprites and
3DShapes are recognized by their members. No pickle is ever opened.
Embeddings (`.npz`) have `classes` or a column [n] for each factor; `images` are
optional, and every other array [n, ...] is a layer.
"""

import zipfile
from pathlib import Path
from typing import Any

import numpy as np

from tfcomp.datasets.factor_table import FactorTable
from tfcomp.datasets.published import describe_published
from tfcomp.datasets.table_checks import TableError, check_bytes
from tfcomp.datasets.table_factors import ROUNDING
from tfcomp.datasets.table_formats import LAYOUTS, READERS, Arrays

TEXTS = ("names", "kinds", "levels", "units")
OPTIONS = ("values", "sizes", *TEXTS)
MAX_BYTES = 2**28  # of an array that is not the images; dSprites has 35 MB
APART = 1e-3  # of a value: rounding changes none of a side of 0 as much


@READERS.register(".npz")
def read_npz(path: str | Path) -> FactorTable:
    """Returns the table of an `.npz` file."""
    return _make_table(_open_npz(path))


def _open_npz(path: str | Path) -> Arrays:
    """Returns the members of an `.npz` file."""
    with zipfile.ZipFile(path) as archive:
        members = archive.infolist()
    sizes = {m.filename.removesuffix(".npy"): m.file_size for m in members}

    def read(name: str, most: int | None = MAX_BYTES) -> np.ndarray:
        check_bytes(name, sizes[name], most)
        with np.load(path) as arrays:
            return arrays[name]

    return Arrays(list(sizes), read)


def read_embeddings(path: str) -> tuple[FactorTable, dict[str, np.ndarray]]:
    """Reads the table and the layers of an `.npz` file."""
    members = _open_npz(path)
    # Without classes, the name of an option may be the name of a factor.
    options = OPTIONS if "classes" in members.names else ()
    arrays = {
        name: members.read(name, None)
        for name in members.names
        if name not in options
    }
    images = arrays.pop("images", None)
    columns = {n: array for n, array in arrays.items() if array.ndim == 1}
    if "classes" in arrays:
        given = _read_options(members)
        table = FactorTable(images, arrays.pop("classes"), **given)
    else:
        table = tabulate(columns, images)
    return table, {n: a for n, a in arrays.items() if n not in columns}


@READERS.register(".h5")
@READERS.register(".hdf5")
def read_h5(path: str | Path) -> FactorTable:
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
        return _make_table(Arrays(members, read))


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


def _make_table(arrays: Arrays) -> FactorTable:
    """Returns the table of arrays in our layout or a registered one."""
    if {"images", "classes"} <= {*arrays.names}:
        options = _read_options(arrays)
        images = arrays.read("images", None)
        return FactorTable(images, arrays.read("classes"), **options)

    for name in LAYOUTS.names():
        table = LAYOUTS.get(name).load()(arrays)
        if table is not None:
            return table
    rule = "must have images and classes (docs/data.md has all layouts)"
    raise TableError("members", rule, ", ".join(sorted(arrays.names)) or "none")


@LAYOUTS.register("dSprites")
def read_dsprites(arrays: Arrays) -> FactorTable | None:
    """Recognizes dSprites, as `.npz` or HDF5, by the names of its members."""
    for latents in ("latents_", "latents/"):
        if {"imgs", f"{latents}classes"} <= {*arrays.names}:
            known = describe_published("dSprites")
            if f"{latents}values" in arrays.names:
                known["values"] = arrays.read(f"{latents}values")
            images = arrays.read("imgs", None)
            classes = arrays.read(f"{latents}classes")
            return FactorTable(images, classes, **known)
    return None


@LAYOUTS.register("3DShapes")
def read_3dshapes(arrays: Arrays) -> FactorTable | None:
    """Recognizes 3DShapes, whose labels are the values of six factors."""
    if not {"images", "labels"} <= {*arrays.names}:
        return None
    labels = arrays.read("labels")
    known = describe_published("3DShapes")
    names = known.pop("names")
    if labels.ndim != 2 or labels.shape[1] != len(names):
        raise TableError("labels", "must be [n, 6]", list(labels.shape))
    columns = dict(zip(names, labels.T, strict=True))
    return tabulate(columns, arrays.read("images", None), **known)


def _read_options(arrays: Arrays) -> dict[str, Any]:
    """Returns the optional members, as arguments of `FactorTable`."""
    options: dict[str, Any] = {
        name: arrays.read(name) for name in OPTIONS if name in arrays.names
    }
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
