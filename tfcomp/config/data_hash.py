"""A short name for the content of `--data`, so that runs know their data.

Files of many gigabytes must not be read twice before the first step: sizes and
samples tell apart what is likely to be confused. The index at the end of an
`.npz` alone has a checksum of every array.
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
    """The hash of a file, of a folder, or of a TFDS dataset (`tfds:NAME`).

    Raises:
        ConfigError: If it is not there or cannot be read.
    """
    digest = hashlib.sha256()
    try:
        if data.startswith(TFDS):
            path = find_prepared(data.removeprefix(TFDS), data_dir)
            for file in path.iterdir():
                _check_regular(file)
            digest.update((path / "dataset_info.json").read_bytes())
        else:
            is_folder = os.path.isdir(data)
            read_parts = _describe_folder if is_folder else _sample_file
            for part in read_parts(data):
                digest.update(part)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        rule = f"must be a file or a folder that can be read ({reason})"
        raise ConfigError("data", rule, data) from error
    return digest.hexdigest()[:16]


def find_prepared(name: str, data_dir: str) -> Path:
    """The folder of the newest version of a TFDS dataset (or `name/config`).

    Raises:
        FileNotFoundError: If there is none.
    """
    root = find_data_dir(data_dir)
    if not name or os.path.isabs(name):
        raise FileNotFoundError(0, f"no dataset {name!r} in {root}")
    found = [path.parent for path in root.glob(f"{name}/*/dataset_info.json")]
    found += [path.parent for path in root.glob(f"{name}/dataset_info.json")]
    if not found:
        raise FileNotFoundError(0, f"no dataset {name} in {root}")
    return max(found, key=lambda path: [int(n) for n in path.name.split(".")])


def find_data_dir(data_dir: str = "") -> Path:
    """The TFDS data directory of a run: flag, environment, TFDS default."""
    chosen = data_dir or os.environ.get("TFDS_DATA_DIR", "")
    return Path(os.path.expanduser(chosen or "~/tensorflow_datasets"))


def _check_regular(path: str | Path) -> None:
    """Refuses what could be read for ever, as a pipe or a device."""
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
    """Names and sizes of all files, and the content of tables."""
    for folder, below, files in os.walk(path):
        below.sort()
        # Hidden files are of the system, such as `._a.png` and `.DS_Store`.
        for name in sorted(n for n in files if not n.startswith(".")):
            file = Path(folder, name)
            _check_regular(file)
            relative = file.relative_to(path)
            yield f"{relative}\0{file.stat().st_size}\0".encode()
            if file.suffix.lower() in (".csv", ".tsv"):
                yield file.read_bytes()
