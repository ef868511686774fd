"""Some held-out images of a run above its outputs, pixel by pixel.

Trials of a sweep write no pictures; the page of the sweep shows these.
"""

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from PIL import Image
from PIL.PngImagePlugin import PngInfo

from tfcomp.figures.image_rows import arrange_channels
from tfcomp.storage.files import check_file, write_whole

PREVIEW_FILE = "preview.png"


def write_preview(
    folder: Path, titles: Sequence[str], rows: Sequence[np.ndarray]
) -> None:
    """Writes rows of images [n, H, W, C], their first row at the top."""
    sheet = []
    for images in rows:
        shown = np.nan_to_num(arrange_channels(images)).clip(0, 1)
        sheet.append(np.concatenate([*shown], axis=1))
    pixels = np.round(255 * np.concatenate(sheet)).astype(np.uint8)
    info = PngInfo()
    info.add_text("points", json.dumps(list(titles)))
    with write_whole(folder / PREVIEW_FILE) as partial:
        Image.fromarray(pixels).save(partial, "PNG", pnginfo=info)


def read_preview(folder: Path) -> tuple[list[str], np.ndarray] | None:
    """Returns titles [n] and images [2, n, H, W, ...], if there are any."""
    path = folder / PREVIEW_FILE
    try:
        check_file(path)
        with Image.open(path) as file:
            titles = json.loads(file.info["points"])
            pixels = np.asarray(file) / 255
    except (OSError, ValueError, KeyError):  # of an earlier version, or damaged
        return None
    size = len(titles)
    rows = np.split(pixels, 2)
    return titles, np.stack([np.stack(np.split(r, size, axis=1)) for r in rows])
