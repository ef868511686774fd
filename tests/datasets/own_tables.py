"""A small table of images, as files of one's own."""

from pathlib import Path
from typing import Any

import numpy as np
import PIL.Image

from tfcomp.config.run_flags import parse_config
from tfcomp.datasets import Dataset, make_dataset

SIZES = (3, 2, 4)
CLASSES = np.stack(np.unravel_index(np.arange(24), SIZES), axis=1)
IMAGES = np.arange(24 * 5 * 6, dtype=np.uint8).reshape(24, 5, 6)
NAMES = ["shape", "size", "x"]
KINDS = ["categorical", "ordered", "periodic"]


def load(path: str | Path, *flags: str) -> Dataset:
    config = parse_config(
        ["--dataset=table", f"--data={path}", "--region=none", *flags]
    )
    dataset = make_dataset(config)
    dataset.prepare()
    return dataset


def write_own(path: Path, compressed: bool = False, **others: Any) -> Path:
    save = np.savez_compressed if compressed else np.savez
    members = {"images": IMAGES, "classes": CLASSES, "names": NAMES} | others
    save(path, **{k: v for k, v in members.items() if v is not None})
    return path


def write_folder(folder: Path, color: bool = False) -> list[str]:
    rows = ["file,shape,angle:periodic"]
    for number, row in enumerate(CLASSES[:8]):
        name, pixels = f"{number}.png", IMAGES[number]
        image = np.stack([pixels] * 3, axis=-1) if color else pixels
        PIL.Image.fromarray(image).save(folder / name)
        rows.append(f"{name},{'ab'[row[1]]},{row[2] * 90}")
    (folder / "list.csv").write_text("\n".join(rows))
    return rows
