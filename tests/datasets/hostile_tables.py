"""Answers to damaged tables, as JSON.

    python tests/datasets/hostile_tables.py FOLDER NUMBER SEED

A table is a good one in which an array has another type, shape or value, or a
few bytes of the file are others. Each is read in a forked process with a limit
of time and memory. It is right to take it, and to refuse it in one line.
"""

import json
import os
import random
import resource
import signal
import sys
import traceback
import warnings
from pathlib import Path

ROOT = Path(__file__).parents[2]
SECONDS, BYTES = 10, 4 << 30
TAKEN, REFUSED, CRASHED = 0, 2, 1
KINDS = ("npz", "compressed", "h5", "folder", "colors", "cars", "norb")


def write_files(kind: str, folder: Path) -> None:
    """A good folder of this kind."""
    import numpy as np
    import scipy.io

    from tests.datasets.own_tables import IMAGES, write_folder
    from tests.datasets.test_mat_folders import write_norb

    folder.mkdir(parents=True)
    if kind == "cars":
        for name in "ab":
            images = np.resize(IMAGES, (4, 4, 3, 2, 3))
            file, is_packed = folder / f"{name}.mat", name == "a"
            scipy.io.savemat(file, {"im": images}, do_compression=is_packed)
    elif kind == "norb":
        write_norb(folder, "training", [4])
    else:
        write_folder(folder, kind == "colors")


def make_table(folder: Path, rng: random.Random) -> Path:
    """A table with one or two kinds of damage."""
    import h5py
    import numpy as np

    from tests.datasets.own_tables import CLASSES, IMAGES, NAMES

    kind = rng.choice(KINDS)
    if kind not in ("npz", "compressed", "h5"):
        write_files(kind, folder)
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
                text = array.dtype.kind == "U"
                is_time = array.dtype.kind == "M"  # which HDF5 has not
                array = array.astype("i8") if is_time else array
                file[name] = np.char.encode(array) if text else array
    else:
        save = np.savez if kind == "npz" else np.savez_compressed
        save(path, **arrays)
    if rng.random() < 0.3:
        damage(path, rng)
    return path


def change(array, rng: random.Random):
    """The array with another type, shape or value."""
    import numpy as np

    types = ["i1", "u8", "f2", "f8", "c16", "?", "S3", "U3", "M8[s]"]
    odd = [np.nan, np.inf, -1, 1e30, 2**62, 0.5, 10**6]
    whole = array.dtype.kind in "US"
    changes = [
        lambda: array.astype(rng.choice(types)),
        lambda: array[: rng.randrange(len(array))],
        lambda: array.reshape(-1),
        lambda: array[None],
        lambda: array[..., None],
        lambda: array[()] if not array.ndim else array.flat[0],
        lambda: np.repeat(array, rng.choice([0, 2, 1000]), 0),
        lambda: np.array(rng.choice(["", "=1", "\x1b[2J", "a\u202e", "a,b"])),
        lambda: (
            np.full(array.shape, rng.choice(["", "é", "x" * 500]))
            if whole
            else np.where(
                np.arange(array.size).reshape(array.shape) == 3,
                rng.choice(odd),
                array,
            )
        ),
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
    from tests.datasets.own_tables import load
    from tfcomp.config.errors import ConfigError, RunError

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


def main() -> None:
    """Answers all tables."""
    sys.path.insert(0, str(ROOT))
    rng = random.Random(int(sys.argv[3]))
    folder = Path(sys.argv[1])
    tables = [make_table(folder / str(i), rng) for i in range(int(sys.argv[2]))]
    json.dump([answer(table) for table in tables], sys.stdout)


if __name__ == "__main__":
    main()
