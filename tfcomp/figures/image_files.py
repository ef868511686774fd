"""Images in files: tiles of pages, and outputs that a run keeps.

In the folder of a run, outputs/epoch_<n>.npz has `factors` [n, F], `images`
[n, H, W, C] in 8 bits, and `errors` [n] of the outputs as they were, relative
to the reference.
"""

import base64
import io
import math
import sys
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from PIL import Image

from tfcomp.storage.files import make_folder, write_atomically

FOLDER = "outputs"
MAX_BYTES = 2**28  # of a file, unpacked; a run keeps no more in all of them
Outputs = tuple[np.ndarray, np.ndarray]  # images [n, H, W, C], errors [n]


def arrange_channels(images: ArrayLike) -> np.ndarray:
    """Returns RGB, or gray `[n, H, W]` with channels beside each other."""
    images = np.asarray(images, float)
    is_color = images.shape[-1] == 3
    if images.ndim != 4 or is_color:
        return images
    count, height, width, channels = images.shape
    beside = images.transpose(
        0,
        1,
        3,
        2,
    )
    beside_width = channels * width
    return beside.reshape(count, height, beside_width)


def to_bytes(images: np.ndarray) -> np.ndarray:
    """Converts numbers, clipped to 0..1, to 0..255; NaN is 0."""
    numbers = np.nan_to_num(images)
    clipped = numbers.clip(0, 1)
    levels = np.round(clipped * 255)
    return levels.astype(np.uint8)


def tile_images(
    images: np.ndarray,
    columns: int,
    empty: float = 0,
) -> np.ndarray:
    """Returns images in one, row by row; the end is empty.

    Args:
        images: Images [n, H, W, ...].
        columns: The number of images in a row.
        empty: The pixels of missing images.
    """
    num_missing = -len(images) % columns
    padding = [(0, 0)] * images.ndim
    padding[0] = (0, num_missing)
    cells = np.pad(
        images,
        padding,
        constant_values=empty,
    )

    num_rows = len(cells) // columns
    rows = []
    for row in np.split(cells, num_rows):
        line = np.concatenate([*row], axis=1)
        rows.append(line)
    return np.concatenate(rows)


def encode(content: bytes) -> str:
    """Returns bytes in base64."""
    text = base64.b64encode(content)
    return text.decode("ascii")


def make_sprite(
    images: Mapping[str, np.ndarray], upright: bool
) -> dict[str, Any]:
    """Packs images [n, H, W, C], clipped to 0..1, as tiles of one PNG.

    Args:
        images: Images by name, all of one size.
        upright: Whether their first row is at the top.

    Returns:
        `sprite`, a data URL; `size` of a tile and `columns` of tiles; and
        `images`, the numbers of the tiles by name. Equal images share a tile.
    """
    tiles: dict[bytes, int] = {}
    places: dict[str, list[int]] = {}
    for name, stack in images.items():
        panels = arrange_channels(stack)
        pixels = to_bytes(panels)
        if not upright:
            pixels = pixels[:, ::-1]
        numbers = []
        for tile in pixels:
            content = tile.tobytes()
            number = tiles.setdefault(content, len(tiles))
            numbers.append(number)
        places[name] = numbers

    height, width, *colors = pixels.shape[1:]
    content = b"".join(tiles)
    array = np.frombuffer(content, np.uint8)
    array = array.reshape(
        -1,
        height,
        width,
        *colors,
    )
    side = math.sqrt(len(tiles))
    columns = math.ceil(side)
    tiled = tile_images(array, columns)
    sheet = Image.fromarray(tiled)
    file = io.BytesIO()
    sheet.save(file, "PNG")
    text = encode(file.getvalue())
    return {
        "images": places,
        "size": (width, height),
        "columns": columns,
        "sprite": f"data:image/png;base64,{text}",
    }


def write_outputs(
    folder: Path,
    epoch: int,
    factors: np.ndarray,
    images: np.ndarray,
    errors: np.ndarray,
) -> None:
    """Writes the outputs after an epoch into the folder of a run.

    Args:
        folder: The folder of the run.
        epoch: The number of epochs that were trained.
        factors: The combinations [n, F].
        images: The outputs [n, H, W, C], from 0 to 1.
        errors: Their errors [n], relative to the reference.
    """
    outputs = make_folder(folder / FOLDER)
    path = outputs / f"epoch_{epoch}.npz"
    pixels = to_bytes(images)
    with write_atomically(path) as partial, open(partial, "wb") as file:
        np.savez_compressed(
            file,
            factors=factors,
            images=pixels,
            errors=errors,
        )


def read_outputs(folder: Path, grid: np.ndarray) -> dict[int, Outputs]:
    """Reads the outputs that a run has kept.

    Args:
        folder: The folder of the run.
        grid: The combinations [n, F] that files must have.

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
        sizes = [part.file_size for part in archive.infolist()]
    if sum(sizes) > MAX_BYTES:
        raise ValueError(f"it unpacks to more than {MAX_BYTES >> 20} MB")

    count = len(grid)
    with np.load(path) as arrays:
        factors = arrays["factors"]
        images = arrays["images"]
        # Earlier versions kept none, and 8 bits cut what is beyond 0 to 1.
        unknown = np.full(count, np.nan)
        kept = arrays.get("errors", unknown)
        errors = np.asarray(kept)

    if not np.array_equal(factors, grid):
        raise ValueError("it has other combinations than the page shows")
    is_complete = len(images) == count and len(errors) == count
    if images.ndim != 4 or not is_complete:
        raise ValueError(f"it has images of shape {images.shape}")
    numbers = images.astype(np.float32)
    return numbers / 255, errors
