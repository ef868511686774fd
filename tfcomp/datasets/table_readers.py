"""Factor tables from `.npz`, HDF5 and parquet files, and CSV folders.

docs/data.md has our layout, the arguments of `FactorTable`. dSprites and
3DShapes are recognized by their members. No pickle is ever opened. Plugins
register more formats:

    @READERS.register(".npz")         a file, by its ending, or `tfds:NAME`
    @FOLDER_READERS.register(".mat")  a folder, by the ending of files in it
    def read(path: Path) -> FactorTable: ...

    @LAYOUTS.register("MPI3D")        the arrays of an `.npz` or HDF5 file
    def read(arrays: Arrays) -> FactorTable | None: ...

A layout is None for arrays of another one. A reader may also return a
`TableFile`, whose columns are checked when it is known which are factors.
"""

import json
import zipfile
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy import ndarray as Array

from tfcomp.config.hashes import (
    PICTURE_HEADS,
    TABLES,
    drop_empty_rows,
    find_picture_column,
    list_files,
    read_cells,
)
from tfcomp.config.plugins import Registry
from tfcomp.datasets.factor_table import FactorTable, check_images
from tfcomp.datasets.published import describe_published
from tfcomp.datasets.table_columns import (
    MAX_IN_MEMORY,
    UNTYPED,
    Pictures,
    TableError,
    check_bytes,
    copy_parts,
    decode_picture,
    load_images,
    open_files,
)

if TYPE_CHECKING:
    import pandas as pd

READERS = Registry("data")
FOLDER_READERS = Registry("data")
LAYOUTS = Registry("data")

TEXTS = ("names", "kinds", "levels", "units")
OPTIONS = ("values", "sizes", *TEXTS)
MAX_BYTES = 2**28  # of an array that is not the images; dSprites has 35 MB


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


@dataclass(frozen=True)
class Arrays:
    """The arrays of a file, which are read one by one.

    Attributes:
        names: Their names; in a group of HDF5, `group/name`.
        read: `read(name)` returns an array, `read(name, None)` also one that is
            as large as images are.
    """

    names: Collection[str]
    read: Callable[..., Array]


@READERS.register(".npz")
def read_npz(path: str | Path) -> TableFile | FactorTable:
    """Returns the content of an `.npz` file."""
    return _make_table(_open_npz(path))


def _open_npz(path: str | Path) -> Arrays:
    """Returns the members of an `.npz` file."""
    sizes = {}
    with zipfile.ZipFile(path) as archive:
        for member in archive.infolist():
            name = member.filename.removesuffix(".npy")
            sizes[name] = member.file_size

    def read(name: str, most: int | None = MAX_BYTES) -> Array:
        """Reads a member, of at most `most` bytes."""
        check_bytes(name, sizes[name], most)
        with np.load(path) as arrays:
            return arrays[name]

    return Arrays(list(sizes), read)


def read_embeddings(path: str) -> tuple[TableFile, dict[str, Array]]:
    """Reads the table and the layers of an `.npz` file.

    It has `classes`, or a column [n] for each factor. `images` are optional,
    and every other array [n, ...] is a layer.
    """
    members = _open_npz(path)
    # Without classes, the name of an option may be the name of a factor.
    options = OPTIONS if "classes" in members.names else ()
    arrays = {}
    for name in members.names:
        if name not in options:
            arrays[name] = members.read(name, None)
    images = arrays.pop("images", None)
    classes = arrays.pop("classes", None)
    columns = {}
    layers = {}
    for name, array in arrays.items():
        if array.ndim == 1:
            columns[name] = array
        else:
            layers[name] = array
    if classes is not None:
        return TableFile(images, classes, _read_options(members)), layers
    if not columns:
        rule = "must be given, as classes [n, F] or columns [n]"
        raise TableError("factors", rule, "none")
    return TableFile(images, columns), layers


