"""Keeps outputs of a network in the folder of its run.

outputs/epoch_<n>.npz has `factors` [n, F], `images` [n, H, W, C] in 8 bits, and
`errors` [n] of the outputs as they were, relative to the reference;
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
from tfcomp.storage.files import make_folder, write_whole

FOLDER = "outputs"
PREVIEW_FILE = "preview.png"
MAX_BYTES = 2**28  # of a file, unpacked; a run keeps no more in all of them
Outputs = tuple[np.ndarray, np.ndarray]  # images [n, H, W, C], errors [n]


def write_outputs(
    folder: Path,
    epoch: int,
    factors: np.ndarray,
    images: np.ndarray,
    errors: np.ndarray,
) -> None:
    """Writes the outputs after an epoch into the folder of a run."""
    path = make_folder(folder / FOLDER) / f"epoch_{epoch}.npz"
    with write_whole(path) as partial, open(partial, "wb") as file:
        pixels = _to_bytes(images)
        np.savez_compressed(file, factors=factors, images=pixels, errors=errors)


def read_outputs(folder: Path, grid: np.ndarray) -> dict[int, Outputs]:
    """Reads the outputs at the combinations [n, F] of a grid.

    Returns:
        Images and errors by epoch, in order. Files of another grid and damaged
        files are left out, with a note.
    """
    outputs: dict[int, Outputs] = {}
    for path in folder.glob(f"{FOLDER}/epoch_*.npz"):
        try:
            epoch = int(path.stem.removeprefix("epoch_"))
            outputs[epoch] = _read(path, grid)
        except Exception as error:  # damaged files raise errors of many kinds
            print(f"note: {path} is left out: {error}", file=sys.stderr)
    return dict(sorted(outputs.items()))


def _read(path: Path, grid: np.ndarray) -> Outputs:
    with zipfile.ZipFile(path) as archive:
        size = sum(part.file_size for part in archive.infolist())
    if size > MAX_BYTES:
        raise ValueError(f"it unpacks to more than {MAX_BYTES >> 20} MB")

    with np.load(path) as arrays:
        factors = arrays["factors"]
        images = arrays["images"]
        # Earlier versions kept none, and 8 bits cut what is beyond 0 to 1.
        unknown = np.full(len(grid), np.nan)
        errors = np.asarray(arrays.get("errors", unknown), float)
    if not np.array_equal(factors, grid):
        raise ValueError("it has other combinations than the page shows")
    count = len(grid)
    if images.ndim != 4 or len(images) != count or errors.shape != (count,):
        raise ValueError(f"it has images of shape {images.shape}")
    return images.astype(np.float32) / 255, errors


def write_preview(
    folder: Path, titles: Sequence[str], rows: Sequence[np.ndarray]
) -> None:
    """Writes rows of images [n, H, W, C], their first row at the top."""
    strips = []
    for images in rows:
        strips.append(np.concatenate(list(arrange_channels(images)), axis=1))
    info = PngInfo()
    info.add_text("points", json.dumps(list(titles)))
    with write_whole(folder / PREVIEW_FILE) as partial:
        sheet = Image.fromarray(_to_bytes(np.concatenate(strips)))
        sheet.save(partial, "PNG", pnginfo=info)


def read_preview(folder: Path) -> tuple[list[str], np.ndarray] | None:
    """Returns titles [n] and images [2, n, H, W, ...], if there are any."""
    path = folder / PREVIEW_FILE
    try:
        # Other formats start programs, as Ghostscript.
        with Image.open(path, formats=["PNG"]) as file:
            titles = [str(title) for title in json.loads(file.info["points"])]
            sheet = np.asarray(file) / 255
        rows = []
        for strip in np.split(sheet, 2):
            rows.append(np.stack(np.split(strip, len(titles), axis=1)))
        return titles, np.stack(rows)
    except Exception:  # of an earlier version, or damaged, in many ways
        return None


def _to_bytes(images: np.ndarray) -> np.ndarray:
    return np.round(np.nan_to_num(images).clip(0, 1) * 255).astype(np.uint8)
