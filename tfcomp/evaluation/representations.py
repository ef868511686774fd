"""Measures representations of combinations: additive parts, codes, kernels."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable, Mapping
from dataclasses import fields
from typing import Any

import numpy as np

from tfcomp.analysis import additivity, disentanglement
from tfcomp.analysis.features import finite_or_none
from tfcomp.analysis.gram import compute_cosine_gram
from tfcomp.analysis.kernels import summarize_alignment
from tfcomp.analysis.reference_predictors import find_nearest
from tfcomp.config.run_config import RunConfig
from tfcomp.datasets.dataset import Dataset, Render, build_dataset, choose_rows
from tfcomp.datasets.factor_table import FactorTable
from tfcomp.datasets.factors import FactorSpace
from tfcomp.datasets.regions import Region
from tfcomp.datasets.table_images import to_array
from tfcomp.datasets.vectors import VectorDataset

Layers = dict[str, np.ndarray]
Row = dict[str, Any]
MAX_COMPARED = 1024  # points whose kernels and nearest items are compared
MAX_KNOWN = 2**16  # training points among which the nearest is searched


def read_layers(given: Any, count: int, default: str = "embeddings") -> Layers:
    """Returns embeddings [n, units] by layer, checked.

    Raises:
        ValueError: If a layer has not `count` rows of finite numbers.
    """
    named = given if isinstance(given, Mapping) else {default: given}
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
        flat = array.reshape(count, -1)
        if flat.dtype.kind != "f" or flat.dtype.itemsize < 4:
            flat = flat.astype(np.float32)
        for start in range(0, count, MAX_COMPARED):
            part = np.isfinite(flat[start : start + MAX_COMPARED]).all(axis=1)
            if not part.all():
                row = start + int(part.argmin())
                raise ValueError(f"{name} must be finite, row {row} is not")
        layers[str(name)] = flat
    return layers


def say_memory(layers: Layers, space: FactorSpace) -> None:
    """Prints what the layers take, and what their moments will take."""
    count = len(next(iter(layers.values())))
    sizes = ", ".join(f"{n} ({v.shape[1]:,})" for n, v in layers.items())
    stored = sum(values.nbytes for values in layers.values())
    widest = max(v.shape[1] for v in layers.values())
    units = min(widest, additivity.MAX_UNITS)
    width = sum(space.shape)
    most = 8 * (8 * units**2 + 8 * width * units + 4 * width**2)
    most += min(2**28, 32 * count * units)  # blocks of rows
    most += 4 * count * (widest if widest > units else 0)
    print(
        f"{count:,} embeddings of {sizes} take {stored / 2**20:,.0f} MB; "
        f"scores take up to {most / 2**20:,.0f} MB more",
        file=sys.stderr,
    )


def make_vector_dataset(
    config: RunConfig,
    table: FactorTable,
    look_up: Render,
    units: int,
    region: Region | None,
    pictures: Render | None,
) -> VectorDataset:
    """Returns the dataset of a table with vectors in place of images."""
    base = build_dataset(
        config,
        table.space,
        region,
        cells=table.points,
        render=look_up,
        image_shape=(1, units, 1),
        has_background=False,
        has_position=False,
        first_row="top",
        notes=table.notes,
        size_flag="eval_points",
    )
    parts = {f.name: getattr(base, f.name) for f in fields(base)}
    return VectorDataset(**parts, pictures=pictures)


def make_composition(
    dataset: Dataset, points: np.ndarray, values: np.ndarray
) -> Callable[[np.ndarray], np.ndarray]:
    """Returns mean + parts, fitted to the ID points, as a function of points.

    The values [n, units] are those of the points [n, F].
    """
    space = dataset.space
    index, is_id = space.to_index(points), ~dataset.region.contains(points)
    layer = additivity.Layer(values, index, space.shape, is_id)
    parts = additivity.fit_rows(layer, is_id)

    def compose(factors: np.ndarray) -> np.ndarray:
        codes = layer.encode(space.to_index(np.asarray(factors)))
        return np.asarray(codes @ parts, np.float32)

    return compose


def measure_layers(
    space: FactorSpace,
    points: np.ndarray,
    is_ood: np.ndarray,
    layers: Layers,
) -> dict[str, list[Row]]:
    """Returns the tables `layers`, `parts` and `pairs` of embeddings.

    Rows of the layers [n, units] are those of points [n, F].
    """
    index = space.to_index(points)
    rows = choose_compared(is_ood)
    pairs = list(itertools.combinations(space.names, 2))
    tables: dict[str, list[Row]] = {"layers": [], "parts": [], "pairs": []}
    for name, values in layers.items():
        kinds = additivity.measure_additivity(
            values, index, space.shape, is_ood
        )
        extra = {
            "nearest_ood": _rate_nearest(values, index, is_ood, space),
            **_align(values[rows], points[rows], is_ood[rows]),
        }
        for classes, kind in zip(("given", "permuted"), kinds, strict=True):
            more = extra if classes == "given" else dict.fromkeys(extra)
            row = {"layer": name, "units": values.shape[1], "classes": classes}
            tables["layers"].append(row | kind.scores | more)
            tables["parts"] += [
                {"layer": name, "classes": classes, "factor": factor} | numbers
                for factor, numbers in zip(space.names, kind.parts, strict=True)
            ]
            tables["pairs"] += [
                {"layer": name, "classes": classes, "factors": " and ".join(p)}
                | numbers
                for p, numbers in zip(pairs, kind.pairs, strict=True)
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


def choose_compared(is_ood: np.ndarray) -> np.ndarray:
    """Returns rows of a fixed sample, OOD rows first among equals."""
    ood, known = np.flatnonzero(is_ood), np.flatnonzero(~is_ood)
    half = MAX_COMPARED // 2
    chosen = [ood[choose_rows(len(ood), half)]]
    chosen.append(known[choose_rows(len(known), half)])
    return np.sort(np.concatenate(chosen))


def _align(
    values: np.ndarray, points: np.ndarray, is_ood: np.ndarray
) -> dict[str, float | None]:
    """Returns alignments of cosines with ideal kernels, over OOD points."""
    rows = is_ood if is_ood.any() else ~is_ood
    gram = compute_cosine_gram(values - values.mean(axis=0))
    numbers = summarize_alignment(gram, points, rows)
    del numbers["alignment_constant"]
    return numbers


def _rate_nearest(
    values: np.ndarray,
    index: np.ndarray,
    is_ood: np.ndarray,
    space: FactorSpace,
) -> float | None:
    """Returns the error of the nearest ID rows over that of the ID mean."""
    ood, known = np.flatnonzero(is_ood), np.flatnonzero(~is_ood)
    ood = ood[choose_rows(len(ood), MAX_COMPARED)]
    if not len(ood):
        return None
    mean = values[known].mean(axis=0, dtype=np.float64)
    known = known[choose_rows(len(known), MAX_KNOWN)]
    nearest = known[find_nearest(index[ood], index[known], space)]
    error = np.sum((values[ood].astype(float) - values[nearest]) ** 2)
    total = np.sum((values[ood] - mean) ** 2)
    return finite_or_none(error / total) if total > 0 else None