@READERS.register(".h5")
@READERS.register(".hdf5")
def read_h5(path: str | Path) -> TableFile | FactorTable:
    """Returns the content of an HDF5 file."""
    import h5py

    def read(name: str, most: int | None = MAX_BYTES) -> Array:
        """Reads numbers or texts, of at most `most` bytes."""
        member = members[name]
        is_number = member.dtype.kind in "buif"
        if most is None and is_number and member.nbytes > MAX_IN_MEMORY:
            return copy_parts(member.__getitem__, member)
        check_bytes(name, member.nbytes, most)
        if h5py.check_string_dtype(member.dtype):
            return np.asarray(member.asstr()[()], object)
        if member.dtype.kind not in "buif":
            raise TableError(name, "must be numbers or text", member.dtype)
        return member[()]

    # Some file systems of clusters have no locks, and data are only read.
    with h5py.File(path, "r", locking=False) as file:
        members = _list_arrays(file)
        if isinstance(file.get("latents"), h5py.Group):
            for name, array in _list_arrays(file["latents"]).items():
                members[f"latents/{name}"] = array
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


def _make_table(arrays: Arrays) -> TableFile | FactorTable:
    """Returns the table of arrays in our layout or a registered one."""
    if {"images", "classes"} <= {*arrays.names}:
        options = _read_options(arrays)
        images = arrays.read("images", None)
        return TableFile(images, arrays.read("classes"), options)

    for name in LAYOUTS.names():
        read_layout = LAYOUTS.get(name).load()
        table = read_layout(arrays)
        if table is not None:
            return table

    if "images" in arrays.names:
        table = _read_columns(arrays)
        if table is not None:
            return table
    rule = (
        "must have images, and classes or an array [n] for each factor "
        "(docs/data.md has all layouts)"
    )
    members = ", ".join(sorted(arrays.names))
    raise TableError("members", rule, members or "none")


def _read_columns(arrays: Arrays) -> TableFile | None:
    """Reads factors without classes: `values` [n, F], or arrays [n] by name."""
    import pandas as pd

    options = _read_options(arrays)
    values = options.pop("values", None)
    if values is not None and values.ndim == 2:
        names = [f"factor_{number}" for number in range(values.shape[1])]
        options.setdefault("names", names)
        frame = pd.DataFrame(values)
        return TableFile(arrays.read("images", None), frame, options)

    columns = {}
    for name in arrays.names:
        if name in ("images", *OPTIONS):
            continue
        array = arrays.read(name)
        if array.ndim == 1:
            columns[name] = array
    if not columns:
        return None
    return TableFile(arrays.read("images", None), columns, options)


@LAYOUTS.register("dSprites")
def read_dsprites(arrays: Arrays) -> FactorTable | None:
    """Recognizes dSprites, as `.npz` or HDF5, by the names of its members."""
    for latents in ("latents_", "latents/"):
        if {"imgs", f"{latents}classes"} <= {*arrays.names}:
            columns = describe_published("dSprites")
            if f"{latents}values" in arrays.names:
                columns["values"] = arrays.read(f"{latents}values")
            images = arrays.read("imgs", None)
            classes = arrays.read(f"{latents}classes")
            return FactorTable(images, classes, **columns)
    return None


@LAYOUTS.register("3DShapes")
def read_3dshapes(arrays: Arrays) -> FactorTable | None:
    """Recognizes 3DShapes, whose labels are the values of six factors."""
    if not {"images", "labels"} <= {*arrays.names}:
        return None
    labels = arrays.read("labels")
    options = describe_published("3DShapes")
    names = options.pop("names")
    if labels.ndim != 2 or labels.shape[1] != len(names):
        raise TableError("labels", "must be [n, 6]", list(labels.shape))

    columns = dict(zip(names, labels.T, strict=True))
    images = arrays.read("images", None)
    return FactorTable(images, columns, **options)


