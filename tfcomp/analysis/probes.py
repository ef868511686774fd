"""Linear probes, which predict the factors from a layer's activations.

Ridge regression from the activations of one stage to the factors, scored by
R^2 (uniform average over factors) on points that it was not fitted to, since
with more units than points it fits even noise: out of fold among ID points, and
transferred from ID to OOD points.

Activations are normalized as in `features`. One eigendecomposition of the ID
points, of units by units or of points by points, whichever is smaller, serves
all penalties and folds: with the vector of ones, scaled to length one, and the
principal axes u_j, scaled to s_j / sqrt(s_j^2 + penalty), as columns of B,

    R = I - B B^T         makes residuals R y of targets y at fitted points
    R_TT^-1 (R y)_T       are the errors of a fit that does not see points T
    R_SS - R_ST R_TT^-1 R_TS   is the R of that fit at the other points S
"""

import numpy as np
from scipy.linalg import cho_solve, cholesky, solve_triangular

from tfcomp.analysis.features import single_threaded
from tfcomp.statistics.limits import AT_MOST_ONE
from tfcomp.statistics.metric import Chart, computes

# In units of the squared length of a typical row. Below 1e-4, the float32
# rounding of the Gram matrix shows; at 1e4 nothing is left of a prediction.
PENALTIES = np.logspace(-4, 4, 9)
NUM_FOLDS = 5
# Relative to the largest square of a principal axis: less is rounding.
RANK = 1e-6
# Two points per fold, for the inner cross-validation as well.
MIN_POINTS = 2 * NUM_FOLDS

Scores = dict[str, float | None]
NO_SCORES: Scores = {"probe_r2_id": None, "probe_r2_ood": None}


PROBES = Chart(
    "probes",
    "Linear probes",
    "R²",
    "R² of a ridge regression from the activations of a stage to the factors. "
    "1 is perfect, and 0 is no better than predicting the mean.",
)


@computes(
    "stage",
    AT_MOST_ONE,
    better="high",
    chart=PROBES,
    probe_r2_id="linear probes, R² in ID: fitted to ID points and scored at "
    "others of them (out of fold)",
)
@computes(
    "stage",
    AT_MOST_ONE,
    better="high",
    chart=PROBES,
    is_leading=True,
    floor=-1.0,
    probe_r2_ood="linear probes, R² in OOD: fitted to ID points and scored at "
    "OOD points",
)
@single_threaded
def probe_rows(
    rows: np.ndarray, targets: np.ndarray, is_ood: np.ndarray, seed: int = 0
) -> Scores:
    """Returns cross-validated and transferred R^2 of a linear probe.

    It goes from the rows of `compute_rows` to factor values [n, T]. The seed
    shuffles ID points before they are dealt into folds; penalties are chosen by
    leave-one-out errors inside of the points that a fit sees. R^2 is out of
    fold over ID points, and over OOD points of a probe fitted to all ID points.
    None where there are too few points (10 ID, 2 OOD), no target varies, or
    activations are not finite.
    """
    known, count = ~is_ood, np.count_nonzero(~is_ood)
    if count < MIN_POINTS or not targets.size or not np.isfinite(rows).all():
        return dict(NO_SCORES)
    if rows.shape[1] < len(rows):  # units
        rows = rows - rows[known].mean(axis=0)
        squares, axes = np.linalg.eigh(rows[known].T @ rows[known])
        unseen, points = rows[is_ood] @ axes, rows[known] @ axes
        lengths = np.ones(len(squares))
    else:  # inner products
        # Again: rounding would leave the vector of ones among principal axes.
        rows = rows - rows[known].mean(axis=0)
        rows = rows - rows[:, known].mean(axis=1, keepdims=True)
        squares, points = np.linalg.eigh(rows[np.ix_(known, known)])
        unseen = rows[np.ix_(is_ood, known)] @ points
        lengths = np.sqrt(np.maximum(squares, 0))
    # The smallest are zero up to rounding, and may be just below it.
    squares = np.maximum(squares, 0)
    truth = np.asarray(targets, np.float64) - targets[known].mean(axis=0)
    # Shuffled, so that a fold is a slice.
    order = np.random.RandomState(seed).permutation(count)
    parts = np.array_split(np.arange(count), NUM_FOLDS)
    folds = [slice(part[0], part[-1] + 1) for part in parts]
    # The best loss, with its penalty of all ID points, its errors of each fold.
    best: list = [(np.inf, None)] * (1 + NUM_FOLDS)
    for penalty in PENALTIES:
        basis = points[order] * (lengths / np.sqrt(squares + penalty))
        loss, *without = _fit(basis, truth[known][order], folds)
        pairs = zip(best, [(loss, penalty), *without], strict=True)
        best = [min(pair, key=lambda fit: fit[0]) for pair in pairs]
    (_, penalty), *errors = best
    weights = points.T @ truth[known] / (squares + penalty)[:, None]
    out_of_fold = np.concatenate([error for _, error in errors])
    return {
        "probe_r2_id": _score(truth[known][order], out_of_fold),
        "probe_r2_ood": _score(truth[is_ood], truth[is_ood] - unseen @ weights),
    }


