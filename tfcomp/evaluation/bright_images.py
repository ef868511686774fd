"""Images as bright objects on 0, whatever the background of the data is."""

import numpy as np

from tfcomp.datasets.dataset import Dataset


def brighten(dataset: Dataset, images: np.ndarray) -> np.ndarray:
    """Images [n, H, W, C] as bumps of height 1 on 0, flattened, [n, pixels].

    Of data without a background, what they differ by from the mean training
    image.
    """
    sign, reference = _find_origin(dataset)
    return sign * (images.reshape(len(images), -1) - reference)


def undo_brighten(dataset: Dataset, bright: np.ndarray) -> np.ndarray:
    """The images [n, H, W, C] that `brighten` makes these of."""
    sign, reference = _find_origin(dataset)
    return (sign * bright + reference).reshape(-1, *dataset.image_shape)


def _find_origin(dataset: Dataset) -> tuple[float, float | np.ndarray]:
    sign = -1.0 if dataset.polarity == "dark" else 1.0
    if dataset.has_background:
        return sign, dataset.background
    return sign, dataset.reference.ravel().astype(np.float32)


def restore(dataset: Dataset, bright: np.ndarray) -> np.ndarray:
    """Images [n, H, W, C] to look at, of bright ones [n, pixels].

    Each is scaled to its own maximum, since outputs can be faint, and stays
    bright; without a background it becomes what it was.
    """
    images = bright.reshape(-1, *dataset.image_shape)
    if not dataset.has_background:
        return images + dataset.reference
    largest = np.abs(images).max(axis=(1, 2, 3), keepdims=True)
    return images / np.where(largest > 0, largest, 1.0)
