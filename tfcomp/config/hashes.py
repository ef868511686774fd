"""Hashes of what the numbers of a run depend on: its code and its data.

A trial whose code has changed is another trial. After an edit that changes no
number, as in a comment, TFCOMP_CODE_VERSION=<old version> keeps earlier trials,
measures and examples.
"""

import functools
import hashlib
import importlib.util
import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from tfcomp.config.errors import ConfigError
from tfcomp.config.settings import split_names

OVERRIDE = "TFCOMP_CODE_VERSION"
# The packages that decide the numbers of a run: all that a training imports,
# except `figures`, which only draws them.
_USED = "config statistics storage datasets models metrics training contrib"
DECIDING = tuple(f"tfcomp.{name}" for name in _USED.split())
TFDS = "tfds:"
TABLES = (".csv", ".tsv")
SAMPLE = 2**16  # bytes
NUM_SAMPLES = 64


@functools.cache
def compute_code_version(plugins: str = "") -> str:
    """Returns the hash of the code that decides numbers, and of plugins."""
    override = os.environ.get(OVERRIDE)
    return override or hash_modules([*DECIDING, *split_names(plugins)])


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
    for path in sorted(origin.parent.rglob("*")):
        if path.suffix in (".py", ".toml"):
            yield f"{module}/{path.relative_to(origin.parent).as_posix()}", path


def hash_data(
    data: str, data_dir: str = "", *, names_only: bool = False
) -> str:
    """Hashes the content of a file, a folder, or a TFDS dataset.

    Of a folder it covers all files at any depth but for hidden ones. Large
    files are not read as a whole: of these it covers size and samples. The
    index at the end of an `.npz` file has a checksum of every array.

    Args:
        data: The value of `--data`: a path, or `tfds:NAME`.
        data_dir: The folder of TFDS datasets.
        names_only: Leaves out the content of pictures, as tfcomp 0.4 did,
            whose runs have recorded this hash.

    Returns:
        16 hexadecimal digits.

    Raises:
        ConfigError: If there is nothing of this name, or it cannot be read.
    """
    digest = hashlib.sha256()
    try:
        for part in _read_parts(data, data_dir, names_only):
            digest.update(part)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        rule = f"must be a file or a folder that can be read ({reason})"
        raise ConfigError("data", rule, data) from error
    return digest.hexdigest()[:16]


def _read_parts(data: str, data_dir: str, names_only: bool) -> Iterator[bytes]:
    """Yields what `hash_data` hashes."""
    path = Path(data)
    if data.startswith(TFDS):
        path = find_prepared(data.removeprefix(TFDS), data_dir)
        if names_only:
            yield (path / "dataset_info.json").read_bytes()
            return
    if not path.is_dir():
        yield from _sample_file(path)
        return

    for file in _list_visible(path):
        yield f"{file.relative_to(path)}\0{file.stat().st_size}\0".encode()
        if file.suffix.lower() in TABLES:
            yield file.read_bytes()
        elif not names_only:
            yield from _sample_file(file)


def _list_visible(path: Path) -> Iterator[Path]:
    """Yields all files without those of the system, such as `.DS_Store`."""
    for folder, below, names in os.walk(path):
        below.sort()
        for name in sorted(names):
            if not name.startswith("."):
                yield Path(folder, name)


def _sample_file(path: Path) -> Iterator[bytes]:
    """Yields size and samples of a file; a small file is read as a whole."""
    size = path.stat().st_size
    yield str(size).encode()
    step = max(SAMPLE, (size - SAMPLE) // (NUM_SAMPLES - 1))
    with path.open("rb") as file:
        for start in [*range(0, size, step), max(0, size - SAMPLE)]:
            file.seek(start)
            yield file.read(SAMPLE)


def find_prepared(name: str, data_dir: str) -> Path:
    """Returns the newest version of a TFDS dataset (or of `name/config`).

    Args:
        name: The name of the dataset.
        data_dir: The folder of TFDS datasets; empty for the default.

    Raises:
        FileNotFoundError: There is none.
    """
    root = find_data_dir(data_dir)
    folders: list[Path] = []
    if name and not os.path.isabs(name):
        for pattern in ("*/dataset_info.json", "dataset_info.json"):
            files = root.glob(f"{name}/{pattern}")
            folders += [file.parent for file in files]
    if not folders:
        raise FileNotFoundError(0, f"no dataset {name!r} in {root}")

    def parse_version(folder: Path) -> list[int]:
        return [int(number) for number in folder.name.split(".")]

    return max(folders, key=parse_version)


def find_data_dir(data_dir: str = "") -> Path:
    """Returns the TFDS data directory: flag, environment, or default."""
    folder = data_dir or os.environ.get("TFDS_DATA_DIR", "")
    return Path(os.path.expanduser(folder or "~/tensorflow_datasets"))