@single_threaded
def score_fitted(rows: np.ndarray, targets: np.ndarray) -> float | None:
    """Returns R^2 of least squares at the points that it was fitted to.

    It goes from the rows of `compute_rows` without OOD points to factor values
    [n, T], as the probe of the published code. With more units than points it
    is 1 even for noise.
    """
    if not targets.size or not np.isfinite(rows).all():
        return None
    is_gram = rows.shape[1] == len(rows)
    squares, axes = np.linalg.eigh(rows if is_gram else rows.T @ rows)
    kept = squares > RANK * squares.max(initial=0.0)
    axes = axes[:, kept]
    if not is_gram:
        axes = rows @ axes / np.sqrt(squares[kept])
    truth = np.asarray(targets, np.float64) - targets.mean(axis=0)
    return _score(truth, truth - axes @ (axes.T @ truth))


def _fit(basis: np.ndarray, truth: np.ndarray, folds: list[slice]) -> list:
    """Returns losses of all points, and without each fold with its errors."""
    count = len(basis)
    basis = np.insert(basis, 0, count**-0.5, axis=1)  # B, [n, 1 + r]
    residuals = truth - basis @ (basis.T @ truth)  # [n, T]
    diagonal = 1 - np.square(basis).sum(axis=1)
    fits: list = [_compute_loss(diagonal, residuals)]
    # By Woodbury's identity in the space of the units, if that is smaller.
    narrow = basis.shape[1] < count // NUM_FOLDS
    matrix = np.eye(0 if narrow else count)  # R
    if not narrow:
        matrix -= basis @ basis.T
    for fold in folds:
        out, seen = basis[fold], residuals[fold]
        if narrow:
            root = cholesky(np.eye(out.shape[1]) - out.T @ out, lower=True)
            across = solve_triangular(root, basis.T, lower=True)
            left = residuals + basis @ cho_solve((root, True), out.T @ seen)
            rest, errors = np.ones(count), left[fold]
        else:
            root = cholesky(matrix[fold, fold], lower=True)
            across = solve_triangular(root, matrix[fold], lower=True)
            errors = cho_solve((root, True), seen)
            left, rest = residuals - matrix[:, fold] @ errors, diagonal
        rest = rest - np.square(across).sum(axis=0)
        fits.append((_compute_loss(rest, left, fold), errors))
    return fits


def _compute_loss(
    diagonal: np.ndarray, residuals: np.ndarray, fold: slice = slice(0)
) -> float:
    """Returns the mean square of leave-one-out errors outside of a fold."""
    diagonal = np.delete(diagonal, fold)[:, None]
    return float(np.mean((np.delete(residuals, fold, axis=0) / diagonal) ** 2))


def _score(truth: np.ndarray, errors: np.ndarray) -> float | None:
    # A factor that is constant over these points has no variance to explain.
    varies = len(truth) > 1 and np.ptp(truth, axis=0) > 0  # [T]
    if not np.any(varies):
        return None
    total = np.square(truth - truth.mean(axis=0)).sum(axis=0)[varies]
    return float(np.mean(1 - np.square(errors).sum(axis=0)[varies] / total))
