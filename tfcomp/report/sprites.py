"""Images of one size in one picture, from which a page cuts them."""

import io
import math
from typing import Any

import numpy as np
from PIL import Image

from tfcomp.figures.image_rows import arrange_channels
from tfcomp.report.page import encode


class Sprite:
    """Images of one size, in 8 bits; equal ones are one tile.

    Tiles stand row by row, from left to right, turned over unless `upright`.
    """

    def __init__(self, upright: bool) -> None:
        self._upright = upright
        self._tiles: dict[bytes, int] = {}
        self._shape: tuple[int, ...] = ()

    def add(self, images: np.ndarray) -> list[int]:
        """Adds images [n, H, W, C], clipped to 0..1; returns their tiles."""
        shown = np.nan_to_num(arrange_channels(images), posinf=1.0, neginf=0.0)
        pixels = np.round(shown.clip(0, 1) * 255).astype(np.uint8)
        self._shape = pixels.shape[1:]
        if not self._upright:
            pixels = pixels[:, ::-1]
        return [
            self._tiles.setdefault(tile.tobytes(), len(self._tiles))
            for tile in pixels
        ]

    @property
    def size(self) -> tuple[int, int]:
        """Width and height of a tile."""
        return self._shape[1], self._shape[0]

    @property
    def columns(self) -> int:
        """Number of tiles in a row."""
        return math.isqrt(max(len(self._tiles) - 1, 0)) + 1

    def to_url(self) -> str:
        """Returns the picture as a PNG data URL."""
        height, width, *colors = self._shape
        columns, count = self.columns, len(self._tiles)
        rows = math.ceil(count / columns)
        sheet = np.zeros((rows * columns, *self._shape), np.uint8)
        tiles = np.frombuffer(b"".join(self._tiles), np.uint8)
        sheet[:count] = tiles.reshape(count, *self._shape)
        sheet = sheet.reshape(rows, columns, *self._shape).swapaxes(1, 2)
        sheet = sheet.reshape(rows * height, columns * width, *colors)
        file = io.BytesIO()
        Image.fromarray(sheet).save(file, "PNG")
        return f"data:image/png;base64,{encode(file.getvalue())}"

    def to_data(self) -> dict[str, Any]:
        """Returns the picture, and the size and the columns of its tiles."""
        return {
            "size": self.size,
            "columns": self.columns,
            "sprite": self.to_url(),
        }
