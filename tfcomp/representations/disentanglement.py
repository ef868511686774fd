"""Disentanglement scores of codes, by the definitions of their papers.

For codes [n, d] and grid indices of factors [n, F]:

    dci_*        Eastwood and Williams 2018, with the importances of
                 scikit-learn's `GradientBoostingClassifier` (Locatello et al.
                 2019), fitted to three quarters of the rows. Disentanglement
                 and completeness are entropies of the importances,
                 informativeness is the accuracy on the other rows.
    mig          Chen et al. 2018: gap between the two codes (in 20 bins) that
                 share most information with a factor, over its entropy
    sap          Kumar et al. 2018: the same gap of squared correlations of
                 ordered factors, and of accuracies of a linear support vector
                 machine on one code for categorical ones
    factor_vae   Kim and Mnih 2018: accuracy of a vote for the factor that was
                 held fixed, from the code with the least variance in a batch

Each is in [0, 1], and 1 is best.
"""

from collections.abc import Sequence

import numpy as np
from numpy import ndarray as Array

from tfcomp.metrics.features import Scores, finite_or_none

MAX_ROWS = 2000  # of DCI and of support vector machines
NUM_BINS = 20
NUM_VOTES = 800
BATCH = 64
DEAD_SPREAD = 1e-4  # standard deviation of a code, over the largest


def measure_codes(
    codes: Array, index: Array, is_ordered: Sequence[bool], seed: int = 0
) -> Scores:
    """Returns all scores by name; DCI and SAP are computed on a random sample.

    Codes are [n, d], grid indices [n, F]; `is_ordered` marks ordered factors.
    """
    codes = np.asarray(codes, np.float64)
    rows = np.random.default_rng(seed).permutation(len(codes))[:MAX_ROWS]
    some = codes[rows], index[rows]
    scores = {
        **compute_dci(*some, seed),
        "mig": compute_mig(codes, index),
        "sap": compute_sap(*some, is_ordered),
        "factor_vae": compute_factor_vae(codes, index, seed),
    }
    return {name: finite_or_none(value) for name, value in scores.items()}


def compute_dci(codes: Array, index: Array, seed: int = 0) -> dict[str, float]:
    """Returns disentanglement, completeness and informativeness."""
    from sklearn.ensemble import GradientBoostingClassifier

    cut = 3 * len(codes) // 4
    importance, accuracy = [], []
    for labels in index.T:
        if np.ptp(labels[:cut]) == 0:
            continue
        model = GradientBoostingClassifier(random_state=seed)
        model.fit(codes[:cut], labels[:cut])
        importance.append(model.feature_importances_)
        accuracy.append(model.score(codes[cut:], labels[cut:]))
    matrix = np.reshape(importance, (-1, codes.shape[1])).T  # [d, F]
    total = matrix.sum() or np.nan
    by_code = 1 - _entropy(matrix.T, matrix.shape[1])
    by_factor = 1 - _entropy(matrix, matrix.shape[0])
    return {
        "dci_disentanglement": float(by_code @ matrix.sum(axis=1) / total),
        "dci_completeness": float(by_factor @ matrix.sum(axis=0) / total),
        "dci_informativeness": float(np.mean(accuracy or np.nan)),
    }


def _entropy(weights: Array, base: int) -> Array:
    from scipy.special import entr

    shares = weights / np.maximum(weights.sum(axis=0), 1e-300)
    return entr(shares).sum(axis=0) / np.log(max(base, 2))


def compute_mig(codes: Array, index: Array) -> float:
    """Returns the mutual information gap."""
    from sklearn.metrics import mutual_info_score

    gaps, bins = [], []
    for code in codes.T:
        edges = np.linspace(code.min(), code.max(), NUM_BINS + 1)
        bins.append(np.digitize(code, edges[1:-1]))
    for labels in index.T:
        entropy = mutual_info_score(labels, labels)
        if entropy > 0:
            shared = [mutual_info_score(labels, code) for code in bins]
            gaps.append(_find_gap(shared) / entropy)
    return float(np.mean(gaps))


def _find_gap(values: Sequence[float]) -> float:
    """Returns the difference of the two largest values, or the only one."""
    *_, second, first = sorted([0.0, *values])
    return first - second


def compute_sap(
    codes: Array, index: Array, is_ordered: Sequence[bool]
) -> float:
    """Returns the separated attribute predictability."""
    gaps = [
        _find_gap([_predict(code, labels, ordered) for code in codes.T])
        for labels, ordered in zip(index.T, is_ordered, strict=True)
        if np.ptp(labels[: 3 * len(labels) // 4]) > 0
    ]
    return float(np.mean(gaps or np.nan))


def _predict(code: Array, labels: Array, is_ordered: bool) -> float:
    """Returns R^2, or the accuracy of a machine on the last quarter."""
    from sklearn.svm import LinearSVC

    if np.ptp(code) == 0:
        return 0.0
    if is_ordered:
        return float(np.corrcoef(code, labels)[0, 1] ** 2)
    cut = 3 * len(code) // 4
    column = ((code - code.mean()) / code.std())[:, None]
    model = LinearSVC(C=0.01, class_weight="balanced", max_iter=10_000)
    model.fit(column[:cut], labels[:cut])
    return float(model.score(column[cut:], labels[cut:]))


def compute_factor_vae(codes: Array, index: Array, seed: int = 0) -> float:
    """Returns the accuracy of the majority vote on new batches."""
    rng = np.random.default_rng(seed)
    spread = codes.std(axis=0)
    alive = spread > DEAD_SPREAD * spread.max(initial=0.0)
    if not alive.any():
        return 0.0
    scaled = codes[:, alive] / spread[alive]
    factors = [f for f in range(index.shape[1]) if np.ptp(index[:, f]) > 0]
    votes = np.zeros((2, scaled.shape[1], index.shape[1]), int)
    for number in range(2 * NUM_VOTES):
        factor = rng.choice(factors)
        value = rng.choice(index[:, factor])
        batch = rng.choice(np.flatnonzero(index[:, factor] == value), BATCH)
        code = scaled[batch].var(axis=0).argmin()
        votes[number % 2, code, factor] += 1
    train, test = votes
    hits = test[np.arange(len(test)), train.argmax(axis=1)].sum()
    return float(hits / test.sum())
