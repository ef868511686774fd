"""Three shapes at 8 x 8 places, 12 x 12 pixels."""

import numpy as np

import tfcomp

LEVELS = [["square", "plus", "bar"], None, None]
REGION = "shape:bar,x:4-7"
INDEX = np.stack(
    np.meshgrid(
        range(3),
        range(8),
        range(8),
        indexing="ij",
    ),
    -1,
).reshape(-1, 3)


def make_images() -> np.ndarray:
    """Draws all combinations, float32 [192, 12, 12]."""
    rows, columns = np.mgrid[:12, :12]
    images = []
    for shape, x, y in INDEX:
        dx, dy = np.abs(columns - 2 - x), np.abs(rows - 2 - y)
        square, plus = np.maximum(dx, dy) <= 1, dx + dy <= 1
        images.append([square, plus, (dx <= 2) & (dy == 0)][shape])
    return np.stack(images).astype(np.float32)


TABLE = tfcomp.FactorTable(
    make_images(),
    INDEX,
    names=["shape", "x", "y"],
    levels=LEVELS,
)
