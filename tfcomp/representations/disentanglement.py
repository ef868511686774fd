"""Disentanglement scores of codes, beside their chance level.

Scores of codes [n, d] with grid indices of factors [n, F], by the definitions
of their papers:

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

Each is in [0, 1], and 1 is best. Of few rows, noise has high scores: 48 random
codes of 32 units have a FactorVAE score of 0.8. So scores stand beside
scores of permuted codes, and with fewer than 20 rows for each value there is
none.

FactorVAE's score does not ask for a code of one unit for each factor: rotated
codes have a score of 1, too, as long as each factor has a unit that it moves
more than other factors do. DCI, MIG and SAP tell them apart.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy import ndarray as Array

from tfcomp.datasets.factors import FactorSpace, number_values
from tfcomp.metrics.registry import average, finite_or_none

Row = dict[str, Any]
Measure = Callable[[Array, Array], dict[str, float]]
DCI = ("dci_disentanglement", "dci_completeness", "dci_informativeness")
FITTED = (*DCI, "sap")  # by models
COUNTED = ("mig", "factor_vae")
MAX_ROWS = 2000  # of DCI and of support vector machines
MIN_ROWS = 20  # for each value of a factor
NUM_PERMUTATIONS = 10
# Rows times units times values of all factors over all permutations: a minute
# of gradient boosting.
MAX_BOOSTED = 600_000
NUM_BINS = 20
NUM_VOTES = 800
BATCH = 64
DEAD_SPREAD = 1e-4  # standard deviation of a code, over the largest


def measure_codes(
    space: FactorSpace,
    points: Array,
    codes: Array,
) -> list[Row]:
    """Computes DCI, MIG, SAP and FactorVAE's score, and their chance level.

    Args:
        space: The factors.
        points: Their values, [n, F].
        codes: Codes of these points, [n, d].

    Returns:
        Rows with `score`, `value`, `chance` (the mean over `permutations`
        random orders of the codes) and `n`, the number of codes. DCI and SAP
        are of a fixed random sample. Values are None with fewer than 20 codes
        for each value of a factor.
    """
    index = space.to_index(points)
    is_ordered = [not factor.categorical for factor in space]
    codes = np.asarray(codes, np.float64)
    rng = np.random.default_rng(0)
    order = rng.permutation(len(codes))
    sample = order[:MAX_ROWS]
    sampled_codes = codes[sample]
    boosted = sampled_codes.size * sum(space.shape)
    permutations = MAX_BOOSTED // boosted
    permutations = max(1, min(permutations, NUM_PERMUTATIONS))

    def fit_models(codes: Array, index: Array) -> dict[str, float]:
        scores = compute_dci(codes, index)
        scores["sap"] = compute_sap(codes, index, is_ordered)
        return scores

    def count_codes(codes: Array, index: Array) -> dict[str, float]:
        return {
            "mig": compute_mig(codes, index),
            "factor_vae": compute_factor_vae(codes, index),
        }

    rows = _list_scores(
        FITTED,
        fit_models,
        sampled_codes,
        index[sample],
        permutations,
    )
    rows += _list_scores(
        COUNTED,
        count_codes,
        codes,
        index,
        NUM_PERMUTATIONS,
    )
    return rows


def _list_scores(
    names: Sequence[str],
    compute: Measure,
    codes: Array,
    index: Array,
    permutations: int,
) -> list[Row]:
    """Computes scores, and their means over permuted codes.

    Args:
        names: The scores.
        compute: Computes scores by name.
        codes: Codes, [n, d].
        index: Grid indices of the factors, [n, F].
        permutations: The number of permutations.
    """
    count = len(codes)
    levels = map(np.unique, index.T)
    most_levels = max(map(len, levels))
    given = dict.fromkeys(names, np.nan)
    if count >= MIN_ROWS * most_levels:
        given = compute(codes, index)
    else:
        permutations = 0

    rng = np.random.default_rng(0)
    permuted = []
    for _ in range(permutations):
        permuted_codes = rng.permutation(codes)
        permuted.append(compute(permuted_codes, index))

    rows = []
    for name in names:
        chance = [scores[name] for scores in permuted]
        row: Row = {
            "score": name,
            "value": finite_or_none(given[name]),
            "chance": average(chance),
            "n": count,
            "permutations": permutations,
        }
        rows.append(row)
    return rows


def compute_dci(
    codes: Array,
    index: Array,
) -> dict[str, float]:
    """Computes disentanglement, completeness and informativeness.

    Args:
        codes: Codes, [n, d].
        index: Grid indices of the factors, [n, F].
    """
    from sklearn.ensemble import GradientBoostingClassifier

    count, num_codes = codes.shape
    cut = 3 * count // 4
    train_codes = codes[:cut]
    test_codes = codes[cut:]
    importance = []
    accuracy = []
    for labels in index.T:
        train_labels = labels[:cut]
        test_labels = labels[cut:]
        if np.ptp(train_labels) == 0:
            continue
        model = GradientBoostingClassifier(random_state=0)
        model.fit(train_codes, train_labels)
        score = model.score(test_codes, test_labels)
        importance.append(model.feature_importances_)
        accuracy.append(score)

    shape = (-1, num_codes)
    by_factor = np.reshape(importance, shape)  # [F, d]
    by_code = by_factor.T
    informativeness = np.mean(accuracy or np.nan)
    return {
        "dci_disentanglement": _weigh_purity(by_factor),
        "dci_completeness": _weigh_purity(by_code),
        "dci_informativeness": float(informativeness),
    }


def _weigh_purity(importance: Array) -> float:
    """Averages 1 less the entropy of columns, weighted by their sums.

    Args:
        importance: Weights, [k, m].
    """
    totals = importance.sum(axis=0)
    entropies = _compute_entropy(importance, base=len(importance))
    purity = 1 - entropies
    total = totals.sum() or np.nan
    return float(purity @ totals / total)


def _compute_entropy(weights: Array, base: int) -> Array:
    """Computes entropies [m] of the columns of weights [k, m]."""
    from scipy.special import entr

    totals = weights.sum(axis=0)
    totals = np.maximum(totals, 1e-300)
    terms = entr(weights / totals)
    nats = terms.sum(axis=0)
    unit = np.log(max(base, 2))
    return nats / unit


def compute_mig(codes: Array, index: Array) -> float:
    """Computes the mutual information gap.

    Args:
        codes: Codes, [n, d].
        index: Grid indices of the factors, [n, F].
    """
    bins = []
    for code in codes.T:
        lowest = code.min()
        highest = code.max()
        edges = np.linspace(lowest, highest, NUM_BINS + 1)
        inner = edges[1:-1]
        binned = np.digitize(code, inner)
        bins.append(number_values(binned))

    gaps = []
    for column in index.T:
        labels = number_values(column)
        entropy = compute_information(labels, labels)
        if entropy > 0:
            shared = [compute_information(labels, code) for code in bins]
            gap = _find_gap(shared)
            gaps.append(gap / entropy)
    mean = np.mean(gaps)
    return float(mean)


def compute_information(first: Array, second: Array) -> float:
    """Computes the mutual information of two labels in nats.

    Args:
        first: Labels as `number_values` returns them, [n].
        second: Others, [n].
    """
    from sklearn.metrics import mutual_info_score

    shape = (first.max() + 1, second.max() + 1)
    counts = np.zeros(shape, int)
    np.add.at(counts, (first, second), 1)
    # Given the counts, it does not check labels, which takes longest.
    return mutual_info_score(first, second, contingency=counts)


def _find_gap(values: Sequence[float]) -> float:
    """Computes the difference of the two largest values, or the only one."""
    rising = sorted([0.0, *values])
    return rising[-1] - rising[-2]


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
        train_labels = labels[:cut]
        if np.ptp(train_labels) == 0:
            continue
        scores = [_predict(code, labels, ordered) for code in codes.T]
        gap = _find_gap(scores)
        gaps.append(gap)
    mean = np.mean(gaps or np.nan)
    return float(mean)


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
        correlations = np.corrcoef(code, labels)
        correlation = correlations[0, 1]
        return float(correlation**2)

    centered = code - code.mean()
    scaled = centered / code.std()
    column = scaled[:, None]
    cut = 3 * len(code) // 4
    model = LinearSVC(
        C=0.01,
        class_weight="balanced",
        max_iter=10_000,
    )
    model.fit(column[:cut], labels[:cut])
    accuracy = model.score(column[cut:], labels[cut:])
    return float(accuracy)


def compute_factor_vae(codes: Array, index: Array) -> float:
    """Computes the accuracy of the majority vote on new batches.

    It is 1 for rotated codes as well: it does not show that units are factors.

    Args:
        codes: Codes, [n, d].
        index: Grid indices of the factors, [n, F].
    """
    spread = codes.std(axis=0)
    largest = spread.max(initial=0.0)
    is_alive = spread > DEAD_SPREAD * largest
    if not is_alive.any():
        return 0.0

    alive = codes[:, is_alive]
    scaled = alive / spread[is_alive]
    num_codes = scaled.shape[1]
    num_factors = index.shape[1]
    ranges = np.ptp(index, axis=0)
    varied = np.flatnonzero(ranges)
    shape = (2, num_codes, num_factors)
    votes = np.zeros(shape, int)
    rng = np.random.default_rng(0)
    for number in range(2 * NUM_VOTES):
        factor = rng.choice(varied)
        labels = index[:, factor]
        fixed_label = rng.choice(labels)
        rows = np.flatnonzero(labels == fixed_label)
        batch = rng.choice(rows, BATCH)

        batch_codes = scaled[batch]
        variance = batch_codes.var(axis=0)
        code = variance.argmin()
        subset = number % 2
        votes[subset, code, factor] += 1

    train_votes, test_votes = votes
    majority = train_votes.argmax(axis=1)
    rows = np.arange(num_codes)
    hits = test_votes[rows, majority]
    num_hits = hits.sum()
    num_votes = test_votes.sum()
    return float(num_hits / num_votes)
