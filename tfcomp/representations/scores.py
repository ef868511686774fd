"""Tables of representations: additive parts of layers, and codes."""

import itertools
import math
import sys
from collections.abc import Mapping
from typing import Any

import numpy as np

from tfcomp.datasets.factor_table import to_array
from tfcomp.datasets.factors import FactorSpace
from tfcomp.datasets.splits import choose_rows
from tfcomp.metrics.distances import find_nearest
from tfcomp.metrics.features import Scores
from tfcomp.metrics.kernels import compute_cosine_gram, summarize_alignment
from tfcomp.metrics.tuning import compute_tuning, summarize_tuning
from tfcomp.representations import additivity, disentanglement

Layers = dict[str, np.ndarray]
Row = dict[str, Any]
MAX_COMPARED = 1024  # points whose kernels and nearest items are compared
MAX_KNOWN = 2**16  # training points among which the nearest is searched


def read_layers(given: Any, count: int) -> Layers:
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
    named = given if isinstance(given, Mapping) else {"embeddings": given}
    if not named:
        raise ValueError("embeddings must have at least one layer, got none")
    layers = {}
    for name, value in named.items():
        array = to_array(value)
        _check_layer(str(name), array, count)
        layers[str(name)] = _flatten_layer(str(name), array)
    return layers


def _check_layer(
    name: str,
    array: np.ndarray,
    count: int,
) -> None:
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


def _flatten_layer(name: str, array: np.ndarray) -> np.ndarray:
    """Flattens a layer to [n, units], and checks that it is finite."""
    kind = np.result_type(array.dtype, np.float32)
    flat = array.reshape(len(array), -1).astype(kind, copy=False)
    ends = np.stack([flat.min(axis=1), flat.max(axis=1)])  # [2, n]
    is_finite = np.isfinite(ends).all(axis=0)
    if not is_finite.all():
        row = int(is_finite.argmin())
        raise ValueError(f"{name} must be finite, row {row} is not")
    return flat


def say_memory(layers: Layers, space: FactorSpace) -> None:
    """Prints the memory of the layers and of their moments.

    Args:
        layers: Embeddings [n, units] by layer.
        space: The factors.
    """
    count = len(next(iter(layers.values())))
    sizes = [f"{name} ({v.shape[1]:,})" for name, v in layers.items()]
    stored = sum(values.nbytes for values in layers.values())

    units = max(values.shape[1] for values in layers.values())
    units = min(units, additivity.MAX_UNITS)
    width = sum(space.shape)
    moments = 8 * (8 * units**2 + 8 * width * units + 4 * width**2)
    copies = min(2**28, 32 * count * units) + 4 * count * units
    print(
        f"{count:,} embeddings of {', '.join(sizes)} take "
        f"{stored / 2**20:,.0f} MB; "
        f"scores take up to {(moments + copies) / 2**20:,.0f} MB more",
        file=sys.stderr,
    )


def measure_layers(
    space: FactorSpace,
    points: np.ndarray,
    is_ood: np.ndarray,
    layers: Layers,
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
    pair_names = []
    for first, second in itertools.combinations(space.names, 2):
        pair_names.append(f"{first} and {second}")

    tables: dict[str, list[Row]] = {"layers": [], "parts": [], "pairs": []}
    for layer, values in layers.items():
        given, permuted = additivity.measure_additivity(
            values, index, space.shape, is_ood
        )
        extra = {
            "pair_share": _measure_pair_share(values, index, space),
            "nearest_ood": _rate_nearest(values, index, is_ood, space),
            **_align(values, index, is_ood),
        }
        nothing: Scores = dict.fromkeys(extra)
        for classes, numbers, others in (
            ("given", given, extra),
            ("permuted", permuted, nothing),
        ):
            start: Row = {"layer": layer, "classes": classes}
            tables["layers"].append(start | numbers.scores | others)
            for name, row in zip(space.names, numbers.parts, strict=True):
                tables["parts"].append(start | {"factors": name} | row)
            for name, row in zip(pair_names, numbers.pairs, strict=True):
                tables["pairs"].append(start | {"factors": name} | row)
    return tables


def measure_codes(
    space: FactorSpace,
    points: np.ndarray,
    codes: np.ndarray,
) -> list[Row]:
    """Computes DCI, MIG, SAP and FactorVAE's score.

    Args:
        space: The factors.
        points: Their values, [n, F].
        codes: Codes of these points, [n, d].

    Returns:
        Rows of the table `codes`.
    """
    index = space.to_index(points)
    is_ordered = [not factor.categorical for factor in space]
    scores = disentanglement.measure_codes(codes, index, is_ordered)
    return [{"score": name, "value": value} for name, value in scores.items()]


def _measure_pair_share(
    values: np.ndarray,
    index: np.ndarray,
    space: FactorSpace,
) -> float | None:
    """Computes the share of interactions of pairs; None unless complete."""
    size = math.prod(space.shape)
    if len(index) != size or len(np.unique(index, axis=0)) != size:
        return None
    order = np.lexsort(index.T[::-1])  # of the grid, the last factor fastest
    tuning = compute_tuning(values[order], space.shape)
    return summarize_tuning(tuning)["pair_share_weighted"]


def _align(
    values: np.ndarray,
    index: np.ndarray,
    is_ood: np.ndarray,
) -> Scores:
    """Computes alignments of cosines with ideal kernels, over OOD points."""
    is_used = is_ood if is_ood.any() else ~is_ood
    rows = np.flatnonzero(is_used)
    rows = rows[choose_rows(len(rows), MAX_COMPARED)]
    gram = compute_cosine_gram(values[rows] - values.mean(axis=0))
    numbers = summarize_alignment(gram, index[rows], np.arange(len(rows)))
    del numbers["alignment_constant"]
    return numbers


def _rate_nearest(
    values: np.ndarray,
    index: np.ndarray,
    is_ood: np.ndarray,
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
    nearest = known[find_nearest(index[ood], index[known], space)]
    error = np.sum((values[ood].astype(float) - values[nearest]) ** 2)
    total = np.sum((values[ood] - mean) ** 2)
    if not total > 0:
        return None
    return float(error / total)
