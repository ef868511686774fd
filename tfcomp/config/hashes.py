"""Hashes of what the numbers of a run depend on: its code and its data.

A trial whose code has changed is another trial. After an edit that changes no
number, as in a comment, TFCOMP_CODE_VERSION=<old version> keeps earlier trials,
measures and examples.
"""

import functools
import hashlib
import importlib.util
import os
import warnings
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from tfcomp.config.errors import ConfigError
from tfcomp.config.settings import split_names

if TYPE_CHECKING:
    import pandas as pd

OVERRIDE = "TFCOMP_CODE_VERSION"
# The packages that decide the numbers of a run: all that a training imports,
# except `figures`, which only draws them.
_USED = "config statistics storage datasets models metrics training contrib"
DECIDING = tuple(f"tfcomp.{name}" for name in _USED.split())
TFDS = "tfds:"
TABLES = (".csv", ".tsv")
PACKS = (".mat", ".parquet")  # files of a folder that hold images themselves
# Columns with the name of a picture, in small letters; the first one counts.
PICTURE_HEADS = (
    "file",
    "file_name",
    "filename",
    "image",
    "image_id",
    "img",
    "path",
)
SEPARATORS = ",;\t"
SAMPLE = 2**16  # bytes
NUM_SAMPLES = 64


@functools.cache
def compute_code_version(plugins: str = "") -> str:
    """Returns the hash of the code that decides numbers, and of plugins."""
    override = os.environ.get(OVERRIDE)
    if override:
        return override
    return hash_modules([*DECIDING, *split_names(plugins)])


def hash_modules(modules: Iterable[str]) -> str:
    """Returns the SHA-256 of modules and of whole packages with tables."""
    digest = hashlib.sha256()
    for module in modules:
        for name, path in _list_sources(module):
            content = path.read_bytes()
            # With its length, so that no byte can move to the next file.
            digest.update(f"{name} {len(content)}\n".encode())
            digest.update(content)
    return digest.hexdigest()


def _list_sources(module: str) -> Iterator[tuple[str, Path]]:
    """Yields names, equal on all machines, and files of a module."""
    spec = importlib.util.find_spec(module)
    if spec is None or not (spec.origin and spec.has_location):
        return  # it has no source, as `sys`

    origin = Path(spec.origin)
    if not spec.submodule_search_locations:
        yield module, origin
        return
    package = origin.parent
    for path in sorted(package.rglob("*")):
        if path.suffix in (".py", ".toml"):
            name = path.relative_to(package).as_posix()
            yield f"{module}/{name}", path


def hash_data(data: str, data_dir: str = "") -> str:
    """Hashes the content of a file, a folder, or a TFDS dataset.

    The hash covers every file that is read: of a folder its tables and the
    pictures that they name, wherever these lie. Large files are not read as a
    whole: of these it covers size and samples. The index at the end of an
    `.npz` file has a checksum of every array.

    Args:
        data: The value of `--data`: a path, or `tfds:NAME`.
        data_dir: The folder of TFDS datasets.

    Returns:
        16 hexadecimal digits.

    Raises:
        ConfigError: If there is nothing of this name, or it cannot be read.
    """
    if data.startswith(TFDS):
        parts = _read_tfds(data, data_dir)
    elif os.path.isdir(data):
        parts = _read_folder(Path(data))
    else:
        parts = _sample_file(data)

    digest = hashlib.sha256()
    try:
        for part in parts:
            digest.update(part)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        rule = f"must be a file or a folder that can be read ({reason})"
        raise ConfigError("data", rule, data) from error
    return digest.hexdigest()[:16]


def find_tfds_folder(name: str, data_dir: str) -> Path:
    """Finds the newest version of a TFDS dataset.

    Args:
        name: Of the dataset, or `name/config`.
        data_dir: The folder of TFDS datasets; empty for the default.

    Raises:
        FileNotFoundError: If there is no version of it.
    """
    root = find_data_dir(data_dir)
    files: list[Path] = []
    if name and not os.path.isabs(name):
        files += root.glob(f"{name}/*/dataset_info.json")
        files += root.glob(f"{name}/dataset_info.json")
    folders = [file.parent for file in files]
    if not folders:
        raise FileNotFoundError(0, f"no dataset {name!r} in {root}")

    def parse_version(folder: Path) -> list[int]:
        return [int(number) for number in folder.name.split(".")]

    return max(folders, key=parse_version)


