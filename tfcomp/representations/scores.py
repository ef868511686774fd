"""Tables of representations: additive parts of layers, scores of codes.

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

Each is in [0, 1], and 1 is best.
"""

import itertools
import math
import sys
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy import ndarray as Array

from tfcomp.datasets.factor_table import to_array
from tfcomp.datasets.factors import FactorSpace
from tfcomp.datasets.splits import choose_rows
from tfcomp.metrics.features import Arrays, Scores, finite_or_none
from tfcomp.metrics.kernels import compute_cosine_gram, summarize_alignment
from tfcomp.metrics.references import find_nearest
from tfcomp.metrics.tuning import compute_tuning, summarize_tuning
from tfcomp.representations import additivity

Row = dict[str, Any]
MAX_COMPARED = 1024  # points whose kernels and nearest items are compared
MAX_KNOWN = 2**16  # training points among which the nearest is searched
MAX_ROWS = 2000  # of DCI and of support vector machines
NUM_BINS = 20
NUM_VOTES = 800
BATCH = 64
DEAD_SPREAD = 1e-4  # standard deviation of a code, over the largest


def read_layers(given: Any, count: int) -> Arrays:
    """Reads embeddings by layer, and checks rows and numbers.

    Args:
        given: Embeddings [n, ...], or a mapping from names of layers to them.
        count: Number of combinations n.

    Returns:
        Embeddings [n, units] by layer.

    Raises:
        ValueError: If they have other rows, are no numbers or not finite, or
            if a layer has a name that cannot be used.
    """
    if not isinstance(given, Mapping):
        given = {"embeddings": given}
    if not given:
        raise ValueError("embeddings must have at least one layer, got none")

    layers = {}
    for key, value in given.items():
        name = str(key)
        array = to_array(value)
        _check_layer(name, array, count)
        layers[name] = _flatten_layer(name, array)
    return layers


def _check_layer(name: str, array: Array, count: int) -> None:
    """Checks type and shape of one layer, and its name."""
    if array.dtype.kind not in "buif":
        raise ValueError(f"{name} must be numbers, got {array.dtype}")
    if array.ndim < 2 or len(array) != count or not array.size:
        raise ValueError(
            f"{name} must be [n, units] with n = {count:,} rows, one for "
            f"each combination, got {list(array.shape)}"
        )
    if name == "image" or "/" in name or not name:
        rule = "names of layers must be words other than image, without /"
        raise ValueError(f"{rule}, got {name!r}")


def _flatten_layer(name: str, array: Array) -> Array:
    """Flattens a layer to [n, units], and checks that it is finite."""
    kind = np.result_type(array.dtype, np.float32)
    flat = array.reshape(len(array), -1)
    flat = flat.astype(kind, copy=False)

    # Without a mask as large as the layer.
    lowest = flat.min(axis=1)
    highest = flat.max(axis=1)
    is_finite = np.isfinite(lowest) & np.isfinite(highest)
    if not is_finite.all():
        row = int(is_finite.argmin())
        raise ValueError(f"{name} must be finite, row {row} is not")
    return flat


def say_memory(layers: Arrays, space: FactorSpace) -> None:
    """Prints the memory of the layers and of their moments.

    Args:
        layers: Embeddings [n, units] by layer.
        space: The factors.
    """
    count = 0
    largest = 0  # units
    num_bytes = 0
    names = []
    for name, values in layers.items():
        count, units = values.shape
        largest = max(largest, units)
        num_bytes += values.nbytes
        names.append(f"{name} ({units:,})")

    units = min(largest, additivity.MAX_UNITS)
    width = sum(space.shape)
    numbers = 8 * units**2
    numbers += 8 * width * units
    numbers += 4 * width**2
    moments = 8 * numbers
    copies = min(2**28, 32 * count * units)
    copies += 4 * count * units
    stored = num_bytes / 2**20
    needed = (moments + copies) / 2**20
    print(
        f"{count:,} embeddings of {', '.join(names)} take {stored:,.0f} MB; "
        f"scores take up to {needed:,.0f} MB more",
        file=sys.stderr,
    )


