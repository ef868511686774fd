"""Tables of representations: additive parts of layers, and codes."""

import itertools
import math
import sys
from collections.abc import Mapping
from typing import Any

import numpy as np

from tfcomp.datasets.factors import FactorSpace
from tfcomp.datasets.splits import choose_rows
from tfcomp.datasets.table_checks import to_array
from tfcomp.metrics.distances import find_nearest
from tfcomp.metrics.kernels import compute_cosine_gram, summarize_alignment
from tfcomp.metrics.tuning import compute_tuning, summarize_tuning
from tfcomp.representations import additivity, disentanglement

Layers = dict[str, np.ndarray]
Row = dict[str, Any]
MAX_COMPARED = 1024  # points whose kernels and nearest items are compared
MAX_KNOWN = 2**16  # training points among which the nearest is searched


def read_layers(given: Any, count: int) -> Layers:
    """Returns embeddings [n, units] by layer; checks rows and numbers."""
    named = given if isinstance(given, Mapping) else {"embeddings": given}
    if not named:
        raise ValueError("embeddings must have at least one layer, got none")
    layers = {}
    for name, value in named.items():
        array = to_array(value)
        if array.dtype.kind not in "buif":
            raise ValueError(f"{name} must be numbers, got {array.dtype}")
        if array.ndim < 2 or len(array) != count or not array.size:
            raise ValueError(
                f"{name} must be [n, units] with n = {count:,} rows, one for "
                f"each combination, got {list(array.shape)}"
            )
        kind = np.result_type(array.dtype, np.float32)
        flat = array.reshape(count, -1).astype(kind, copy=False)
        ends = np.stack([flat.min(axis=1), flat.max(axis=1)])
        if not (is_finite := np.isfinite(ends).all(axis=0)).all():
            row = int(is_finite.argmin())
            raise ValueError(f"{name} must be finite, row {row} is not")
        if name == "image" or "/" in str(name) or not name:
            rule = "names of layers must be words other than image, without /"
            raise ValueError(f"{rule}, got {name!r}")
        layers[str(name)] = flat
    return layers


def say_memory(layers: Layers, space: FactorSpace) -> None:
    """Prints the memory of the layers and of their moments."""
    count = len(next(iter(layers.values())))
    sizes = ", ".join(f"{n} ({v.shape[1]:,})" for n, v in layers.items())
    stored = sum(values.nbytes for values in layers.values())
    units = min(max(v.shape[1] for v in layers.values()), additivity.MAX_UNITS)
    width = sum(space.shape)
    moments = 8 * (8 * units**2 + 8 * width * units + 4 * width**2)
    copies = min(2**28, 32 * count * units) + 4 * count * units
    print(
        f"{count:,} embeddings of {sizes} take {stored / 2**20:,.0f} MB; "
        f"scores take up to {(moments + copies) / 2**20:,.0f} MB more",
        file=sys.stderr,
    )


def measure_layers(
    space: FactorSpace, points: np.ndarray, is_ood: np.ndarray, layers: Layers
) -> dict[str, list[Row]]:
    """Returns the tables `layers`, `parts` and `pairs` of layers at points."""
    index = space.to_index(points)
    pairs = map(" and ".join, itertools.combinations(space.names, 2))
    labels = {"parts": space.names, "pairs": [*pairs]}
    tables: dict[str, list[Row]] = {"layers": [], "parts": [], "pairs": []}
    shape, share = space.shape, None
    order = np.lexsort(index.T[::-1])  # of the grid, the last factor fastest
    is_complete = len(np.unique(index, axis=0)) == math.prod(shape)
    is_complete &= len(index) == math.prod(shape)
    for layer, values in layers.items():
        kinds = additivity.measure_additivity(values, index, shape, is_ood)
        if is_complete:
            tuning = summarize_tuning(compute_tuning(values[order], shape))
            share = tuning["pair_share_weighted"]
        extra = {
            "pair_share": share,
            "nearest_ood": _rate_nearest(values, index, is_ood, space),
            **_align(values, index, is_ood),
        }
        for classes, kind in zip(("given", "permuted"), kinds, strict=True):
            first: Row = {"layer": layer, "classes": classes}
            known = extra if classes == "given" else dict.fromkeys(extra)
            tables["layers"].append(first | kind.scores | known)
            for name, rows in (("parts", kind.parts), ("pairs", kind.pairs)):
                tables[name] += [
                    first | {"factors": label} | row
                    for label, row in zip(labels[name], rows, strict=True)
                ]
    return tables


def measure_codes(
    space: FactorSpace, points: np.ndarray, codes: np.ndarray
) -> list[Row]:
    """Returns the table `codes`: DCI, MIG, SAP and FactorVAE's score."""
    index = space.to_index(points)
    is_ordered = [not factor.categorical for factor in space]
    scores = disentanglement.measure_codes(codes, index, is_ordered)
    return [{"score": name, "value": value} for name, value in scores.items()]


def _align(
    values: np.ndarray, index: np.ndarray, is_ood: np.ndarray
) -> dict[str, float | None]:
    """Returns alignments of cosines with ideal kernels, over OOD points."""
    rows = np.flatnonzero(is_ood if is_ood.any() else ~is_ood)
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
    """Returns errors of the nearest ID rows over errors of the ID mean."""
    ood, known = np.flatnonzero(is_ood), np.flatnonzero(~is_ood)
    if not len(ood):
        return None
    mean = values[known].mean(axis=0, dtype=np.float64)
    ood = ood[choose_rows(len(ood), MAX_COMPARED)]
    known = known[choose_rows(len(known), MAX_KNOWN)]
    nearest = known[find_nearest(index[ood], index[known], space)]
    error = np.sum((values[ood].astype(float) - values[nearest]) ** 2)
    total = np.sum((values[ood] - mean) ** 2)
    return float(error / total) if total > 0 else None
