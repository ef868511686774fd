"""Structural similarity of images (Wang et al. 2004, IEEE TIP 13).

With means m, variances v and the covariance c of two images under a Gaussian
window of 11 x 11 pixels and a standard deviation of 1.5,

    SSIM = (2 m_a m_b + .01^2) (2 c + .03^2)
           / ((m_a^2 + m_b^2 + .01^2) (v_a + v_b + .03^2))

as `tf.image.ssim` with `max_val=1`: pixels go from 0 to 1, the mean is over
windows inside the image and over channels.
"""

import numpy as np
from numpy.typing import ArrayLike, NDArray

WINDOW, SIGMA = 11, 1.5  # px
C1, C2 = 0.01**2, 0.03**2
_BLOCK = 64  # images at a time


def compute_ssim_error(
    images: ArrayLike, truth: ArrayLike
) -> NDArray[np.float64]:
    """Returns 1 - SSIM, [n], of images [n, H, W, C]; NaN if not finite.

    Raises:
        ValueError: If a side is below `WINDOW`.
    """
    first, second = np.asarray(images), np.asarray(truth)
    if min(first.shape[1:3]) < WINDOW:
        raise ValueError(f"images must have sides of {WINDOW} px or more")
    error = np.empty(len(first))
    for start in range(0, len(first), _BLOCK):
        rows = slice(start, start + _BLOCK)
        a, b = (np.moveaxis(x[rows], 3, 1) for x in (first, second))
        with np.errstate(all="ignore"):  # of diverged models
            ssim = _compute_maps(a, b)
        error[rows] = 1 - ssim.mean(axis=(1, 2, 3))
    return error


def _compute_maps(a: NDArray, b: NDArray) -> NDArray:
    """Returns SSIM of every window of [n, C, H, W]."""
    a, b = np.asarray(a, np.float64), np.asarray(b, np.float64)
    parts = np.stack([a, b, a * a + b * b, a * b])
    mean_a, mean_b, squares, product = _blur(_blur(parts))
    level, cross = mean_a**2 + mean_b**2, mean_a * mean_b
    likeness = (2 * cross + C1) * (2 * (product - cross) + C2)
    return likeness / ((level + C1) * (squares - level + C2))


def _blur(images: NDArray) -> NDArray:
    """Averages along the last axis by the window, and swaps the last two."""
    *others, size = images.shape
    starts = np.arange(size - WINDOW + 1)
    offsets = np.arange(size)[:, None] - starts - WINDOW // 2
    weights = np.exp(-0.5 * (offsets / SIGMA) ** 2)
    weights[np.abs(offsets) > WINDOW // 2] = 0.0
    # One product of matrices: many small ones are slow.
    blurred = images.reshape(-1, size) @ (weights / weights.sum(axis=0))
    return blurred.reshape(*others, -1).swapaxes(-1, -2)
