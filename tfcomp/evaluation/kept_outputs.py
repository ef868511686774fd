"""Keeps outputs of a network in the folder of its run.

outputs/epoch_<n>.npz has `factors` [n, F] and `images` [n, H, W, C] in 8 bits;
preview.png has held-out images above the last outputs, for pages of sweeps.
"""

import json
import sys
import zipfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from PIL import Image
from PIL.PngImagePlugin import PngInfo

from tfcomp.figures.exhibits import arrange_channels
from tfcomp.storage.files import check_file, make_subfolder, write_whole

FOLDER, PREVIEW_FILE = "outputs", "preview.png"
MAX_BYTES = 2**28  # of a file, unpacked; a run keeps no more in all of them


def write_outputs(
    folder: Path, epoch: int, factors: np.ndarray, images: np.ndarray
) -> None:
    """Writes the outputs after an epoch into the folder of a run."""
    path = make_subfolder(folder, FOLDER) / f"epoch_{epoch}.npz"
    with write_whole(path) as partial, open(partial, "wb") as file:
        np.savez_compressed(file, factors=factors, images=_to_bytes(images))


def read_outputs(folder: Path, grid: np.ndarray) -> dict[int, np.ndarray]:
    """Returns images [n, H, W, C] by epoch; notes files that it skips."""
    images: dict[int, np.ndarray] = {}
    for path in folder.glob(f"{FOLDER}/epoch_*.npz"):
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


def write_preview(
    folder: Path, titles: Sequence[str], rows: Sequence[np.ndarray]
) -> None:
    """Writes rows of images [n, H, W, C], their first row at the top."""
    sheet = [np.concatenate([*arrange_channels(row)], axis=1) for row in rows]
    info = PngInfo()
    info.add_text("points", json.dumps(list(titles)))
    with write_whole(folder / PREVIEW_FILE) as partial:
        image = Image.fromarray(_to_bytes(np.concatenate(sheet)))
        image.save(partial, "PNG", pnginfo=info)


def read_preview(folder: Path) -> tuple[list[str], np.ndarray] | None:
    """Returns titles [n] and images [2, n, H, W, ...], if there are any."""
    path = folder / PREVIEW_FILE
    try:
        check_file(path)
        # Other formats start programs, as Ghostscript.
        with Image.open(path, formats=["PNG"]) as file:
            titles = [*map(str, json.loads(file.info["points"]))]
            rows = np.split(np.asarray(file) / 255, 2)
        parts = [np.split(row, len(titles), axis=1) for row in rows]
        return titles, np.stack([*map(np.stack, parts)])
    except Exception:  # of an earlier version, or damaged, in many ways
        return None


def _to_bytes(images: np.ndarray) -> np.ndarray:
    return np.round(np.nan_to_num(images).clip(0, 1) * 255).astype(np.uint8)
