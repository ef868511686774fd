"""What a network drew while it was trained, in the folder of its run.

outputs/epoch_<n>.npz has `factors` [n, F] and `images` [n, H, W, C] in 8 bits,
for the slider over epochs in the explorer of a report.
"""

import sys
import zipfile
from pathlib import Path

import numpy as np

from tfcomp.evaluation.loading import LoadedRun
from tfcomp.storage.files import write_whole

FOLDER = "outputs"


def list_kept_epochs(epochs: int, count: int) -> list[int]:
    """After which epochs outputs are kept, so that with the trained network
    there are `count` times, evenly spread."""
    found = {round(k * epochs / count) for k in range(1, count)}
    return sorted(found - {0, epochs})


def write_outputs(
    folder: Path, epoch: int, factors: np.ndarray, images: np.ndarray
) -> None:
    """Keeps what was drawn after an epoch, in the folder of a run."""
    pixels = np.round(np.nan_to_num(images).clip(0, 1) * 255).astype(np.uint8)
    path = folder / FOLDER / f"epoch_{epoch}.npz"
    path.parent.mkdir(exist_ok=True)
    with write_whole(path) as partial, open(partial, "wb") as file:
        np.savez_compressed(file, factors=factors, images=pixels)


def read_outputs(run: LoadedRun, grid: np.ndarray) -> dict[int, np.ndarray]:
    """Images [n, H, W, C] by epoch, rising; those of other points than the
    grid [n, F], and damaged files, are left out, which is said."""
    if run.path is None:
        return {}
    found: dict[int, np.ndarray] = {}
    for path in run.path.glob(f"{FOLDER}/epoch_*.npz"):
        try:
            with np.load(path) as kept:
                factors, images = kept["factors"], kept["images"]
            if not np.array_equal(factors, grid):
                rule = "it has other combinations than the page shows"
                raise ValueError(rule)
            epoch = int(path.stem.removeprefix("epoch_"))
            found[epoch] = images.astype(np.float32) / 255
        except (OSError, ValueError, KeyError, zipfile.BadZipFile) as error:
            print(f"note: {path} is left out: {error}", file=sys.stderr)
    return dict(sorted(found.items()))
