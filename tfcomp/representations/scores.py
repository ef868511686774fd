"""Tables of representations: how far layers are sums of parts of factors."""

import itertools
import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy import ndarray as Array

from tfcomp.datasets.factor_table import to_array
from tfcomp.datasets.factors import FactorSpace
from tfcomp.datasets.splits import choose_rows
from tfcomp.metrics.kernels import compute_cosine_gram, summarize_alignment
from tfcomp.metrics.references import find_nearest
from tfcomp.metrics.registry import Arrays, Scores
from tfcomp.metrics.tuning import compute_tuning, summarize_tuning
from tfcomp.representations import additivity

Row = dict[str, Any]
MAX_COMPARED = 1024  # points whose kernels and nearest items are compared
MAX_TRAIN = 2**16  # training points among which the nearest is searched


def read_layers(embeddings: Any, count: int) -> Arrays:
    """Reads embeddings by layer, and checks rows and numbers.

    Args:
        embeddings: Numbers [n, ...], or a mapping from names of layers to them.
        count: Number of combinations n.

    Returns:
        Embeddings [n, units] by layer.

    Raises:
        ValueError: If they have other rows, are no numbers or not finite, or
            if a layer has a name that cannot be used.
    """
    if not isinstance(embeddings, Mapping):
        embeddings = {"embeddings": embeddings}
    if not embeddings:
        raise ValueError("embeddings must have at least one layer, got none")

    layers = {}
    for key, value in embeddings.items():
        name = str(key)
        array = to_array(value)
        _check_layer(name, array, count)
        layers[name] = _flatten_layer(name, array)
    return layers


def _check_layer(
    name: str,
    array: Array,
    count: int,
) -> None:
    """Checks type and shape of one layer, and its name."""
    if array.dtype.kind not in "buif":
        raise ValueError(f"{name} must be numbers, got {array.dtype}")

    is_table = array.ndim >= 2 and array.size > 0
    if not is_table or len(array) != count:
        shape = list(array.shape)
        raise ValueError(
            f"{name} must be [n, units] with n = {count:,} rows, one for "
            f"each combination, got {shape}"
        )

    is_word = name != "" and "/" not in name
    if not is_word or name == "image":
        rule = "names of layers must be words other than image, without /"
        raise ValueError(f"{rule}, got {name!r}")


def _flatten_layer(name: str, array: Array) -> Array:
    """Flattens a layer to [n, units], and checks that it is finite."""
    count = len(array)
    kind = np.result_type(array.dtype, np.float32)
    flat = array.reshape(count, -1)
    flat = flat.astype(kind, copy=False)

    # Without a mask as large as the layer.
    lowest = flat.min(axis=1)
    highest = flat.max(axis=1)
    is_finite = np.isfinite(lowest) & np.isfinite(highest)
    if not is_finite.all():
        row = int(is_finite.argmin())
        raise ValueError(f"{name} must be finite, row {row} is not")
    return flat


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
        # Scores that are no sums of parts.
        others: Scores = {
            "pair_share": _measure_pair_share(values, index, space),
            "nearest_ood": rate_nearest(values, index, is_ood, space),
        }
        others |= _align(values, index, is_ood)
        given.scores.update(others)
        permuted.scores.update(dict.fromkeys(others))
        results = {"given": given, "permuted": permuted}
        for classes, numbers in results.items():
            numbers.scores["n"] = len(values)
            _add_rows(tables, space, layer, classes, numbers)
    return tables


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
        label = {"factors": name}
        tables["parts"].append(start | label | row)

    pairs = itertools.combinations(space.names, 2)
    for pair, row in zip(pairs, numbers.pairs, strict=True):
        label = {"factors": " and ".join(pair)}
        tables["pairs"].append(start | label | row)


def _measure_pair_share(
    values: Array,
    index: Array,
    space: FactorSpace,
) -> float | None:
    """Computes the share of interactions of pairs; None unless complete."""
    size = math.prod(space.shape)
    combinations = np.unique(index, axis=0)
    if len(combinations) != size:
        return None
    if len(index) != size:
        return None

    by_factor = index.T
    order = np.lexsort(by_factor[::-1])  # of the grid, the last factor fastest
    tuning = compute_tuning(values[order], space.shape)
    summary = summarize_tuning(tuning)
    return summary["pair_share_weighted"]


def _align(
    values: Array,
    index: Array,
    is_ood: Array,
) -> Scores:
    """Computes alignments of cosines with ideal kernels, over OOD points."""
    is_compared = is_ood
    if not is_ood.any():
        is_compared = ~is_ood
    rows = np.flatnonzero(is_compared)
    sample = choose_rows(len(rows), MAX_COMPARED)
    rows = rows[sample]

    mean = values.mean(axis=0)
    compared = values[rows]
    centered = compared - mean
    gram = compute_cosine_gram(centered)
    every = np.arange(len(rows))
    return summarize_alignment(gram, index[rows], every)


def rate_nearest(
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
    ood_rows = np.flatnonzero(is_ood)
    id_rows = np.flatnonzero(~is_ood)
    if not len(ood_rows):
        return None

    id_values = values[id_rows]
    mean = id_values.mean(axis=0, dtype=np.float64)
    ood_sample = choose_rows(len(ood_rows), MAX_COMPARED)
    ood_rows = ood_rows[ood_sample]
    id_sample = choose_rows(len(id_rows), MAX_TRAIN)
    id_rows = id_rows[id_sample]
    ood_index = index[ood_rows]
    id_index = index[id_rows]
    places = find_nearest(ood_index, id_index, space)
    nearest_rows = id_rows[places]
    nearest = values[nearest_rows]

    truth = values[ood_rows].astype(float)
    error = np.sum((truth - nearest) ** 2)
    total = np.sum((truth - mean) ** 2)
    if not total > 0:
        return None
    return float(error / total)
