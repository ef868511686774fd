"""Manifolds of stage activations: PCA, UMAP, and smoothness across a gap.

Figure 9b and appendix F.2 of the paper. A curve h(f_0), h(f_1), ... over one
ordered factor is measured in the space of the activations, since an embedding
may hide or invent a jump:

    d_i     = h(f_i+1) - h(f_i)
    speed   s_i = |d_i|
    turning t_i = angle between d_i-1 and d_i, in degrees: 0 goes straight on

Steps at held-out points are compared with the others by ratios of medians (is
the gap crossed faster?) and of maxima (is there one jump?).

UMAP's copy of LLVM can crash a process in which TensorFlow has loaded another
one. So `python -m tfcomp.metrics.manifolds` is a process that replaces the
arrays [n, k] in an `.npz` file by their embeddings.
"""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy import ndarray as Array

from tfcomp.metrics.features import single_threaded
from tfcomp.metrics.registry import (
    Arrays,
    Rows,
    Scores,
    average,
    computes,
    finite_or_none,
)
from tfcomp.statistics.limits import POSITIVE

if TYPE_CHECKING:
    from tfcomp.metrics.run_analysis import RunAnalysis

UMAP_HINT = "UMAP is left out: pip install 'tfcomp[umap]' adds it."
# UMAP starts from eigenvectors of a graph, which needs a few points.
MIN_POINTS = 5
# Of the longest activation vector: a step up to this is rounding, and none.
RELATIVE_FLOOR = 1e-6


@dataclass(frozen=True)
class Components:
    """Principal components of one stage, largest variance first.

    Features are centered points [n, k] in units of the root mean square
    distance from the mean; explained are fractions of the variance.
    """

    features: Array
    explained: Array


@single_threaded
def compute_components(
    rows: Array,
    num_components: int,
) -> Components:
    """Computes principal components, whose largest entry is positive.

    Args:
        rows: A stage by `compute_rows`, [n, units] or [n, n].
        num_components: How many at most.
    """
    import scipy.linalg  # here: the help of a command needs none

    centered = rows - rows.mean(axis=0)
    is_gram = rows.shape[1] >= len(rows)
    if is_gram:
        means = centered.mean(axis=1)
        product = centered - means[:, np.newaxis]
    else:
        product = centered.T @ centered

    # A few axes take a third of the time of all.
    size = len(product)
    first = max(0, size - num_components)
    variances, axes = scipy.linalg.eigh(
        product,
        subset_by_index=(first, size - 1),
        check_finite=False,
    )
    explained = np.maximum(variances[::-1], 0)
    axes = axes[:, ::-1]
    if is_gram:
        features = axes * np.sqrt(explained)
    else:
        features = centered @ axes

    total = np.trace(product)
    if total > 0:
        scale = np.sqrt(len(rows) / total)
        features = features * scale
        explained = explained / total

    largest = np.abs(features).argmax(axis=0)
    columns = np.arange(features.shape[1])
    features = features * np.sign(features[largest, columns])
    return Components(
        features=features,
        explained=explained,
    )


def has_umap() -> bool:
    """Returns True if umap-learn, an extra of tfcomp, is installed."""
    return importlib.util.find_spec("umap") is not None


def compute_umaps(stages: Mapping[str, Components]) -> Arrays:
    """Computes UMAP embeddings [n, 2], float32, the same in every call.

    They are of all components of a stage, and NaN if its points do not differ.

    Raises:
        ValueError: If there are fewer than 5 points.
        OSError: If the process of UMAP fails, as without umap-learn.
    """
    maps = {}
    varied = {}
    for stage, components in stages.items():
        points = components.features.astype(np.float32)
        if len(points) < MIN_POINTS:
            raise ValueError(f"UMAP takes at least {MIN_POINTS} points")
        maps[stage] = np.full((len(points), 2), np.nan, points.dtype)
        if points.any():
            varied[stage] = points
    if varied:
        embedded = embed_elsewhere(list(varied.values()))
        maps |= dict(zip(varied, embedded, strict=True))
    return maps


def embed_elsewhere(features: Sequence[Array]) -> list[Array]:
    """Computes UMAP embeddings [n, 2] of points [n, k], by another process.

    Raises:
        OSError: If the process fails.
    """
    with tempfile.TemporaryDirectory() as folder:
        file = str(Path(folder, "points.npz"))
        np.savez(file, *features)
        path = os.pathsep.join(filter(None, sys.path))
        process = subprocess.run(
            [sys.executable, "-P", "-m", "tfcomp.metrics.manifolds", file],
            capture_output=True,
            env=os.environ | {"PYTHONPATH": path},
        )
        if process.returncode:
            message = process.stderr.decode(errors="replace")
            last_line = message.strip().rpartition("\n")[2]
            reason = last_line or f"status {process.returncode}"
            raise OSError(f"its process has ended: {reason}")
        with np.load(file) as arrays:
            return list(arrays.values())


