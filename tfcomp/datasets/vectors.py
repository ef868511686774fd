"""Datasets whose points have vectors in place of images, as embeddings."""

import math
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from tfcomp.datasets.copies import Copies
from tfcomp.datasets.dataset import Dataset, Render

_BLOCK = 256  # vectors whose distances are held at a time


@dataclass(frozen=True)
class VectorDataset(Dataset):
    """A dataset whose `render` returns vectors, [n, 1, units, 1].

    Attributes:
        pictures: Images of points, to show; without them vectors are shown as
            shades of gray.
    """

    pictures: Render | None = None
    is_pixels: ClassVar[bool] = False

    @property
    def reference_label(self) -> str:
        """The reference as `metrics.json` names it."""
        return "mean training embedding"

    @property
    def reference_name(self) -> str:
        """The reference within a sentence."""
        return "the mean training embedding"

    @cached_property
    def copies(self) -> Copies:
        """Nothing: equal embeddings are a result, not a fault of the data."""
        return Copies(np.zeros(len(self.splits.all), bool), {})

    @cached_property
    def _vectors(self) -> np.ndarray:
        vectors = self.render_array(self.splits.grid)
        return vectors.reshape(len(vectors), -1)

    def find_items(self, vectors: np.ndarray) -> np.ndarray:
        """Returns rows of the grid with the nearest vectors, [n]."""
        flat = vectors.reshape(len(vectors), -1)
        squares = np.square(self._vectors).sum(axis=1)
        blocks = np.array_split(flat, len(flat) // _BLOCK + 1)
        return np.concatenate(
            [
                (squares - 2 * (block @ self._vectors.T)).argmin(axis=1)
                for block in blocks
            ]
        )

    def to_pictures(self, vectors: np.ndarray) -> np.ndarray:
        """Returns pictures of the nearest items, or shades, [n, H, W, C]."""
        if self.pictures is not None:
            items = self.splits.grid[self.find_items(vectors)]
            return self.render_array(items, self.pictures)
        low, high = np.percentile(self._vectors, (1, 99))
        flat = vectors.reshape(len(vectors), -1)
        shades = ((flat - low) / (high - low or 1.0)).clip(0, 1)
        width = math.isqrt(flat.shape[1] - 1) + 1
        height = -(-flat.shape[1] // width)
        missing = height * width - flat.shape[1]
        padded = np.pad(shades, ((0, 0), (0, missing)))
        return padded.reshape(-1, height, width, 1)
