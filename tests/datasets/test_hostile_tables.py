"""Damaged tables: taken, or refused in one line, soon and in little memory.

A table is a good one in which an array has another type, shape or value, or a
few bytes of the file are others. A process reads all of them, each in a fork
with a limit of time and memory:

    python -m tests.datasets.test_hostile_tables FOLDER NUMBER SEED
"""

import json
import os
import random
import resource
import signal
import subprocess
import sys
import traceback
import warnings
from pathlib import Path

import h5py
import numpy as np
import pytest
import scipy.io

from tests.contrib.test_published_readers import write_norb
from tests.datasets.own_tables import CLASSES, IMAGES, NAMES, load, write_folder
from tfcomp.config.errors import ConfigError, RunError

ROOT, MODULE = Path(__file__).parents[2], "tests.datasets.test_hostile_tables"
SECONDS, BYTES = 10, 4 << 30
TAKEN, REFUSED, CRASHED = 0, 2, 1
KINDS = ("npz", "compressed", "h5", "folder", "cars", "norb")
TYPES = ("i1", "u8", "f2", "f8", "c16", "?", "S3", "U3", "M8[s]")
ODD = (np.nan, np.inf, -1, 1e30, 2**62, 0.5, 10**6)
# What Python says of a mistake in our own code.
SLIPS = ("no attribute", "unsized", "ufunc", "iterable", "unhash", "index out")


@pytest.mark.parametrize(
    ("number", "seed"),
    [(40, 0), pytest.param(600, 4747, marks=pytest.mark.slow)],
)
def test_every_table_is_answered(
    number: int, seed: int, tmp_path: Path
) -> None:
    arguments = [str(tmp_path), str(number), str(seed)]
    command = [sys.executable, "-m", MODULE, *arguments]
    found = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert found.returncode == 0, found.stderr
    answers = json.loads(found.stdout)
    statuses = [answer["status"] for answer in answers]
    assert len(answers) == number
    # Neither is everything refused, nor is nothing wrong with the tables.
    assert statuses.count(0) > number / 20 and statuses.count(2) > number / 3
    assert [answer for answer in answers if not is_right(**answer)] == []


def is_right(table: str, status: int, said: str) -> bool:
    if status == 0:
        return not said
    is_one_line = said.startswith("--data") and said.count("\n") == 1
    is_ours = any(slip in said for slip in SLIPS)
    is_shown = said[:-1].isprintable()
    return status == 2 and is_one_line and is_shown and not is_ours


def write_table(folder: Path, rng: random.Random) -> Path:
    """A table with one or two kinds of damage."""
    kind = rng.choice(KINDS)
    if kind in ("folder", "cars", "norb"):
        folder.mkdir(parents=True)
        if kind == "cars":
            images = np.resize(IMAGES, (4, 4, 3, 2, 3))
            for name in "ab":
                options = {"do_compression": name == "a"}
                scipy.io.savemat(
                    f"{folder}/{name}.mat", {"im": images}, **options
                )
        elif kind == "norb":
            write_norb(folder, "training", [4])
        else:
            write_folder(folder, rng.random() < 0.5)
        damage(rng.choice(sorted(folder.iterdir())), rng)
        return folder
    arrays = {"images": IMAGES, "classes": CLASSES, "names": np.array(NAMES)}
    arrays |= {"sizes": np.array([3, 2, 4]), "values": CLASSES.astype(float)}
    arrays |= {"kinds": np.array(["ordered", "ordered", "periodic:4"])}
    arrays |= {"levels": np.array(["a,b,c", "", ""]), "units": np.array(NAMES)}
    for name in rng.sample(sorted(arrays), rng.choice([0, 1, 1, 1, 2])):
        arrays[name] = change(arrays[name], rng)
    path = folder.with_suffix(".h5" if kind == "h5" else ".npz")
    if kind == "h5":
        with h5py.File(path, "w") as file:
            for name, array in arrays.items():
                if array.dtype.kind == "M":  # which HDF5 has not
                    array = array.astype("i8")
                is_text = array.dtype.kind == "U"
                file[name] = np.char.encode(array) if is_text else array
    else:
        save = np.savez if kind == "npz" else np.savez_compressed
        save(path, **arrays)
    if rng.random() < 0.3:
        damage(path, rng)
    return path


def change(array: np.ndarray, rng: random.Random) -> np.ndarray:
    """The array with another type, shape or value."""
    is_third = np.arange(array.size).reshape(array.shape) == 3
    changes = [
        lambda: array.astype(rng.choice(TYPES)),
        lambda: array[: rng.randrange(len(array))],
        lambda: array.reshape(-1),
        lambda: array[None],
        lambda: array[..., None],
        lambda: array.flat[0],
        lambda: np.repeat(array, rng.choice([0, 2, 1000]), 0),
        lambda: np.array(rng.choice(["", "=1", "\x1b[2J", "a\u202e", "a,b"])),
        lambda: np.full(array.shape, rng.choice(["", "é", "x" * 500])),
        lambda: np.where(is_third, rng.choice(ODD), array),
    ]
    try:
        return np.asarray(rng.choice(changes)())
    except (ValueError, TypeError):  # text that is no number
        return np.zeros(3)


def damage(path: Path, rng: random.Random) -> None:
    """Other bytes in the file, or fewer."""
    content = bytearray(path.read_bytes())
    for _ in range(rng.choice([1, 3, 30])):
        content[rng.randrange(len(content))] = rng.randrange(256)
    if rng.random() < 0.3:
        del content[rng.randrange(len(content)) :]
    path.write_bytes(content)


def answer(path: Path) -> dict[str, object]:
    """Reads a table in a process of its own."""
    output = path.parent / "answer"
    output.write_text("")
    process = os.fork()
    if not process:
        os.dup2(os.open(output, os.O_WRONLY), 2)
        try:
            status = read(path)
        except BaseException:
            traceback.print_exc()
            status = CRASHED
        sys.stderr.flush()
        os._exit(status)
    code = os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
    said = output.read_text("utf-8", "replace")
    return {"table": path.name, "status": code, "said": said}


def read(path: Path) -> int:
    """The child: looks at all of a table, as a training does."""
    signal.alarm(SECONDS)
    resource.setrlimit(resource.RLIMIT_AS, (BYTES, BYTES))
    warnings.simplefilter("error")  # one line, and nothing above it
    try:
        dataset = load(path)
        dataset.render(dataset.splits.train[:3])
        return TAKEN
    except (ConfigError, RunError) as error:
        print(error, file=sys.stderr)
        return REFUSED


if __name__ == "__main__":
    rng = random.Random(int(sys.argv[3]))
    paths = [
        write_table(Path(sys.argv[1], str(i)), rng)
        for i in range(int(sys.argv[2]))
    ]
    json.dump([answer(path) for path in paths], sys.stdout)