def measure_layers(
    space: FactorSpace,
    points: Array,
    is_ood: Array,
    layers: Arrays,
) -> dict[str, list[Row]]:
    """Measures the additive structure of layers.

    Args:
        space: The factors.
        points: Their values, [n, F].
        is_ood: Which points are held out, [n].
        layers: Embeddings [n, units] by layer.

    Returns:
        Rows of the tables `layers`, `parts` (by factor) and `pairs` (of
        factors), also with permuted classes.
    """
    index = space.to_index(points)
    tables: dict[str, list[Row]] = {
        "layers": [],
        "parts": [],
        "pairs": [],
    }
    for layer, values in layers.items():
        given, permuted = additivity.measure_additivity(
            values,
            index,
            space.shape,
            is_ood,
        )
        others = _measure_neighbors(values, index, is_ood, space)
        given.scores.update(others)
        permuted.scores.update(dict.fromkeys(others))
        _add_rows(tables, space, layer, "given", given)
        _add_rows(tables, space, layer, "permuted", permuted)
    return tables


def _measure_neighbors(
    values: Array,
    index: Array,
    is_ood: Array,
    space: FactorSpace,
) -> Scores:
    """Computes the scores of a layer that are no sums of parts.

    Args:
        values: Embeddings, [n, units].
        index: Grid indices, [n, F].
        is_ood: Which rows are held out, [n].
        space: The factors.
    """
    scores: Scores = {
        "pair_share": _measure_pair_share(values, index, space),
        "nearest_ood": _rate_nearest(values, index, is_ood, space),
    }
    return scores | _align(values, index, is_ood)


def _add_rows(
    tables: dict[str, list[Row]],
    space: FactorSpace,
    layer: str,
    classes: str,
    numbers: additivity.Additivity,
) -> None:
    """Adds the numbers of a layer to the tables.

    Args:
        tables: The tables `layers`, `parts` and `pairs`.
        space: The factors.
        layer: The name of the layer.
        classes: `given`, or `permuted` for the chance level.
        numbers: The numbers.
    """
    start: Row = {
        "layer": layer,
        "classes": classes,
    }
    tables["layers"].append(start | numbers.scores)
    for name, row in zip(space.names, numbers.parts, strict=True):
        tables["parts"].append(start | {"factors": name} | row)

    pairs = itertools.combinations(space.names, 2)
    for pair, row in zip(pairs, numbers.pairs, strict=True):
        names = " and ".join(pair)
        tables["pairs"].append(start | {"factors": names} | row)


def _measure_pair_share(
    values: Array,
    index: Array,
    space: FactorSpace,
) -> float | None:
    """Computes the share of interactions of pairs; None unless complete."""
    size = math.prod(space.shape)
    num_distinct = len(np.unique(index, axis=0))
    if not len(index) == num_distinct == size:
        return None
    order = np.lexsort(index.T[::-1])  # of the grid, the last factor fastest
    tuning = compute_tuning(values[order], space.shape)
    return summarize_tuning(tuning)["pair_share_weighted"]


def _align(values: Array, index: Array, is_ood: Array) -> Scores:
    """Computes alignments of cosines with ideal kernels, over OOD points."""
    rows = np.flatnonzero(is_ood)
    if not len(rows):
        rows = np.flatnonzero(~is_ood)
    rows = rows[choose_rows(len(rows), MAX_COMPARED)]
    centered = values[rows] - values.mean(axis=0)
    gram = compute_cosine_gram(centered)
    return summarize_alignment(gram, index[rows], np.arange(len(rows)))


def _rate_nearest(
    values: Array,
    index: Array,
    is_ood: Array,
    space: FactorSpace,
) -> float | None:
    """Divides errors of the nearest ID rows by errors of the ID mean.

    Args:
        values: Embeddings, [n, units].
        index: Grid indices, [n, F].
        is_ood: Which rows are held out, [n].
        space: The factors.
    """
    ood = np.flatnonzero(is_ood)
    known = np.flatnonzero(~is_ood)
    if not len(ood):
        return None

    mean = values[known].mean(axis=0, dtype=np.float64)
    ood = ood[choose_rows(len(ood), MAX_COMPARED)]
    known = known[choose_rows(len(known), MAX_KNOWN)]
    places = find_nearest(index[ood], index[known], space)
    nearest = values[known[places]]
    truth = values[ood].astype(float)
    error = np.sum((truth - nearest) ** 2)
    deviations = values[ood] - mean
    total = np.sum(deviations**2)
    if not total > 0:
        return None
    return float(error / total)


