"""What is drawn at a position, of planted images."""

import numpy as np
import pytest

from tests.metrics.planted import make_bumps
from tfcomp.metrics.drawn_shapes import SHAPES, find_nearest_shapes

SIGMA = 1.0
POSITION = np.array([[8.0, 3.0]])  # x and y
(BUMP,) = make_bumps(POSITION, 12)
VERTICAL = np.tile(BUMP[3], (12, 1))
HORIZONTAL = np.tile(BUMP[:, [8]], 12)
PLUS = VERTICAL + HORIZONTAL
CASES = {
    "a bump": (BUMP, "bump"),
    "a bump of less than half of its height": (0.45 * BUMP, "blank"),
    "a bump elsewhere": (np.roll(BUMP, 5, axis=1), "blank"),
    "a plus": (PLUS, "plus"),
    "a faint plus": (0.8 * PLUS, "plus"),
    "one stripe": (VERTICAL, "stripe"),
    "the other stripe": (HORIZONTAL, "stripe"),
    "one stripe and a bump of .01": (HORIZONTAL + 0.01 * BUMP, "stripe"),
    "nothing": (0 * BUMP, "blank"),
    "a gray image": (0 * BUMP + 0.5, "blank"),
}


@pytest.mark.parametrize("case", CASES)
def test_the_nearest_shape(case):
    image, shape = CASES[case]

    (nearest,) = find_nearest_shapes(image[None], POSITION, SIGMA)

    assert SHAPES[nearest] == shape