def _read_options(arrays: Arrays) -> dict[str, Any]:
    """Returns the optional members, as arguments of `FactorTable`."""
    options: dict[str, Any] = {}
    for name in OPTIONS:
        if name not in arrays.names:
            continue
        option: Any = arrays.read(name)
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
    frame = drop_empty_rows(cells)
    num_empty = len(cells) - len(frame)
    notes: tuple[str, ...] = ()
    if num_empty:
        notes = (f"left out: empty rows of {table.name} ({num_empty})",)

    picture_column = find_picture_column(frame)
    listed = list(map(str, frame))
    heads = []
    for head in listed:
        is_index = head == "" or head.startswith("Unnamed:")  # of pandas
        if head != picture_column and not is_index:
            heads.append(head)
    if frame.empty or not heads or listed.count(picture_column) != 1:
        rule = f"must have rows, one {PICTURE_HEADS[0]} and a column per factor"
        got = ", ".join(listed)
        raise TableError(table.name, rule, got[:100])

    names = frame[picture_column].tolist()
    pictures = open_files(folder, names, table.name)
    is_factor = frame.columns.isin(heads)
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
    path = Path(path)
    if path.is_dir():
        return _read_parquet(list_files(path, ".parquet"))
    return _read_parquet([path])


def _read_parquet(paths: list[Path]) -> TableFile:
    """Reads files with the same columns."""
    try:
        import pyarrow as pa
        from pyarrow import parquet
    except ImportError as error:
        rule = "needs pyarrow to be read (pip install pyarrow)"
        raise TableError(paths[0].name, rule, "no such module") from error

    parts = []
    for path in paths:
        groups = parquet.read_metadata(path)
        for number in range(groups.num_row_groups):
            check_bytes(path.name, groups.row_group(number).total_byte_size)
        parts.append(parquet.read_table(path))
    table = pa.concat_tables(parts, promote_options="default")
    head = _find_picture_bytes(table)
    if not head or not table.num_rows:
        rule = "must have rows, and a column of pictures as bytes"
        got = ", ".join(table.column_names)
        raise TableError(paths[0].name, rule, got)

    frame = table.drop_columns(head).to_pandas()
    for label, names in _find_label_names(table.schema).items():
        _name_labels(frame, label, names)
    return TableFile(_open_picture_bytes(table[head], head), frame)


def _find_picture_bytes(table: Any) -> str:
    """Finds the first column of bytes, or of structs with `bytes`."""
    import pyarrow as pa

    types = pa.types
    for column in table.schema:
        kind = column.type
        has_bytes = types.is_binary(kind) or types.is_large_binary(kind)
        if types.is_struct(kind):
            has_bytes = kind.get_field_index("bytes") >= 0
        if has_bytes:
            return column.name
    return ""


def _open_picture_bytes(column: Any, head: str) -> Pictures:
    """Returns the pictures of a column of bytes, or of structs with `bytes`."""
    import pyarrow as pa
    import pyarrow.compute

    if pa.types.is_struct(column.type):
        column = pa.compute.struct_field(column, "bytes")
    names = [f"row {number}" for number in range(len(column))]

    def read(number: int) -> Array:
        content = column[number].as_py()
        if not content:
            rule = "must have the bytes of all pictures"
            raise TableError(head, rule, f"none in row {number}")
        return decode_picture(content, names[number])

    return Pictures(names, read)


def _find_label_names(schema: Any) -> dict[str, list[str]]:
    """Finds the names of classes that Hugging Face keeps in metadata."""
    text = (schema.metadata or {}).get(b"huggingface")
    if text is None:
        return {}
    names = {}
    features = json.loads(text)["info"]["features"]
    for column, feature in features.items():
        if isinstance(feature, dict) and "names" in feature:
            names[column] = list(map(str, feature["names"]))
    return names


def _name_labels(frame: "pd.DataFrame", label: str, names: list[str]) -> None:
    """Replaces numbers of classes in a column by their names."""
    import pandas as pd

    if label not in frame:
        return
    numbers = frame[label]
    if numbers.isin(range(len(names))).all():
        categories = pd.Index(names)
        codes = numbers.to_numpy(int)
        frame[label] = pd.Categorical.from_codes(codes, categories)
