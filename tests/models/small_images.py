"""Three shapes at 8 x 8 places, 12 x 12 pixels."""

import numpy as np

import tfcomp

LEVELS = [["square", "plus", "bar"], None, None]
REGION = "shape:bar,x:4-7"
INDEX = np.argwhere(np.ones((3, 8, 8)))


def make_images() -> np.ndarray:
    """Renders all combinations, float32 [192, 12, 12]."""
    rows, columns = np.indices((12, 12))
    images = []
    for shape, x, y in INDEX:
        right = np.abs(columns - 2 - x)
        down = np.abs(rows - 2 - y)
        is_square = np.maximum(right, down) <= 1
        is_plus = right + down <= 1
        is_bar = (right <= 2) & (down == 0)
        images.append((is_square, is_plus, is_bar)[shape])
    return np.stack(images).astype(np.float32)


TABLE = tfcomp.FactorTable(
    make_images(),
    INDEX,
    names=["shape", "x", "y"],
    levels=LEVELS,
)
