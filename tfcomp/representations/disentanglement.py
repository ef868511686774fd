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
    codes: Array,
    index: Array,
    is_ordered: Sequence[bool],
) -> Scores:
    """Computes all scores; DCI and SAP of a fixed random sample of rows.

    Args:
        codes: Codes, [n, d].
        index: Grid indices of the factors, [n, F].
        is_ordered: Which factors are ordered.

    Returns:
        Scores by name.
    """
    codes = np.asarray(codes, np.float64)
    rows = np.random.default_rng(0).permutation(len(codes))[:MAX_ROWS]
    scores = {
        **compute_dci(codes[rows], index[rows]),
        "mig": compute_mig(codes, index),
        "sap": compute_sap(codes[rows], index[rows], is_ordered),
        "factor_vae": compute_factor_vae(codes, index),
    }
    return {name: finite_or_none(value) for name, value in scores.items()}


def compute_dci(codes: Array, index: Array) -> dict[str, float]:
    """Computes disentanglement, completeness and informativeness.

    Args:
        codes: Codes, [n, d].
        index: Grid indices of the factors, [n, F].
    """
    from sklearn.ensemble import GradientBoostingClassifier

    cut = 3 * len(codes) // 4
    importance = []
    accuracy = []
    for labels in index.T:
        if np.ptp(labels[:cut]) == 0:
            continue
        model = GradientBoostingClassifier(random_state=0)
        model.fit(codes[:cut], labels[:cut])
        importance.append(model.feature_importances_)
        accuracy.append(model.score(codes[cut:], labels[cut:]))

    matrix = np.reshape(importance, (-1, codes.shape[1])).T  # [d, F]
    total = matrix.sum() or np.nan
    num_codes, num_factors = matrix.shape
    by_code = 1 - _compute_entropy(matrix.T, base=num_factors)
    by_factor = 1 - _compute_entropy(matrix, base=num_codes)
    disentanglement = by_code @ matrix.sum(axis=1) / total
    completeness = by_factor @ matrix.sum(axis=0) / total
    return {
        "dci_disentanglement": float(disentanglement),
        "dci_completeness": float(completeness),
        "dci_informativeness": float(np.mean(accuracy or np.nan)),
    }


def _compute_entropy(weights: Array, base: int) -> Array:
    """Computes entropies [m] of the columns of weights [k, m]."""
    from scipy.special import entr

    shares = weights / np.maximum(weights.sum(axis=0), 1e-300)
    return entr(shares).sum(axis=0) / np.log(max(base, 2))


def compute_mig(codes: Array, index: Array) -> float:
    """Computes the mutual information gap.

    Args:
        codes: Codes, [n, d].
        index: Grid indices of the factors, [n, F].
    """
    from sklearn.metrics import mutual_info_score

    bins = []
    for code in codes.T:
        edges = np.linspace(code.min(), code.max(), NUM_BINS + 1)
        bins.append(np.digitize(code, edges[1:-1]))

    gaps = []
    for labels in index.T:
        entropy = mutual_info_score(labels, labels)
        if entropy > 0:
            shared = [mutual_info_score(labels, code) for code in bins]
            gaps.append(_find_gap(shared) / entropy)
    return float(np.mean(gaps))


def _find_gap(values: Sequence[float]) -> float:
    """Computes the difference of the two largest values, or the only one."""
    *_, second, first = sorted([0.0, *values])
    return first - second


def compute_sap(
    codes: Array,
    index: Array,
    is_ordered: Sequence[bool],
) -> float:
    """Computes the separated attribute predictability.

    Args:
        codes: Codes, [n, d].
        index: Grid indices of the factors, [n, F].
        is_ordered: Which factors are ordered.
    """
    cut = 3 * len(codes) // 4
    gaps = []
    for labels, ordered in zip(index.T, is_ordered, strict=True):
        if np.ptp(labels[:cut]) > 0:
            scores = [_predict(code, labels, ordered) for code in codes.T]
            gaps.append(_find_gap(scores))
    return float(np.mean(gaps or np.nan))


def _predict(
    code: Array,
    labels: Array,
    is_ordered: bool,
) -> float:
    """Scores how well a code [n] predicts the values of a factor [n].

    Returns:
        R^2 of an ordered factor, else the accuracy of a support vector machine
        on the last quarter.
    """
    from sklearn.svm import LinearSVC

    if np.ptp(code) == 0:
        return 0.0
    if is_ordered:
        return float(np.corrcoef(code, labels)[0, 1] ** 2)

    cut = 3 * len(code) // 4
    column = ((code - code.mean()) / code.std())[:, None]
    model = LinearSVC(
        C=0.01,
        class_weight="balanced",
        max_iter=10_000,
    )
    model.fit(column[:cut], labels[:cut])
    return float(model.score(column[cut:], labels[cut:]))


def compute_factor_vae(codes: Array, index: Array) -> float:
    """Computes the accuracy of the majority vote on new batches.

    Args:
        codes: Codes, [n, d].
        index: Grid indices of the factors, [n, F].
    """
    spread = codes.std(axis=0)
    is_alive = spread > DEAD_SPREAD * spread.max(initial=0.0)
    if not is_alive.any():
        return 0.0

    scaled = codes[:, is_alive] / spread[is_alive]
    num_factors = index.shape[1]
    factors = [f for f in range(num_factors) if np.ptp(index[:, f]) > 0]
    votes = np.zeros((2, scaled.shape[1], num_factors), int)
    rng = np.random.default_rng(0)
    for number in range(2 * NUM_VOTES):
        factor = rng.choice(factors)
        value = rng.choice(index[:, factor])
        rows = np.flatnonzero(index[:, factor] == value)
        batch = rng.choice(rows, BATCH)
        code = scaled[batch].var(axis=0).argmin()
        votes[number % 2, code, factor] += 1

    train_votes, test_votes = votes
    majority = train_votes.argmax(axis=1)
    hits = test_votes[np.arange(len(test_votes)), majority].sum()
    return float(hits / test_votes.sum())
