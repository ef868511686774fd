"""Factor tables from `.npz`, HDF5 and parquet files, and CSV folders.

docs/data.md has our layout, the arguments of `FactorTable`. dSprites and
3DShapes are recognized by their members. No pickle is ever opened. Plugins
register more formats:

    @READERS.register(".npz")         a file, by its ending, or `tfds:NAME`
    @FOLDER_READERS.register(".mat")  a folder, by the ending of files in it
    def read(path: Path) -> FactorTable: ...

    @LAYOUTS.register("MPI3D")        the arrays of an `.npz` or HDF5 file
    def read(arrays: Mapping[str, Array]) -> FactorTable | None: ...

An array is read when it is taken from its mapping. A layout is None for arrays
of another one. A reader may also return a `TableFile`, whose columns are
checked when it is known which are factors.
"""

import io
import json
from collections import UserDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy import ndarray as Array

from tfcomp.config.hashes import (
    PICTURE_HEADS,
    TABLES,
    find_picture_column,
    list_files,
    read_cells,
)
from tfcomp.config.plugins import Registry
from tfcomp.datasets.factor_table import FactorTable, check_images
from tfcomp.datasets.published import describe_published
from tfcomp.datasets.table_columns import (
    MAX_IN_MEMORY,
    PART,
    UNTYPED,
    Pictures,
    TableError,
    allocate,
    decode_picture,
    load_images,
    open_files,
    release_memory,
)

if TYPE_CHECKING:
    import pandas as pd

READERS = Registry("data")
FOLDER_READERS = Registry("data")
LAYOUTS = Registry("data")

TEXTS = ("names", "kinds", "levels", "units")
OPTIONS = ("values", "sizes", *TEXTS)


