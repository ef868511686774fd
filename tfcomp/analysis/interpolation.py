"""Is an output inside a gap an interpolation of the images at its edges?

Appendix F.2 of the paper, figure 9: at angles that it never saw, a network
draws the linear interpolation of the two edge images, the last ones before
and after the gap. For an output o at the fraction t of the gap and the edge
images a and b:

    r2          of o on a and b, the best weights (least squares)
    linear_r2   of o as (1 - t) a + t b, the weights of the claim

R^2 = 1 - SSE / SST with SST about zero and no intercept, as in
`superposition`: images have background 0, and a blank prediction explains
nothing. Two images of a turned digit overlap, so the *true* image is partly
explained, too; `truth_r2` says how much, and a network that truly rotates
would score that.
"""

from dataclasses import dataclass

import numpy as np

from tfcomp.analysis.features import finite_or_none, mean_or_none


@dataclass(frozen=True)
class Interpolation:
    """Scores per held-out point, in the order of the curve, [m].

    Attributes:
        rows: Which points of the curve they are.
        edges: The last known points before and after each, [m, 2].
        fraction: Place between the edges, in (0, 1).
        weights: Of the two edge images in the best fit, [m, 2].
    """

    rows: np.ndarray
    edges: np.ndarray
    fraction: np.ndarray
    weights: np.ndarray
    r2: np.ndarray
    linear_r2: np.ndarray
    truth_r2: np.ndarray


def find_edges(
    is_ood: np.ndarray, periodic: bool = False
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The known points around every held-out one of a curve.

    If it is periodic, its last point is followed by the first.

    Returns:
        Rows of the held-out points that have an edge on both sides [m],
        their edges [m, 2], and the fraction of the way between these [m].
    """
    is_ood = np.asarray(is_ood, bool)
    known = np.flatnonzero(~is_ood)
    rows = np.flatnonzero(is_ood)
    if periodic:
        known = np.add.outer([-len(is_ood), 0, len(is_ood)], known).ravel()
    after = np.searchsorted(known, rows)
    inside = (after > 0) & (after < len(known))
    rows, after = rows[inside], after[inside]
    edges = np.stack([known[after - 1], known[after]], axis=1)  # [m, 2]
    fraction = (rows - edges[:, 0]) / (edges[:, 1] - edges[:, 0])
    return rows, edges % len(is_ood), fraction


def compute_interpolation(
    outputs: np.ndarray,
    truth: np.ndarray,
    is_ood: np.ndarray,
    periodic: bool = False,
) -> Interpolation:
    """Compares the outputs between two known points with the images there.

    Outputs and true images [n, ...] are those along one ordered factor, with
    background 0; further arguments are those of `find_edges`.
    """
    outputs = np.reshape(outputs, (len(outputs), -1)).astype(np.float64)
    truth = np.reshape(truth, (len(truth), -1)).astype(np.float64)
    rows, edges, fraction = find_edges(is_ood, periodic)
    results = [
        _score(outputs[row], truth[row], truth[pair], t)
        for row, pair, t in zip(rows, edges, fraction, strict=True)
    ]
    table = np.array(results).reshape(len(rows), 5)
    return Interpolation(rows, edges, fraction, table[:, :2], *table[:, 2:].T)


def interpolate_edges(
    truth: np.ndarray, is_ood: np.ndarray, periodic: bool = False
) -> np.ndarray:
    """Linear interpolation of the true edge images, shape of `truth`.

    Points that are not between two known ones keep their true image.
    """
    rows, edges, fraction = find_edges(is_ood, periodic)
    images = np.array(truth, np.float64)
    weight = fraction.reshape(-1, *[1] * (images.ndim - 1))
    before, after = images[edges[:, 0]], images[edges[:, 1]]
    images[rows] = (1 - weight) * before + weight * after
    return images


def summarize_interpolation(scores: Interpolation) -> dict[str, float | None]:
    """Means (and the least R^2) over the held-out points of one curve.

    None without a held-out point, or if a score is not finite.
    """
    return {
        "interpolation_r2": mean_or_none(scores.r2),
        "interpolation_r2_min": finite_or_none(scores.r2.min(initial=np.inf)),
        "linear_r2": mean_or_none(scores.linear_r2),
        "truth_r2": mean_or_none(scores.truth_r2),
    }


def _score(
    output: np.ndarray, truth: np.ndarray, edges: np.ndarray, fraction: float
) -> tuple[float, ...]:
    # Images [pixels], edges [2, pixels]: two weights and three R^2.
    weights = np.linalg.lstsq(edges.T, output, rcond=None)[0]
    linear = np.array([1 - fraction, fraction])
    ideal = np.linalg.lstsq(edges.T, truth, rcond=None)[0]
    return (
        *weights,
        _compute_r2(output, weights @ edges),
        _compute_r2(output, linear @ edges),
        _compute_r2(truth, ideal @ edges),
    )


def _compute_r2(target: np.ndarray, prediction: np.ndarray) -> float:
    total = np.sum(target**2) or np.nan
    return float(1 - np.sum((target - prediction) ** 2) / total)
