"""Linear probes: how well a layer's activations predict the factors.

Ridge regression from the activations of one stage to the factors, scored by
R^2 (uniform average over factors) on points that it was not fitted to: out
of fold among ID points, and transferred from ID to OOD points. A fit scored
on its own points has an R^2 of 1 for noise once there are more units than
points, as in every convolution stage.

Activations are normalized as in `features`. One eigendecomposition of the ID
points, of units by units or of points by points, whichever is smaller, serves
all penalties and folds: with the vector of ones, scaled to length one, and the
principal axes u_j, scaled to s_j / sqrt(s_j^2 + penalty), as columns of B,

    R = I - B B^T         makes residuals R y of targets y at fitted points
    R_TT^-1 (R y)_T       are the errors of a fit that does not see points T
    R_SS - R_ST R_TT^-1 R_TS   is the R of that fit at the other points S
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from scipy.linalg import cho_solve
from scipy.linalg import cholesky
from scipy.linalg import solve_triangular

from tfcomp.analysis.features import compute_gram
from tfcomp.analysis.features import normalize_rows
from tfcomp.analysis.threads import single_threaded

# In units of the squared length of a typical row. Below 1e-4, the float32
# rounding of the Gram matrix shows; at 1e4 nothing is left of a prediction.
PENALTIES = np.logspace(-4, 4, 9)
NUM_FOLDS = 5
# Two points per fold, for the inner cross-validation as well.
MIN_POINTS = 2 * NUM_FOLDS

Scores = dict[str, float | None]
NO_SCORES: Scores = {"probe_r2_id": None, "probe_r2_ood": None}


def compute_probe_scores(
    activations: np.ndarray,
    targets: np.ndarray,
    is_ood: np.ndarray,
    seed: int = 0,
) -> Scores:
    """Cross-validated and transferred R^2 of a linear probe.

    The penalty is chosen by leave-one-out cross-validation inside whatever
    points a fit sees.

    Args:
        activations: One stage, [n, ...]; flattened to [n, units].
        targets: Factor values [n, T].
        is_ood: Whether each point lies in the held-out region, [n].
        seed: Of the shuffle that deals ID points into folds.

    Returns:
        `probe_r2_id`: out-of-fold R^2 over ID points; `probe_r2_ood`: R^2
        over OOD points of a probe fitted to all ID points. None where there
        are too few points (10 ID, 2 OOD), no target varies, or activations
        are not finite. At or below about 0 for activations that say nothing.
    """
    flat = np.reshape(activations, (len(activations), -1))
    return probe_blocks([flat], flat.shape[1], targets, is_ood, seed)


def probe_blocks(
    blocks: Iterable[np.ndarray],
    num_units: int,
    targets: np.ndarray,
    is_ood: np.ndarray,
    seed: int = 0,
) -> Scores:
    """Like `compute_probe_scores`, of units that come block by block.

    Args:
        blocks: Disjoint groups of units, [n, units of the block] each.
        num_units: How many there are in all blocks.
        targets: Factor values [n, T].
        is_ood: Whether each point lies in the held-out region, [n].
        seed: Of the shuffle that deals ID points into folds.
    """
    is_ood = np.asarray(is_ood, bool)
    if np.count_nonzero(~is_ood) < MIN_POINTS or not np.size(targets):
        return dict(NO_SCORES)
    if num_units < np.count_nonzero(~is_ood):
        rows = normalize_rows(np.concatenate(list(blocks), axis=1), is_ood)
    else:
        rows = compute_gram(blocks, is_ood)
    if not np.isfinite(rows).all():
        return dict(NO_SCORES)
    return _probe(rows, np.asarray(targets, np.float64), is_ood, seed)


@single_threaded
def _probe(
    rows: np.ndarray, targets: np.ndarray, is_ood: np.ndarray, seed: int
) -> Scores:
    """Scores from fewer units than ID points, [n, units], or a Gram matrix."""
    rotated, squares = _rotate(rows, ~is_ood)
    mean = targets[~is_ood].mean(axis=0)
    known, unseen = targets[~is_ood] - mean, targets[is_ood] - mean
    # Shuffled, so that a fold is a slice.
    order = np.random.RandomState(seed).permutation(len(known))
    folds = np.array_split(np.arange(len(known)), NUM_FOLDS)
    folds = [slice(fold[0], fold[-1] + 1) for fold in folds]
    # Of the fit to all ID points the best loss and its penalty; of that
    # without each fold the best loss and its errors in the fold.
    best = [(np.inf, None)] * (1 + NUM_FOLDS)
    for penalty in PENALTIES:
        basis = rotated[order] / np.sqrt(squares + penalty)
        loss, *without = _fit(basis, known[order], folds)
        pairs = zip(best, [(loss, penalty), *without], strict=True)
        best = [min(pair, key=lambda fit: fit[0]) for pair in pairs]
    (_, penalty), *errors = best
    explained = rotated.T @ known / (squares + penalty)[:, None]
    residuals = known - rotated @ explained
    transferred = _multiply(rows, is_ood, residuals / penalty)
    out_of_fold = np.concatenate([error for _, error in errors])
    return {
        "probe_r2_id": _score(known[order], out_of_fold),
        "probe_r2_ood": _score(unseen, unseen - transferred),
    }


def _rotate(
    rows: np.ndarray, is_id: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """ID points in principal axes [n, r]; the squared length of each [r]."""
    if rows.shape[1] < len(rows):
        squares, axes = np.linalg.eigh(rows[is_id].T @ rows[is_id])
        # Those that are zero may be just below it.
        return rows[is_id] @ axes, np.maximum(squares, 0)
    squares, axes = np.linalg.eigh(rows[np.ix_(is_id, is_id)])
    squares = np.maximum(squares, 0)
    return axes * np.sqrt(squares), squares


def _multiply(
    rows: np.ndarray, is_ood: np.ndarray, coefficients: np.ndarray
) -> np.ndarray:
    """Inner products of OOD with ID points, times coefficients [n_id, T]."""
    if rows.shape[1] < len(rows):
        return rows[is_ood] @ (rows[~is_ood].T @ coefficients)
    return rows[is_ood][:, ~is_ood] @ coefficients


def _fit(basis: np.ndarray, known: np.ndarray, folds: list[slice]) -> list:
    """Leave-one-out loss of a fit to all points, and of one without each fold.

    The latter are pairs of the loss and the errors in the fold.
    """
    basis = np.insert(basis, 0, len(basis) ** -0.5, axis=1)  # B, [n, 1 + r]
    residuals = known - basis @ (basis.T @ known)  # [n, T]
    diagonal = 1 - np.square(basis).sum(axis=1)
    fits: list = [_compute_loss(diagonal, residuals)]
    if basis.shape[1] < len(known) // NUM_FOLDS:
        # In the space of the units, by Woodbury's identity.
        for fold in folds:
            out = basis[fold]
            root = cholesky(_subtract(out.T @ out), lower=True)
            across = solve_triangular(root, basis.T, lower=True)
            pulled = cho_solve((root, True), out.T @ residuals[fold])
            left = residuals + basis @ pulled
            rest = 1 - np.square(across).sum(axis=0)
            fits.append((_compute_loss(rest, left, fold), left[fold]))
        return fits
    matrix = _subtract(basis @ basis.T)  # R
    for fold in folds:
        root = cholesky(matrix[fold, fold], lower=True)
        across = solve_triangular(root, matrix[fold], lower=True)
        whitened = solve_triangular(root, residuals[fold], lower=True)
        errors = solve_triangular(root, whitened, lower=True, trans="T")
        left = residuals - across.T @ whitened
        rest = diagonal - np.square(across).sum(axis=0)
        fits.append((_compute_loss(rest, left, fold), errors))
    return fits


def _subtract(product: np.ndarray) -> np.ndarray:
    return np.eye(len(product)) - product


def _compute_loss(
    diagonal: np.ndarray, residuals: np.ndarray, fold: slice = slice(0)
) -> float:
    """Mean square of leave-one-out errors, of the points outside a fold."""
    diagonal = np.delete(diagonal, fold)[:, None]
    return float(np.mean((np.delete(residuals, fold, axis=0) / diagonal) ** 2))


def _score(truth: np.ndarray, errors: np.ndarray) -> float | None:
    if len(truth) < 2:
        return None
    # A factor that is constant over these points has no variance to explain.
    varies = np.ptp(truth, axis=0) > 0  # [T]
    if not varies.any():
        return None
    total = np.square(truth - truth.mean(axis=0)).sum(axis=0)[varies]
    return float(np.mean(1 - np.square(errors).sum(axis=0)[varies] / total))
