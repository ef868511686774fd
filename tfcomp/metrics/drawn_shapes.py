"""What networks draw at held-out positions: a bump, a plus, a stripe, nothing.

Section 4.2 of the paper says that networks which saw stripes alone draw the sum
of two stripes, a plus, at a held-out position, and that few bumps turn it into
a bump. An error of one of them does not tell which is drawn: one stripe and a
bump of .01 is near enough to a plus. So each output is compared by pixels with

    bump     the true image, of height 1
    plus     the sum of the stripes at x and at y
    stripe   the stripe at x, or the one at y, whichever is nearer
    blank    an image of one level, whichever is nearest

and counts for the nearest of these. A bump below half of its height is nearer
to a blank image, and counts as one. A gray image would else be nearest to a
plus, which covers most pixels.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy import ndarray as Array

from tfcomp.metrics.registry import Scores, computes
from tfcomp.statistics.limits import SHARE

if TYPE_CHECKING:
    from tfcomp.metrics.run_analysis import RunAnalysis

SHAPES = ("bump", "plus", "stripe", "blank")


def find_nearest_shapes(
    images: Array,
    positions: Array,
    sigma: float,
) -> Array:
    """Finds which of `SHAPES` each image is nearest to, by squared error.

    Args:
        images: Bright images (background 0, bumps of 1), [n, rows, columns].
        positions: Where a bump belongs, x and y in pixels, [n, 2].
        sigma: Standard deviation of bumps and stripes (px).

    Returns:
        Places in `SHAPES`, [n].
    """
    _, height, width = images.shape
    across = _make_profiles(width, positions[:, :1], sigma)
    along = _make_profiles(height, positions[:, 1:], sigma)
    vertical = across[:, None, :]  # [n, 1, columns]
    horizontal = along[:, :, None]  # [n, rows, 1]

    def measure(shape: Array) -> Array:
        return np.mean((images - shape) ** 2, axis=(1, 2))

    level = images.mean(axis=(1, 2), keepdims=True)
    stripe = np.minimum(measure(vertical), measure(horizontal))
    errors = (
        measure(vertical * horizontal),
        measure(vertical + horizontal),
        stripe,
        measure(level),
    )
    return np.argmin(errors, axis=0)


def _make_profiles(size: int, centers: Array, sigma: float) -> Array:
    """Makes bumps along an axis, [n, size], at centers [n, 1] (px)."""
    offsets = np.arange(size) - centers
    return np.exp(-0.5 * (offsets / sigma) ** 2)


@computes(
    "run",
    SHARE,
    "nearest_bump_share nearest_plus_share nearest_stripe_share "
    "nearest_blank_share",
)
def measure_drawn_shapes(analysis: RunAnalysis) -> Scores:
    """Says what is drawn at held-out positions (figures 4b and 7b)."""
    dataset = analysis.dataset
    is_ood = analysis.splits.is_ood
    if not (dataset.has_position and dataset.sigma and is_ood.any()):
        return {}

    names = [f"nearest_{shape}_share" for shape in SHAPES]
    height, width, _ = dataset.image_shape
    images = analysis.bright_outputs[is_ood]
    if not np.isfinite(images).all():
        return dict.fromkeys(names)

    nearest = find_nearest_shapes(
        images.reshape(-1, height, width),
        positions=analysis.splits.grid[is_ood],
        sigma=dataset.sigma,
    )
    shares: Scores = {}
    for place, name in enumerate(names):
        shares[name] = float(np.mean(nearest == place))
    return shares