@dataclass(frozen=True)
class TableFile:
    """The content of a file, before any of its columns is a factor.

    Attributes:
        images: Its images, [n, ...]; None for factors alone.
        columns: As `FactorTable` takes them: classes [n, F], or a frame.
        options: Other arguments of `FactorTable`.
        notes: What was left out on reading.
    """

    images: Array | Pictures | None
    columns: Any
    options: dict[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    def make_table(
        self,
        factors: Sequence[str] | None = None,
        ignore: Sequence[str] | None = None,
        image_size: int = 0,
    ) -> FactorTable:
        """Reads the images, and makes the table.

        Args:
            factors: The columns that are factors, as of `FactorTable`.
            ignore: Columns that are left out.
            image_size: Rows and columns of images; 0 for their own.

        Raises:
            TableError: If images or columns break a rule.
        """
        images = self.images
        if isinstance(images, Array):
            images = check_images(images)  # before they are scaled
        if images is not None:
            images = load_images(images, image_size)
        table = FactorTable(
            images,
            self.columns,
            **self.options,
            factors=factors,
            ignore=ignore,
        )
        table.notes = (*self.notes, *table.notes)
        return table


@READERS.register(".npz")
def read_npz(path: str | Path) -> TableFile | FactorTable:
    """Returns the content of an `.npz` file."""
    # NumPy leaves a damaged file open that it opened itself.
    with open(path, "rb") as file, np.load(file) as arrays:
        return _make_table(arrays)


def read_embeddings(path: str) -> tuple[TableFile, dict[str, Array]]:
    """Reads the table and the layers of an `.npz` file.

    It has `classes`, or a column [n] for each factor. `images` are optional,
    and every other array [n, ...] is a layer.
    """
    with open(path, "rb") as file, np.load(file) as members:
        arrays = dict(members)
    options: dict[str, Any] = {}
    # Without classes, the name of an option may be the name of a factor.
    if "classes" in arrays:
        options = _read_options(arrays)
    images = arrays.pop("images", None)
    classes = arrays.pop("classes", None)
    columns = {}
    layers = {}
    for name, array in arrays.items():
        if name in options:
            continue
        if array.ndim == 1:
            columns[name] = array
        else:
            layers[name] = array
    if classes is not None:
        return TableFile(images, classes, options), layers
    if not columns:
        rule = "must be given, as classes [n, F] or columns [n]"
        raise TableError("factors", rule, "none")
    return TableFile(images, columns), layers


@READERS.register(".h5")
@READERS.register(".hdf5")
def read_h5(path: str | Path) -> TableFile | FactorTable:
    """Returns the content of an HDF5 file."""
    import h5py

    # Some file systems of clusters have no locks, and data are only read.
    with h5py.File(path, "r", locking=False) as file:
        members = _list_arrays(file)
        if isinstance(file.get("latents"), h5py.Group):
            for name, array in _list_arrays(file["latents"]).items():
                members[f"latents/{name}"] = array
        return _make_table(_Members(members))


class _Members(UserDict[str, Any]):
    """The arrays of an HDF5 file, each read when it is asked for."""

    def __getitem__(self, name: str) -> Array:
        """Reads numbers or texts."""
        import h5py

        member = self.data[name]
        if h5py.check_string_dtype(member.dtype):
            return np.asarray(member.asstr()[()], object)
        if member.dtype.kind not in "buif":
            raise TableError(name, "must be numbers or text", member.dtype)
        if member.nbytes <= MAX_IN_MEMORY:
            return member[()]

        array = allocate(member.shape, member.dtype)
        for start in range(0, len(array), PART):
            rows = slice(start, start + PART)
            array[rows] = member[rows]
            release_memory(array)
        return array


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


def _make_table(
    arrays: Mapping[str, Array],
) -> TableFile | FactorTable:
    """Returns the table of arrays in our layout or a registered one."""
    if not {"images", "classes"} <= arrays.keys():
        for name in LAYOUTS.names():
            read_layout = LAYOUTS.get(name).load()
            table = read_layout(arrays)
            if table is not None:
                return table

    columns, options = _read_columns(arrays)
    if "images" not in arrays or columns is None:
        rule = (
            "must have images, and classes or an array [n] for each factor "
            "(docs/data.md has all layouts)"
        )
        members = ", ".join(sorted(arrays))
        raise TableError("members", rule, members or "none")
    return TableFile(arrays["images"], columns, options)


def _read_columns(arrays: Mapping[str, Array]) -> tuple[Any, dict[str, Any]]:
    """Reads classes or `values` [n, F], or arrays [n] by name, and options."""
    import pandas as pd

    options = _read_options(arrays)
    if "classes" in arrays:
        return arrays["classes"], options

    values = options.pop("values", None)
    if values is not None and values.ndim == 2:
        names = [f"factor_{number}" for number in range(values.shape[1])]
        options.setdefault("names", names)
        return pd.DataFrame(values), options

    columns = {}
    for name in arrays:
        if name in ("images", *OPTIONS):
            continue
        array = arrays[name]
        if array.ndim == 1:
            columns[name] = array
    return columns or None, options


@LAYOUTS.register("dSprites")
def read_dsprites(arrays: Mapping[str, Array]) -> FactorTable | None:
    """Recognizes dSprites, as `.npz` or HDF5, by the names of its members."""
    for latents in ("latents_", "latents/"):
        if {"imgs", f"{latents}classes"} <= arrays.keys():
            columns = describe_published("dSprites")
            if f"{latents}values" in arrays:
                columns["values"] = arrays[f"{latents}values"]
            images = arrays["imgs"]
            classes = arrays[f"{latents}classes"]
            return FactorTable(images, classes, **columns)
    return None


@LAYOUTS.register("3DShapes")
def read_3dshapes(arrays: Mapping[str, Array]) -> FactorTable | None:
    """Recognizes 3DShapes, whose labels are the values of six factors."""
    if not {"images", "labels"} <= arrays.keys():
        return None
    labels = arrays["labels"]
    options = describe_published("3DShapes")
    names = options.pop("names")
    if labels.ndim != 2 or labels.shape[1] != len(names):
        raise TableError("labels", "must be [n, 6]", list(labels.shape))

    columns = dict(zip(names, labels.T, strict=True))
    images = arrays["images"]
    return FactorTable(images, columns, **options)


def _read_options(arrays: Mapping[str, Array]) -> dict[str, Any]:
    """Returns the optional members, as arguments of `FactorTable`."""
    options: dict[str, Any] = {}
    for name in OPTIONS:
        if name not in arrays:
            continue
        option: Any = arrays[name]
        if name in TEXTS:
            if option.dtype.kind not in "SUO" or option.ndim != 1:
                got = f"{option.dtype} {list(option.shape)}"
                raise TableError(name, "must be a list of texts", got)
            option = option.astype(str).tolist()
        if name == "levels":
            option = [text.split(",") if text else None for text in option]
        options[name] = option
    return options


def read_folder(folder: Path) -> TableFile | FactorTable:
    """Reads a folder with one CSV file, or files of a registered format."""
    tables = list_files(folder, *TABLES)
    if len(tables) == 1:
        return _read_csv(folder, tables[0])

    endings = FOLDER_READERS.names()
    if not tables:
        for ending in endings:
            if list_files(folder, ending):
                read = FOLDER_READERS.get(ending).load()
                return read(folder)
    rule = f"must have one .csv file (or files {', '.join(endings)})"
    raise TableError("the folder", rule, f"{len(tables)} .csv files")


def _read_csv(folder: Path, table: Path) -> TableFile:
    """Returns the table of a CSV file (docs/data.md) and its pictures."""
    cells = read_cells(table)
    # A spreadsheet may write rows without any text at its end.
    has_text = (cells != "").any(axis=1)
    frame = cells[has_text]
    num_empty = len(cells) - len(frame)
    notes: tuple[str, ...] = ()
    if num_empty:
        notes = (f"left out: empty rows of {table.name} ({num_empty})",)

    heads = frame.columns.astype(str)
    is_picture = heads == find_picture_column(frame)
    is_index = (heads == "") | heads.str.startswith("Unnamed:")  # of pandas
    is_factor = ~is_picture & ~is_index
    if frame.empty or not is_factor.any() or is_picture.sum() != 1:
        rule = f"must have rows, one {PICTURE_HEADS[0]} and a column per factor"
        got = ", ".join(heads)
        raise TableError(table.name, rule, got[:100])

    (names,) = frame.loc[:, is_picture].to_numpy().T
    pictures = open_files(folder, names.tolist(), table.name)
    columns = frame.loc[:, is_factor]
    columns.attrs[UNTYPED] = True
    return TableFile(pictures, columns, notes=notes)


@FOLDER_READERS.register(".parquet")
@READERS.register(".parquet")
def read_parquet(path: str | Path) -> TableFile:
    """Reads a parquet file, as of Hugging Face, or all files of a folder.

    One column holds files of pictures as bytes, or structs with `bytes`. The
    others are factors; labels have the names that Hugging Face's metadata give.
    """
    import pandas as pd

    files = [Path(path)]
    if files[0].is_dir():
        files = list_files(files[0], ".parquet")
    parts = [pd.read_parquet(file) for file in files]
    frame = pd.concat(parts, ignore_index=True)
    head = _find_picture_bytes(frame)
    if not head:
        rule = "must have rows, and a column of pictures as bytes"
        got = ", ".join(map(str, frame))
        raise TableError(files[0].name, rule, got)

    pictures = _open_picture_bytes(frame.pop(head))
    for label, names in _find_label_names(files[0]).items():
        if label in frame and frame[label].isin(range(len(names))).all():
            categories = pd.Index(names)
            frame[label] = pd.Categorical.from_codes(frame[label], categories)
    return TableFile(pictures, frame)


def _find_picture_bytes(frame: "pd.DataFrame") -> str:
    """Finds the first column of bytes, or of structs with `bytes`."""
    for head in frame:
        for cell in frame[head].dropna().head(1):
            if isinstance(cell, bytes) or (
                isinstance(cell, dict) and "bytes" in cell
            ):
                return str(head)
    return ""


def _open_picture_bytes(cells: "pd.Series") -> Pictures:
    """Returns the pictures of a column of bytes, or of structs with `bytes`."""
    names = [f"row {number}" for number in range(len(cells))]

    def read(number: int) -> Array:
        content = cells[number]
        if isinstance(content, dict):
            content = content["bytes"]
        if not content:
            rule = "must have the bytes of all pictures"
            raise TableError(str(cells.name), rule, f"none in {names[number]}")
        return decode_picture(io.BytesIO(content), names[number])

    return Pictures(names, read)


def _find_label_names(file: Path) -> dict[str, list[str]]:
    """Finds the names of classes that Hugging Face keeps in metadata."""
    from pyarrow import parquet

    schema = parquet.read_schema(file)
    text = (schema.metadata or {}).get(b"huggingface")
    if text is None:
        return {}
    names = {}
    features = json.loads(text)["info"]["features"]
    for column, feature in features.items():
        if isinstance(feature, dict) and "names" in feature:
            names[column] = list(map(str, feature["names"]))
    return names
