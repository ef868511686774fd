"""A hash of the content of `--data`, so that runs know their data.

Large files are not read as a whole: the hash covers their size and samples. The
index at the end of an `.npz` file has a checksum of every array.
"""

import hashlib
import os
import stat
from collections.abc import Iterator
from pathlib import Path

from tfcomp.config.errors import ConfigError

TFDS = "tfds:"
SAMPLE = 2**16  # bytes
NUM_SAMPLES = 64


def hash_data(data: str, data_dir: str = "") -> str:
    """Returns the hash of a file, a folder, or a TFDS dataset (`tfds:NAME`)."""
    digest = hashlib.sha256()
    try:
        if data.startswith(TFDS):
            path = find_prepared(data.removeprefix(TFDS), data_dir)
            for file in path.iterdir():
                _check_regular(file)
            digest.update((path / "dataset_info.json").read_bytes())
        else:
            read = _describe_folder if os.path.isdir(data) else _sample_file
            for part in read(data):
                digest.update(part)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        rule = f"must be a file or a folder that can be read ({reason})"
        raise ConfigError("data", rule, data) from error
    return digest.hexdigest()[:16]


def find_prepared(name: str, data_dir: str) -> Path:
    """Returns the newest version of a TFDS dataset (or of `name/config`).

    Raises a FileNotFoundError if there is none.
    """
    root = find_data_dir(data_dir)
    versions: list[Path] = []
    if name and not os.path.isabs(name):
        versions += root.glob(f"{name}/*/dataset_info.json")
        versions += root.glob(f"{name}/dataset_info.json")
    if not versions:
        raise FileNotFoundError(0, f"no dataset {name!r} in {root}")
    folders = [path.parent for path in versions]
    return max(folders, key=lambda p: [int(n) for n in p.name.split(".")])


def find_data_dir(data_dir: str = "") -> Path:
    """Returns the TFDS data directory: flag, environment, or default."""
    folder = data_dir or os.environ.get("TFDS_DATA_DIR", "")
    return Path(os.path.expanduser(folder or "~/tensorflow_datasets"))


def _check_regular(path: str | Path) -> None:
    """Refuses pipes and devices, which may never end."""
    mode = os.stat(path).st_mode
    if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):
        raise ValueError(f"{path} is a pipe or a device")


def _sample_file(path: str) -> Iterator[bytes]:
    _check_regular(path)
    size = os.path.getsize(path)
    yield str(size).encode()
    step = max(SAMPLE, (size - SAMPLE) // (NUM_SAMPLES - 1))
    with open(path, "rb") as file:
        for start in [*range(0, size, step), max(0, size - SAMPLE)]:
            file.seek(start)
            yield file.read(SAMPLE)


def _describe_folder(path: str) -> Iterator[bytes]:
    """Yields names and sizes of all files, and the content of tables."""
    for folder, below, files in os.walk(path):
        below.sort()
        # Skip hidden files of the system, such as `.DS_Store`.
        for name in sorted(n for n in files if not n.startswith(".")):
            file = Path(folder, name)
            _check_regular(file)
            relative = file.relative_to(path)
            yield f"{relative}\0{file.stat().st_size}\0".encode()
            if file.suffix.lower() in (".csv", ".tsv"):
                yield file.read_bytes()
