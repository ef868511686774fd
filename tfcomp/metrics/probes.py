"""Linear probes, which predict the factors from a layer's activations.

Ridge regression from the activations of one stage to the factors, scored by
R^2 (uniform average over factors) on points that it was not fitted to: out of
fold among ID points, and transferred from ID to OOD points. The penalty of each
fit has the least leave-one-out error among the points that the fit sees.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
from numpy import ndarray as Array

from tfcomp.config.process import count_cores
from tfcomp.metrics.features import single_threaded
from tfcomp.metrics.registry import Chart, Scores, computes
from tfcomp.statistics.limits import AT_MOST_ONE

# In units of the squared length of a typical row. Below 1e-4, the float32
# rounding of the Gram matrix shows; at 1e4 nothing is left of a prediction.
PENALTIES = np.logspace(-4, 4, 9)
NUM_FOLDS = 5
MAX_BYTES = 2**28  # of all threads, with a decomposition each
# Relative to the largest square of a principal axis: less is rounding.
TINY = 1e-13
# Two points per fold, for the inner cross-validation as well.
MIN_POINTS = 2 * NUM_FOLDS

NO_SCORES: Scores = {
    "probe_r2_id": None,
    "probe_r2_ood": None,
}

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
    probe_r2_ood="linear probes, R² in OOD: fitted to ID points and scored at "
    "OOD points",
)
@single_threaded
def probe_rows(
    rows: Array,
    targets: Array,
    is_ood: Array,
    seed: int = 0,
) -> Scores:
    """Scores a linear probe out of fold in ID, and from ID to OOD.

    Args:
        rows: A stage by `compute_rows`, [n, units] or [n, n].
        targets: Values of the factors, [n, T].
        is_ood: Which points are held out, [n].
        seed: Deals ID points into folds.

    Returns:
        R^2 by name. None for fewer than 10 ID or 2 OOD points, if no target
        varies, or activations are not finite.
    """
    id_rows = np.flatnonzero(~is_ood)
    ood_rows = np.flatnonzero(is_ood)
    is_enough = len(id_rows) >= MIN_POINTS and targets.size
    is_finite = np.isfinite(rows).all()
    if not is_enough or not is_finite:
        return dict(NO_SCORES)

    fits = [*_list_folds(id_rows, seed), (id_rows, ood_rows)]
    truth = np.asarray(targets, np.float64)
    errors = truth.copy()

    def predict(fit: tuple[Array, Array]) -> Array:
        return _predict(rows, truth, *fit)

    thread_bytes = rows.nbytes + 1
    most = max(1, MAX_BYTES // thread_bytes)
    num_threads = min(count_cores(), most)
    with ThreadPoolExecutor(num_threads) as pool:
        predictions = pool.map(predict, fits)
        for (_, points), prediction in zip(fits, predictions, strict=True):
            errors[points] -= prediction
    return {
        "probe_r2_id": _score(truth[id_rows], errors[id_rows]),
        "probe_r2_ood": _score(truth[ood_rows], errors[ood_rows]),
    }


def _list_folds(rows: Array, seed: int) -> list[tuple[Array, Array]]:
    """Deals rows into folds: for each, the other rows and its own."""
    order = np.random.RandomState(seed).permutation(len(rows))
    folds = []
    for fold in np.array_split(rows[order], NUM_FOLDS):
        folds.append((np.setdiff1d(rows, fold), fold))
    return folds


def _predict(
    rows: Array,
    truth: Array,
    seen: Array,
    unseen: Array,
) -> Array:
    """Predicts targets of unseen points by ridge regression on seen ones.

    Args:
        rows: A stage by `compute_rows`.
        truth: Targets of all points, [n, T].
        seen: Rows that are fitted.
        unseen: Rows that are predicted.

    Returns:
        Predictions, [unseen, T].
    """
    seen_truth = truth[seen]
    mean = seen_truth.mean(axis=0)
    deviations = seen_truth - mean
    basis, squares, others = _decompose(rows, seen, unseen)
    onto = basis.T @ deviations  # [k, T]
    sizes = np.ptp(truth, axis=0)  # of whatever units
    sizes[sizes == 0] = 1.0

    losses = []
    num_seen = len(seen)
    for penalty in PENALTIES:
        shrunk = basis / (squares + penalty)
        residual = deviations - shrunk @ onto
        leverage = 1 / num_seen + np.einsum("nk,nk->n", shrunk, basis)
        left_out = residual / (1 - leverage)[:, None]
        relative = left_out / sizes
        losses.append((np.mean(relative**2), penalty))

    _, penalty = min(losses)
    weights = onto / (squares + penalty)[:, None]
    return mean + others @ weights


def _decompose(
    rows: Array,
    seen: Array,
    unseen: Array,
) -> tuple[Array, Array, Array]:
    """Rotates points to the principal axes of the seen ones.

    Args:
        rows: A stage by `compute_rows`, [n, units] or [n, n].
        seen: Rows that are fitted, numbers [n].
        unseen: Rows that are predicted, numbers [m].

    Returns:
        Seen points [n, k], squares of the axes [k], and unseen points [m, k].
    """
    if rows.shape[1] < len(rows):  # units
        mean = rows[seen].mean(axis=0)
        points = rows - mean
        # Two arrays: the product of one with itself has other last bits.
        covariance = points[seen].T @ points[seen]
        squares, axes = np.linalg.eigh(covariance)
        squares = np.maximum(squares, 0)
        points = points @ axes
        return points[seen], squares, points[unseen]

    gram = rows[np.ix_(seen, seen)]
    products = rows[:, seen] - gram.mean(axis=0)
    means = products.mean(axis=1)
    products = products - means[:, np.newaxis]
    squares, axes = np.linalg.eigh(products[seen])

    largest = squares.max(initial=0.0)
    is_kept = squares > TINY * largest
    squares = squares[is_kept]
    lengths = np.sqrt(squares)
    axes = axes[:, is_kept]
    others = products[unseen] @ axes / lengths
    return axes * lengths, squares, others


def _score(truth: Array, errors: Array) -> float | None:
    """Averages R^2 over the targets that vary; None if none does.

    Args:
        truth: Targets, [n, T].
        errors: Targets less their predictions, [n, T].
    """
    # A factor that is constant over these points has no variance to explain.
    if len(truth) < 2:
        return None
    varies = np.ptp(truth, axis=0) > 0  # [T]
    if not varies.any():
        return None

    total = np.sum((truth - truth.mean(axis=0)) ** 2, axis=0)
    squared_error = np.sum(errors**2, axis=0)
    r2 = 1 - squared_error[varies] / total[varies]
    return float(np.mean(r2))
