"""Does an image show a conjunction of x and y, or a sum over rows and columns?

The interaction part of an image is what is left of it less its row means and
its column means (plus its mean): zero for every sum f(x) + g(y), as the plus of
two stripes, and most of a bump. Of a set of images, R^2 says how much of the
interaction parts t of the true images those o of the outputs explain,

    R^2 = 1 - sum |s o - t|^2 / sum |t|^2,     s = sum <o, t> / sum <o, o>

with one scale s for all images of the set, so that a network may draw all too
faint, but not one of them instead of another. It lies in [0, 1], and is 0 for
a plus and for a blank image, wherever their peaks are.
"""

import numpy as np

from tfcomp.analysis.finite import finite_or_none

# Share of the energy of outputs, less their means, up to which their
# interaction part is the rounding of float32.
ROUNDING = 1e-10


def remove_marginals(images: np.ndarray) -> np.ndarray:
    """Images [n, H, W] or [n, H, W, C] less their row and column means.

    Channels are averaged; float64 [n, H, W].
    """
    maps = np.asarray(images, np.float64)
    maps = maps.mean(axis=-1) if maps.ndim == 4 else maps
    maps = maps - maps.mean(axis=(1, 2), keepdims=True)
    maps = maps - maps.mean(axis=1, keepdims=True)
    return maps - maps.mean(axis=2, keepdims=True)


def compute_interaction_r2(
    images: np.ndarray, truth: np.ndarray
) -> float | None:
    """R^2 of the interaction part of images on that of the true ones.

    None without images, if one is not finite, or if no true image has an
    interaction part.
    """
    drawn, true = remove_marginals(images), remove_marginals(truth)
    energy, total = float(np.sum(drawn**2)), float(np.sum(true**2))
    whole = np.asarray(images, np.float64)
    spread = float(np.sum((whole - whole.mean()) ** 2)) if whole.size else 0.0
    if not (np.isfinite(energy) and total > ROUNDING * np.size(truth)):
        return None
    if energy <= ROUNDING * spread:
        return 0.0
    product = float(np.vdot(drawn, true))
    # A negative image explains nothing.
    r2 = max(product, 0.0) ** 2 / (energy * total)
    return finite_or_none(min(r2, 1.0))