def _embed(features: Array) -> Array:
    import umap  # type: ignore[import-untyped]

    reducer = umap.UMAP(  # as in the published notebook
        n_neighbors=min(15, len(features) - 1),
        min_dist=0.1,
        random_state=42,
        n_jobs=1,  # implied by a seed, with a warning if it is not given
    )
    return np.asarray(reducer.fit_transform(features))


def compute_steps(
    activations: Array,
    periodic: bool = False,
) -> tuple[Array, Array]:
    """Computes speeds and angles along a curve (appendix F.2).

    Args:
        activations: The curve, [n, ...].
        periodic: True if the first point follows the last.

    Returns:
        Speeds [n], and angles [n] in degrees; NaN at the ends unless periodic,
        and beside a step without length.
    """
    flat = np.reshape(activations, (len(activations), -1))
    flat = flat.astype(np.result_type(flat, np.float32), copy=False)
    steps = np.roll(flat, -1, axis=0) - flat

    longest = np.linalg.norm(flat, axis=1).max()
    speed = np.linalg.norm(steps, axis=1)
    is_rounding = speed <= RELATIVE_FLOOR * longest
    steps[is_rounding] = 0
    speed[is_rounding] = 0

    divisors = np.where(speed > 0, speed, np.nan)
    after = steps / divisors[:, None]  # unit vectors
    before = np.roll(after, 1, axis=0)
    # The arc cosine of their product would lose angles below 0.03 degrees.
    difference = np.linalg.norm(after - before, axis=1)
    total = np.linalg.norm(after + before, axis=1)
    angle = 2 * np.arctan2(difference, total)
    if not periodic:  # the last step leads back to the first point
        ends = [np.nan]
        speed = np.concatenate([speed[:-1], ends])
        angle = np.concatenate([ends, angle[1:-1], ends])
    return speed, np.degrees(angle)


def compute_gap_statistics(
    activations: Array,
    is_ood: Array,
    periodic: bool = False,
) -> Scores:
    """Compares a curve in a held-out region with the rest of it (F.2).

    Args:
        activations: The curve, [n, ...].
        is_ood: Which points are held out, [n].
        periodic: True if the first point follows the last.

    Returns:
        `speed_ratio` and `turning_ratio`, medians inside over outside, and
        `max_...`, maxima; None where one side does not move.
    """
    is_before = np.roll(is_ood, -1)
    is_after = np.roll(is_ood, 1)
    step_inside = is_ood | is_before
    angle_inside = step_inside | is_after
    speed, angle = compute_steps(activations, periodic)
    return {
        "speed_ratio": _compare(speed, step_inside, np.median),
        "turning_ratio": _compare(angle, angle_inside, np.median),
        "max_speed_ratio": _compare(speed, step_inside, np.max),
        "max_turning_ratio": _compare(angle, angle_inside, np.max),
    }


def _compare(
    values: Array,
    is_inside: Array,
    reduce: Callable[[Array], float],
) -> float | None:
    """Divides values inside, reduced to one number, by values outside.

    Args:
        values: Along a curve, [n]; NaN where there is none.
        is_inside: Which of them are inside of the gap, [n].
        reduce: As `np.median`.
    """
    exists = ~np.isnan(values)
    inside = values[exists & is_inside]
    outside = values[exists & ~is_inside]
    if not inside.size or not outside.size:
        return None

    divisor = reduce(outside)
    if not divisor > 0:
        return None
    return finite_or_none(reduce(inside) / divisor)


@computes(
    "stages",
    POSITIVE,
    "gap_speed gap_max_speed gap_turning gap_max_turning",
)
def measure_gap(analysis: RunAnalysis) -> Rows:
    """Looks for jumps of the curve of a stage in the gap, far above 1 (9b)."""
    if not analysis.gaps:
        return {}

    ratios = [analysis.compare_gap(curve) for curve in analysis.gaps]
    rows: Rows = {}
    for stage in analysis.stages:
        rows[stage] = {}
        for key in ("speed", "max_speed", "turning", "max_turning"):
            values = [by_stage[stage][f"{key}_ratio"] for by_stage in ratios]
            rows[stage][f"gap_{key}"] = average(values)
    return rows


if __name__ == "__main__":
    # UMAP warns of its other libraries, and of manifolds in several pieces.
    warnings.simplefilter("ignore")
    # UMAP imports TensorFlow for a class that is not used here.
    sys.modules["tensorflow"] = None  # type: ignore[assignment]
    file = sys.argv[1]
    maps = []
    with np.load(file) as points:
        for features in points.values():
            maps.append(_embed(features))
    np.savez(file, *maps)
