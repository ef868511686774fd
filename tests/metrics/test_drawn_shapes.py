"""What is drawn at a position, of planted images."""

import numpy as np
import pytest

from tfcomp.metrics.drawn_shapes import SHAPES, find_nearest_shapes

SIGMA = 1.0
PIXELS = np.arange(12.0)
POSITION = np.array([[8.0, 3.0]])  # x and y
OF_X = np.exp(-0.5 * (PIXELS - 8) ** 2)
OF_Y = np.exp(-0.5 * (PIXELS - 3) ** 2)
BUMP = np.outer(OF_Y, OF_X)
VERTICAL = np.tile(OF_X, (12, 1))
HORIZONTAL = np.tile(OF_Y[:, None], (1, 12))
CASES = {
    "a bump": (BUMP, "bump"),
    "a bump of less than half of its height": (0.45 * BUMP, "blank"),
    "a bump elsewhere": (np.roll(BUMP, 5, axis=1), "blank"),
    "a plus": (VERTICAL + HORIZONTAL, "plus"),
    "a faint plus": (0.8 * (VERTICAL + HORIZONTAL), "plus"),
    "one stripe": (VERTICAL, "stripe"),
    "the other stripe": (HORIZONTAL, "stripe"),
    "one stripe and a bump of .01": (HORIZONTAL + 0.01 * BUMP, "stripe"),
    "nothing": (0 * BUMP, "blank"),
    "a gray image": (0 * BUMP + 0.5, "blank"),
}


@pytest.mark.parametrize("case", CASES)
def test_the_nearest_shape(case) -> None:
    image, shape = CASES[case]

    (nearest,) = find_nearest_shapes(image[None], POSITION, SIGMA)

    assert SHAPES[nearest] == shape