def measure_codes(space: FactorSpace, points: Array, codes: Array) -> list[Row]:
    """Computes DCI, MIG, SAP and FactorVAE's score.

    Args:
        space: The factors.
        points: Their values, [n, F].
        codes: Codes of these points, [n, d].

    Returns:
        Rows of the table `codes`; DCI and SAP are of a fixed random sample.
    """
    index = space.to_index(points)
    is_ordered = [not factor.categorical for factor in space]
    codes = np.asarray(codes, np.float64)
    rng = np.random.default_rng(0)
    sample = rng.permutation(len(codes))[:MAX_ROWS]
    sampled_codes = codes[sample]
    sampled_index = index[sample]

    scores = compute_dci(sampled_codes, sampled_index)
    scores["mig"] = compute_mig(codes, index)
    scores["sap"] = compute_sap(sampled_codes, sampled_index, is_ordered)
    scores["factor_vae"] = compute_factor_vae(codes, index)
    rows = []
    for name, value in scores.items():
        row: Row = {
            "score": name,
            "value": finite_or_none(value),
        }
        rows.append(row)
    return rows


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
        score = model.score(codes[cut:], labels[cut:])
        accuracy.append(score)

    table = np.reshape(importance, (-1, codes.shape[1]))
    num_factors, num_codes = table.shape
    matrix = table.T  # [d, F]
    total = matrix.sum() or np.nan
    code_weights = matrix.sum(axis=1)
    factor_weights = matrix.sum(axis=0)
    by_code = 1 - _compute_entropy(table, base=num_factors)
    by_factor = 1 - _compute_entropy(matrix, base=num_codes)
    disentanglement = by_code @ code_weights / total
    completeness = by_factor @ factor_weights / total
    informativeness = np.mean(accuracy or np.nan)
    return {
        "dci_disentanglement": float(disentanglement),
        "dci_completeness": float(completeness),
        "dci_informativeness": float(informativeness),
    }


def _compute_entropy(weights: Array, base: int) -> Array:
    """Computes entropies [m] of the columns of weights [k, m]."""
    from scipy.special import entr

    totals = np.maximum(weights.sum(axis=0), 1e-300)
    nats = entr(weights / totals).sum(axis=0)
    return nats / np.log(max(base, 2))


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
        inner = edges[1:-1]
        bins.append(np.digitize(code, inner))

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


def _predict(code: Array, labels: Array, is_ordered: bool) -> float:
    """Scores how well a code [n] predicts the values of a factor [n].

    Returns:
        R^2 of an ordered factor, else the accuracy of a support vector machine
        on the last quarter.
    """
    from sklearn.svm import LinearSVC

    if np.ptp(code) == 0:
        return 0.0
    if is_ordered:
        correlation = np.corrcoef(code, labels)[0, 1]
        return float(correlation**2)

    cut = 3 * len(code) // 4
    scaled = (code - code.mean()) / code.std()
    column = scaled[:, None]
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

    Args:
        codes: Codes, [n, d].
        index: Grid indices of the factors, [n, F].
    """
    spread = codes.std(axis=0)
    largest = spread.max(initial=0.0)
    is_alive = spread > DEAD_SPREAD * largest
    if not is_alive.any():
        return 0.0

    scaled = codes[:, is_alive] / spread[is_alive]
    num_factors = index.shape[1]
    varied = np.flatnonzero(np.ptp(index, axis=0))
    votes = np.zeros((2, scaled.shape[1], num_factors), int)
    rng = np.random.default_rng(0)
    for number in range(2 * NUM_VOTES):
        factor = rng.choice(varied)
        column = index[:, factor]
        value = rng.choice(column)
        rows = np.flatnonzero(column == value)
        batch = rng.choice(rows, BATCH)
        variance = scaled[batch].var(axis=0)
        code = variance.argmin()
        votes[number % 2, code, factor] += 1

    train_votes, test_votes = votes
    majority = train_votes.argmax(axis=1)
    num_codes = len(test_votes)
    hits = test_votes[np.arange(num_codes), majority]
    return float(hits.sum() / test_votes.sum())
