"""Images as their contrast to the background, and back."""

import numpy as np

from tfcomp.datasets.dataset import Dataset


def to_contrast(dataset: Dataset, images: np.ndarray) -> np.ndarray:
    """Returns images as contrast to the background, [n, pixels].

    Bumps have height 1 on 0. Without a background, the contrast is to the mean
    training image.
    """
    sign, reference = _find_origin(dataset)
    return sign * (images.reshape(len(images), -1) - reference)


def from_contrast(dataset: Dataset, bright: np.ndarray) -> np.ndarray:
    """Returns images [n, H, W, C], the inverse of `to_contrast`."""
    sign, reference = _find_origin(dataset)
    return (sign * bright + reference).reshape(-1, *dataset.image_shape)


def _find_origin(dataset: Dataset) -> tuple[float, float | np.ndarray]:
    ground = dataset.ground
    if ground is not None:
        return -1.0 if ground else 1.0, ground
    return 1.0, dataset.reference.ravel().astype(np.float32)


def restore(dataset: Dataset, bright: np.ndarray) -> np.ndarray:
    """Returns visible images [n, H, W, C] of contrasts [n, pixels].

    Scales each to its own maximum, since outputs can be faint; without a
    background it adds the mean training image.
    """
    images = bright.reshape(-1, *dataset.image_shape)
    if dataset.ground is None:
        return images + dataset.reference
    largest = np.abs(images).max(axis=(1, 2, 3), keepdims=True)
    return images / np.where(largest > 0, largest, 1.0)
