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

from tfcomp.metrics.features import (
    Rows,
    Scores,
    average,
    finite_or_none,
    single_threaded,
)
from tfcomp.metrics.metric import computes
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
    rows: Array, num_components: int | None = None
) -> Components:
    """Returns components of `compute_rows`, whose largest entry is positive."""
    import scipy.linalg  # here: the help of a command needs none

    centered = rows - rows.mean(axis=0)
    is_gram = rows.shape[1] >= len(rows)
    if is_gram:
        product = centered - centered.mean(axis=1, keepdims=True)
    else:
        product = centered.T @ centered
    size = len(product)
    # A few axes take a third of the time of all.
    first = max(0, size - (num_components or size))
    variances, axes = scipy.linalg.eigh(
        product, subset_by_index=(first, size - 1), check_finite=False
    )
    explained, axes = np.maximum(variances[::-1], 0), axes[:, ::-1]
    features = axes * np.sqrt(explained) if is_gram else centered @ axes
    total = np.trace(product)
    if total > 0:
        features = features * np.sqrt(len(rows) / total)
        explained = explained / total
    largest = np.argmax(np.abs(features), axis=0)
    signs = np.sign(features[largest, np.arange(features.shape[1])])
    return Components(features * signs, explained)


def has_umap() -> bool:
    """Returns True if umap-learn, an extra of tfcomp, is installed."""
    return importlib.util.find_spec("umap") is not None


def compute_umaps(stages: Mapping[str, Components]) -> dict[str, Array]:
    """Computes UMAP embeddings [n, 2], float32, the same in every call.

    They are of all components of a stage, and NaN if its points do not differ.

    Raises:
        ValueError: If there are fewer than 5 points.
        OSError: If the process of UMAP fails, as without umap-learn.
    """
    features = {s: c.features.astype(np.float32) for s, c in stages.items()}
    if min(map(len, features.values())) < MIN_POINTS:
        raise ValueError(f"UMAP takes at least {MIN_POINTS} points")
    differ = {stage: f for stage, f in features.items() if f.any()}
    embedded = embed_elsewhere(list(differ.values())) if differ else []
    nothing = {
        s: np.full((len(f), 2), np.nan, f.dtype) for s, f in features.items()
    }
    return nothing | dict(zip(differ, embedded, strict=True))


def embed_elsewhere(features: Sequence[Array]) -> list[Array]:
    """Returns UMAP embeddings [n, 2] of points [n, k], by another process."""
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
            lines = process.stderr.decode(errors="replace").split("\n")
            reason = [line for line in lines if line.strip()][-1:]
            status = f"status {process.returncode}"
            raise OSError(f"its process has ended: {(*reason, status)[0]}")
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
    activations: Array, periodic: bool = False
) -> tuple[Array, Array]:
    """Returns speeds [n] and angles [n], in degrees, along a curve [n, ...].

    NaN at the ends unless periodic, and beside a step without length.
    """
    flat = np.reshape(activations, (len(activations), -1))
    flat = flat.astype(np.result_type(flat, np.float32), copy=False)
    steps = np.roll(flat, -1, axis=0) - flat
    floor = RELATIVE_FLOOR * np.linalg.norm(flat, axis=1).max()
    steps[np.linalg.norm(steps, axis=1) <= floor] = 0
    speed = np.linalg.norm(steps, axis=1)
    after = steps / np.where(speed > 0, speed, np.nan)[:, None]  # unit vectors
    before = np.roll(after, 1, axis=0)
    # The arc cosine of their product would lose angles below 0.03 degrees.
    difference = np.linalg.norm(after - before, axis=1)
    angle = 2 * np.arctan2(difference, np.linalg.norm(after + before, axis=1))
    if not periodic:  # the last step leads back to the first point
        speed = np.append(speed[:-1], np.nan)
        angle = np.concatenate([[np.nan], angle[1:-1], [np.nan]])
    return speed, np.degrees(angle)


def compute_gap_statistics(
    activations: Array, is_ood: Array, periodic: bool = False
) -> Scores:
    """Compares a curve [n, ...] in a held-out region with the rest of it.

    `speed_ratio` and `turning_ratio` are medians, inside over outside,
    `max_...` maxima; None where one side does not move.
    """
    is_ood = np.asarray(is_ood, bool)
    step_inside = is_ood | np.roll(is_ood, -1)
    angle_inside = step_inside | np.roll(is_ood, 1)
    speed, angle = compute_steps(activations, periodic)
    return {
        "speed_ratio": _compare(speed, step_inside, np.median),
        "turning_ratio": _compare(angle, angle_inside, np.median),
        "max_speed_ratio": _compare(speed, step_inside, np.max),
        "max_turning_ratio": _compare(angle, angle_inside, np.max),
    }


def _compare(values: Array, is_inside: Array, reduce: Callable) -> float | None:
    exists = ~np.isnan(values)
    inside, outside = values[exists & is_inside], values[exists & ~is_inside]
    if not (inside.size and outside.size and reduce(outside) > 0):
        return None
    return finite_or_none(reduce(inside) / reduce(outside))


if __name__ == "__main__":
    # UMAP warns of its other libraries, and of manifolds in several pieces.
    warnings.simplefilter("ignore")
    # UMAP imports TensorFlow for a class that is not used here.
    sys.modules["tensorflow"] = None  # type: ignore[assignment]
    with np.load(sys.argv[1]) as points:
        found = [_embed(values) for values in points.values()]
    np.savez(sys.argv[1], *found)


@computes(
    "stages", POSITIVE, "gap_speed gap_max_speed gap_turning gap_max_turning"
)
def measure_gap(analysis: RunAnalysis) -> Rows:
    """Looks for jumps of the curve of a stage in the gap, far above 1 (9b)."""
    if not analysis.gaps:
        return {}
    curves = [analysis.compare_gap(curve) for curve in analysis.gaps]
    return {
        stage: {
            f"gap_{key}": average(row[stage][f"{key}_ratio"] for row in curves)
            for key in ("speed", "max_speed", "turning", "max_turning")
        }
        for stage in analysis.stages
    }
