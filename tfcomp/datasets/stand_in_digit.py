"""Stand-in digits: strokes drawn in code, for tests and a first try.

They are no MNIST: the ten digits of a seven-segment display, upright, with
soft edges. Nothing is downloaded for them.
"""

import numpy as np

SIZE = 28
NOTE = (
    "stand-in digits: drawn strokes, not MNIST; results do not compare with "
    "the paper's (--digit_source=mnist does)"
)

# Ends of the segments (row, column), and which of them each digit lights.
_TOP, _MIDDLE, _BOTTOM, _LEFT, _RIGHT = 6.0, 13.5, 21.0, 9.5, 17.5
_SEGMENTS = {
    "a": ((_TOP, _LEFT), (_TOP, _RIGHT)),
    "b": ((_TOP, _RIGHT), (_MIDDLE, _RIGHT)),
    "c": ((_MIDDLE, _RIGHT), (_BOTTOM, _RIGHT)),
    "d": ((_BOTTOM, _LEFT), (_BOTTOM, _RIGHT)),
    "e": ((_MIDDLE, _LEFT), (_BOTTOM, _LEFT)),
    "f": ((_TOP, _LEFT), (_MIDDLE, _LEFT)),
    "g": ((_MIDDLE, _LEFT), (_MIDDLE, _RIGHT)),
}
_LIT = ("abcdef bc abdeg abcdg bcfg acdfg acdefg abc abcdefg abcdfg").split()
_HALF_WIDTH = 1.2  # px


def draw_stand_in(digit: int) -> np.ndarray:
    """A digit from 0 to 9, float32 [28, 28] in [0, 1], row 0 at the top."""
    distance = np.min(
        [_measure_distance(*_SEGMENTS[name]) for name in _LIT[digit]], axis=0
    )
    image = np.clip(_HALF_WIDTH + 0.5 - distance, 0.0, 1.0)
    return image.astype(np.float32)


def _measure_distance(
    start: tuple[float, float], end: tuple[float, float]
) -> np.ndarray:
    # Distance of every pixel from a line segment, [28, 28].
    pixels = np.stack(np.mgrid[:SIZE, :SIZE], axis=-1).astype(float)
    along = np.subtract(end, start)
    place = (pixels - start) @ along / (along @ along)
    nearest = start + np.clip(place, 0.0, 1.0)[..., None] * along
    return np.linalg.norm(pixels - nearest, axis=-1)
