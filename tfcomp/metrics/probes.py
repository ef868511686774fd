"""Linear probes, which predict the factors from a layer's activations.

Ridge regression from the activations of one stage to the factors, scored by
R^2 (uniform average over factors) on points that it was not fitted to: out of
fold among ID points, and transferred from ID to OOD points. The penalty of each
fit has the least leave-one-out error among the points that the fit sees.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import numpy as np
from numpy import ndarray as Array

from tfcomp.config.process import count_cores
from tfcomp.metrics.features import Rows, Scores, single_threaded
from tfcomp.metrics.metric import Chart, computes
from tfcomp.statistics.limits import AT_MOST_ONE, SHARE

if TYPE_CHECKING:
    from tfcomp.metrics.run_analysis import RunAnalysis

# In units of the squared length of a typical row. Below 1e-4, the float32
# rounding of the Gram matrix shows; at 1e4 nothing is left of a prediction.
PENALTIES = np.logspace(-4, 4, 9)
NUM_FOLDS = 5
MAX_BYTES = 2**28  # of all threads, with a decomposition each
# Relative to the largest square of a principal axis: less is rounding, of
# the Gram matrix of features and of float64.
RANK, TINY = 1e-6, 1e-13
# Two points per fold, for the inner cross-validation as well.
MIN_POINTS = 2 * NUM_FOLDS

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
    rows: Array, targets: Array, is_ood: Array, seed: int = 0
) -> Scores:
    """Returns cross-validated and transferred R^2 of a linear probe.

    It goes from the rows of `compute_rows` to factor values [n, T]; the seed
    deals ID points into folds. None for fewer than 10 ID or 2 OOD points, if no
    target varies, or activations are not finite.
    """
    known, unseen = np.flatnonzero(~is_ood), np.flatnonzero(is_ood)
    enough = len(known) >= MIN_POINTS and targets.size
    if not enough or not np.isfinite(rows).all():
        return dict(NO_SCORES)
    truth = np.asarray(targets, np.float64)
    errors = truth.copy()
    order = known[np.random.RandomState(seed).permutation(len(known))]
    folds = np.array_split(order, NUM_FOLDS)
    fits = [(np.setdiff1d(known, fold), fold) for fold in folds]
    fits.append((known, unseen))
    most = max(1, MAX_BYTES // (rows.nbytes + 1))
    with ThreadPoolExecutor(min(count_cores(), most)) as pool:
        found = pool.map(lambda fit: _predict(rows, truth, *fit), fits)
        for (_, points), predicted in zip(fits, found, strict=True):
            errors[points] -= predicted
    return {
        "probe_r2_id": _score(truth[known], errors[known]),
        "probe_r2_ood": _score(truth[unseen], errors[unseen]),
    }


def _predict(rows: Array, truth: Array, seen: Array, unseen: Array) -> Array:
    mean = truth[seen].mean(axis=0)
    basis, squares, others = _decompose(rows, seen, unseen)
    onto = basis.T @ (truth[seen] - mean)  # [k, T]
    sizes = np.ptp(truth, axis=0)  # of whatever units
    sizes[sizes == 0] = 1.0
    fits = []
    for penalty in PENALTIES:
        shrunk = basis / (squares + penalty)
        left = truth[seen] - mean - shrunk @ onto
        leverage = 1 / len(seen) + np.einsum("nk,nk->n", shrunk, basis)
        loss = np.mean((left / (1 - leverage)[:, None] / sizes) ** 2)
        fits.append((loss, penalty))
    penalty = min(fits)[1]
    return mean + others @ (onto / (squares + penalty)[:, None])


def _decompose(
    rows: Array, seen: Array, unseen: Array
) -> tuple[Array, Array, Array]:
    """Returns seen points on axes [n, k], squares [k] and unseen [m, k]."""
    if rows.shape[1] < len(rows):  # units
        points = rows - rows[seen].mean(axis=0)
        squares, axes = np.linalg.eigh(points[seen].T @ points[seen])
        points = points @ axes
        return points[seen], np.maximum(squares, 0), points[unseen]
    products = rows[:, seen] - rows[np.ix_(seen, seen)].mean(axis=0)
    products = products - products.mean(axis=1, keepdims=True)
    squares, axes = np.linalg.eigh(products[seen])
    kept = squares > TINY * squares.max(initial=0.0)
    lengths, axes = np.sqrt(squares[kept]), axes[:, kept]
    return axes * lengths, squares[kept], products[unseen] @ axes / lengths


@single_threaded
def score_fitted(rows: Array, targets: Array) -> float | None:
    """Returns R^2 of targets [n, T] where rows of `compute_rows` are fitted."""
    if not targets.size or not np.isfinite(rows).all():
        return None
    every = np.arange(len(rows))
    axes, squares, _ = _decompose(rows, every, every[:0])
    kept = squares > RANK * squares.max(initial=0.0)
    axes = axes[:, kept] / np.sqrt(squares[kept])
    truth = np.asarray(targets, np.float64) - targets.mean(axis=0)
    return _score(truth, truth - axes @ (axes.T @ truth))


def _score(truth: Array, errors: Array) -> float | None:
    # A factor that is constant over these points has no variance to explain.
    varies = len(truth) > 1 and np.ptp(truth, axis=0) > 0  # [T]
    if not np.any(varies):
        return None
    total = np.square(truth - truth.mean(axis=0)).sum(axis=0)[varies]
    return float(np.mean(1 - np.square(errors).sum(axis=0)[varies] / total))


@computes("stages", AT_MOST_ONE, "probe_r2_grid", better="high")
@computes("stages", SHARE, "probe_r2_fitted")
def measure_grid_probes(analysis: RunAnalysis) -> Rows:
    """Scores linear probes of the factors (figures 2, 11 to 14)."""
    return analysis.grid_probes
