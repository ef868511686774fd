"""A small table of images, as files of one's own."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import PIL.Image

import tfcomp
from tfcomp.config.run_flags import parse_config
from tfcomp.datasets import Dataset, Factor, FactorSpace, make_dataset

SIZES = (3, 2, 4)
CLASSES = np.argwhere(np.ones(SIZES))
IMAGES = np.arange(24 * 5 * 6, dtype=np.uint8).reshape(24, 5, 6)
NAMES = ["shape", "size", "x"]
KINDS = ["categorical", "ordered", "periodic"]
PIXELS = np.random.default_rng(0).integers(0, 256, (8, 6, 5), np.uint8)


def make_data(line: str, *flags: str) -> Dataset:
    """Makes the dataset of a command line, as of `smoke --num_train=4`."""
    config = parse_config([*line.split(), *flags])
    return make_dataset(config)


def load(path: str | Path, *flags: str) -> Dataset:
    """The dataset of a file, whose images are checked."""
    line = "--dataset=table --region=none"
    dataset = make_data(line, f"--data={path}", *flags)
    dataset.prepare()
    return dataset


def write_own(path: Path, compressed: bool = False, **changes: Any) -> Path:
    """Writes an `.npz` or `.h5` file; a member that is None is left out."""
    members = {
        "images": IMAGES,
        "classes": CLASSES,
        "names": NAMES,
    }
    members |= changes
    for name in changes:
        if members[name] is None:
            del members[name]

    if path.suffix == ".h5":
        with h5py.File(path, "w") as file:
            for name, value in members.items():
                file[name] = value
    elif compressed:
        np.savez_compressed(path, **members)
    else:
        np.savez(path, **members)
    return path


def save_pictures(
    folder: Path,
    images: Iterable[np.ndarray],
    ending: str = "png",
    **options: Any,
) -> list[str]:
    """Saves pictures `0.png`, `1.png` ...; returns their names."""
    names = []
    for number, pixels in enumerate(images):
        name = f"{number}.{ending}"
        PIL.Image.fromarray(pixels).save(folder / name, **options)
        names.append(name)
    return names


def write_folder(folder: Path, rows: Sequence[str], head: str) -> Path:
    """Writes eight pictures and a table with these rows."""
    save_pictures(folder, PIXELS)
    text = "\n".join([head, *rows])
    (folder / "a.csv").write_text(text, "utf-8")
    return folder


def make_named(name: str, *names: str) -> Factor:
    """Makes a categorical factor with these values."""
    size = len(names)
    return Factor(
        name,
        size,
        0.0,
        size - 1.0,
        categorical=True,
        names=names,
    )


def list_rows(table: np.ndarray) -> set[tuple]:
    """The rows of a table as tuples, in no order."""
    return {tuple(row) for row in table.tolist()}


def make_space(**sizes: int) -> FactorSpace:
    """Makes ordered factors with the values 0, 1, 2 ..."""
    factors = []
    for name, size in sizes.items():
        high = float(max(size - 1, 1))
        factors.append(Factor(name, size, 0.0, high))
    return FactorSpace(tuple(factors))


def make_table(classes: np.ndarray, **options: Any) -> tfcomp.FactorTable:
    """Makes a table of random images with one of each row of classes."""
    rng = np.random.default_rng(0)
    shape = (len(classes), 4, 4)
    images = rng.integers(0, 256, shape, np.uint8)
    return tfcomp.FactorTable(images, classes, **options)
