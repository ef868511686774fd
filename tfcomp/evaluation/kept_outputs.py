"""Keeps outputs of a network during its training, in the folder of the run.

outputs/epoch_<n>.npz has `factors` [n, F] and `images` [n, H, W, C] in 8 bits,
for the slider over epochs in the explorer of a report.
"""

import sys
import zipfile
from pathlib import Path

import numpy as np

from tfcomp.evaluation.loading import LoadedRun
from tfcomp.storage.files import check_file, make_subfolder, write_whole

FOLDER = "outputs"
MAX_BYTES = 2**28  # of a file, unpacked; a run keeps no more in all of them


def list_kept_epochs(epochs: int, count: int) -> list[int]:
    """Returns the epochs after which outputs are kept.

    With the trained network there are `count` outputs, evenly spread.
    """
    kept = {round(k * epochs / count) for k in range(1, count)}
    return sorted(kept - {0, epochs})


def write_outputs(
    folder: Path, epoch: int, factors: np.ndarray, images: np.ndarray
) -> None:
    """Writes the outputs after an epoch into the folder of a run."""
    pixels = np.round(np.nan_to_num(images).clip(0, 1) * 255).astype(np.uint8)
    path = make_subfolder(folder, FOLDER) / f"epoch_{epoch}.npz"
    with write_whole(path) as partial, open(partial, "wb") as file:
        np.savez_compressed(file, factors=factors, images=pixels)


def read_outputs(run: LoadedRun, grid: np.ndarray) -> dict[int, np.ndarray]:
    """Returns images [n, H, W, C] by epoch, rising.

    A note on standard error names the files that are skipped: damaged ones,
    and those with other points than the grid [n, F].
    """
    images: dict[int, np.ndarray] = {}
    for path in run.path.glob(f"{FOLDER}/epoch_*.npz") if run.path else ():
        try:
            epoch = int(path.stem.removeprefix("epoch_"))
            images[epoch] = _read_images(path, grid)
        except Exception as error:  # damaged files raise errors of many kinds
            print(f"note: {path} is left out: {error}", file=sys.stderr)
    return dict(sorted(images.items()))


def _read_images(path: Path, grid: np.ndarray) -> np.ndarray:
    check_file(path)  # a pipe would never end
    with zipfile.ZipFile(path) as archive:
        if sum(part.file_size for part in archive.infolist()) > MAX_BYTES:
            raise ValueError(f"it unpacks to more than {MAX_BYTES >> 20} MB")
    with np.load(path) as kept:
        factors, images = kept["factors"], kept["images"]
    if not np.array_equal(factors, grid):
        raise ValueError("it has other combinations than the page shows")
    if images.ndim != 4 or len(images) != len(grid):
        raise ValueError(f"it has images of shape {images.shape}")
    return images.astype(np.float32) / 255