def find_data_dir(data_dir: str = "") -> Path:
    """Returns the TFDS data directory: flag, environment, or default."""
    folder = data_dir or os.environ.get("TFDS_DATA_DIR", "")
    if not folder:
        folder = "~/tensorflow_datasets"
    return Path(os.path.expanduser(folder))


def list_files(folder: Path, *endings: str) -> list[Path]:
    """Returns sorted files by ending, without hidden ones (`._a.png`)."""
    files = []
    for path in folder.iterdir():
        is_hidden = path.name.startswith(".")
        if path.suffix.lower() in endings and not is_hidden:
            files.append(path)
    return sorted(files)


def read_cells(table: Path) -> "pd.DataFrame":
    """Reads a table as text; its index has the lines of the file.

    Cells lose spaces at their ends, and heads have `_` for spaces. With
    semicolons between columns, decimal commas become points.

    Raises:
        ValueError, Warning: If it is no table.
    """
    import pandas as pd

    with table.open(encoding="utf-8-sig") as file:
        separator = max(SEPARATORS, key=file.readline().count)

    with warnings.catch_warnings(action="error"):  # of cells that are lost
        frame = pd.read_csv(
            table,
            sep=separator,
            encoding="utf-8-sig",
            dtype=str,
            keep_default_na=False,
            header=None,  # heads that occur twice stay as they are
        )

    frame = frame.fillna("")
    frame = frame.apply(lambda cells: cells.str.strip())
    if separator == ";":
        frame = frame.replace(r"^([+-]?\d*),(\d+)$", r"\1.\2", regex=True)
    heads = frame.iloc[0].str.replace(" ", "_")
    frame = frame.iloc[1:]
    return frame.set_axis(list(heads), axis=1).set_axis(frame.index + 1)


def find_picture_column(frame: "pd.DataFrame") -> str:
    """Returns the name of the column that names pictures; "" without one."""
    columns = {str(name).lower(): str(name) for name in frame}
    for head in PICTURE_HEADS:
        if head in columns:
            return columns[head]
    return ""


def _sample_file(path: str | Path) -> Iterator[bytes]:
    """Yields size and samples of a file; a small file is read as a whole."""
    size = os.path.getsize(path)
    yield str(size).encode()
    last = max(0, size - SAMPLE)
    step = max(SAMPLE, (size - SAMPLE) // (NUM_SAMPLES - 1))
    starts = [*range(0, size, step), last]
    with open(path, "rb") as file:
        for start in starts:
            file.seek(start)
            yield file.read(SAMPLE)


def _read_folder(folder: Path) -> Iterator[bytes]:
    """Yields the content of tables and of their pictures, or of `PACKS`."""
    tables = list_files(folder, *TABLES)
    for table in tables:
        yield table.read_bytes()
        for picture in _list_pictures(table):
            if os.path.exists(picture):  # else the reader names it
                yield from _sample_file(picture)

    if tables:
        return
    for file in list_files(folder, *PACKS):
        yield file.name.encode()
        yield from _sample_file(file)


def _list_pictures(table: Path) -> list[Path]:
    """Returns the pictures that a table names; none if it is damaged."""
    try:
        frame = read_cells(table)
    except (ValueError, Warning):  # the reader says what is wrong
        return []
    names: Iterable[str] = frame.get(find_picture_column(frame), [])
    return [table.parent / name for name in names if name]


def _read_tfds(data: str, data_dir: str) -> Iterator[bytes]:
    """Yields names and samples of all files."""
    name = data.removeprefix(TFDS)
    folder = find_tfds_folder(name, data_dir)
    for file in sorted(folder.iterdir()):
        if file.is_file():
            yield file.name.encode()
            yield from _sample_file(file)
