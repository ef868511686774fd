"""Many small images as one picture, which a page cuts tiles from."""

import base64
import io
import math

import numpy as np
from PIL import Image

from tfcomp.figures.image_rows import arrange_channels


class Sprite:
    """Images of one size, in 8 bits; equal ones are one tile.

    Tiles stand row by row, from left to right.

    Args:
        upright: Whether row 0 is above; else images are turned over.
    """

    def __init__(self, upright: bool) -> None:
        self._upright = upright
        self._tiles: dict[bytes, int] = {}
        self._shape: tuple[int, ...] = ()

    def add(self, images: np.ndarray) -> list[int]:
        """The tiles of images [n, H, W, C], whose values are cut to 0..1.

        What is not finite is black.
        """
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
        """How many tiles stand beside each other."""
        return math.isqrt(max(len(self._tiles) - 1, 0)) + 1

    def to_url(self) -> str:
        """The picture as PNG, in the address of an image."""
        height, width, *colors = self._shape
        columns = self.columns
        rows = -(-len(self._tiles) // columns)
        sheet = np.zeros((rows * columns, *self._shape), np.uint8)
        sheet[: len(self._tiles)] = [
            np.frombuffer(tile, np.uint8).reshape(self._shape)
            for tile in self._tiles
        ]
        sheet = sheet.reshape(rows, columns, *self._shape).swapaxes(1, 2)
        sheet = sheet.reshape(rows * height, columns * width, *colors)
        file = io.BytesIO()
        Image.fromarray(sheet).save(file, "PNG")
        return f"data:image/png;base64,{encode(file.getvalue())}"


def encode(data: bytes) -> str:
    """Bytes as text."""
    return base64.b64encode(data).decode("ascii")
