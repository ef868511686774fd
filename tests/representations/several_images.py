"""A table of two factors whose combinations have several images each."""

import keras
import numpy as np

import tfcomp

SIDE = 16
PLACES = 30  # images of a combination
REGION = "shape:#1-2,size:#1"
COMBINATIONS = np.argwhere(np.ones((3, 2)))
CLASSES = np.repeat(COMBINATIONS, PLACES, axis=0)


def render(shape: int, size: int, place: np.ndarray) -> np.ndarray:
    """Renders a disc, a bar or a cross of two sizes at a place."""
    rows, columns = np.indices((SIDE, SIDE))
    row, column = place
    down = np.abs(rows - row)
    right = np.abs(columns - column)
    reach = (2, 4)[size]
    if shape == 0:
        return down**2 + right**2 <= reach**2

    is_bar = (down <= 1) & (right <= reach)
    if shape == 1:
        return is_bar
    return is_bar | ((right <= 1) & (down <= reach))


def make_images() -> np.ndarray:
    rng = np.random.default_rng(0)
    places = rng.integers(4, SIDE - 4, (len(CLASSES), 2))
    images = []
    for (shape, size), place in zip(CLASSES, places, strict=True):
        images.append(render(shape, size, place))
    return np.array(images, np.float32)


IMAGES = make_images()
TABLE = tfcomp.FactorTable(
    IMAGES,
    CLASSES,
    names=["shape", "size"],
    levels=[["disc", "bar", "cross"], None],
)
MEANS = IMAGES.reshape(
    len(COMBINATIONS),
    PLACES,
    SIDE,
    SIDE,
).mean(axis=1)


def find_combinations(factors: np.ndarray) -> np.ndarray:
    """Returns rows of `COMBINATIONS` for factor values, [n]."""
    shape, size = factors.astype(int).T
    return 2 * shape + size


class Sampler:
    """A perfect sampler: gives a random true image of each combination."""

    def __init__(self):
        self._rng = np.random.default_rng(0)

    def __call__(self, factors: np.ndarray) -> np.ndarray:
        combinations = find_combinations(factors)
        places = self._rng.integers(PLACES, size=len(factors))
        rows = PLACES * combinations + places
        return IMAGES[rows]


class LookUp(tfcomp.Reader):
    """Reads images that it knows, and takes all others for the first class.

    Args:
        images: Known images, [n, H, W].
        classes: What it reads off each, [n, F].
    """

    def __init__(self, images: np.ndarray, classes: np.ndarray):
        image = keras.Input((SIDE, SIDE, 1))
        network = keras.Model(image, image)
        super().__init__(network, TABLE.space)
        self._known = images.reshape(len(images), -1)
        self._classes = classes

    def read(self, images: np.ndarray) -> np.ndarray:
        readings = np.zeros((len(images), 2), int)
        for row, image in enumerate(images):
            difference = np.abs(self._known - image.ravel())
            distance = difference.max(axis=1)
            nearest = distance.argmin()
            if distance[nearest] < 1e-6:
                readings[row] = self._classes[nearest]
        return readings
