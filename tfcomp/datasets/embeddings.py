"""Embeddings: vectors in place of images, and files of them.

classes  integers [n, F], with `names`, `levels` ... as in `table_files`;
         or else a column [n] of numbers or text for each factor
images   [n, H, W] or [n, H, W, C], optional, to show
...      every other array [n, ...] is a layer
"""

import math
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from tfcomp.datasets.copies import Copies
from tfcomp.datasets.dataset import Dataset, Render
from tfcomp.datasets.factor_table import FactorTable
from tfcomp.datasets.table_files import (
    OPTIONS,
    open_npz,
    read_options,
    tabulate,
)

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
    reference_name = "the mean training embedding"

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
        return np.concatenate(
            [
                (squares - 2 * (block @ self._vectors.T)).argmin(axis=1)
                for block in np.array_split(flat, len(flat) // _BLOCK + 1)
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


def read_embeddings(path: str) -> tuple[FactorTable, dict[str, np.ndarray]]:
    """Reads the table and the layers of an `.npz` file; opens no pickle."""
    members, read = open_npz(path)
    arrays = {name: read(name, None) for name in members if name not in OPTIONS}
    images = arrays.pop("images", None)
    columns = {n: array for n, array in arrays.items() if array.ndim == 1}
    if "classes" in arrays:
        options = read_options(members, read)
        table = FactorTable(images, arrays.pop("classes"), **options)
    else:
        table = tabulate(columns, images)
    return table, {n: a for n, a in arrays.items() if n not in columns}
