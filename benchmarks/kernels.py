"""Cost of the kernel analysis of one model, against plain double loops.

Run as `python -m benchmarks.kernels`. Gram matrices, alignments, Schmidt
decompositions, superposition scores and kernel regressions of the outputs of
a 28 x 28 grid (784 points, 784 pixels, 289 of them OOD). The Gram matrix of
cosines and the kernel matrix of one pair of length scales are also computed
pair by pair, on a few points, and extrapolated to all pairs.
"""

from __future__ import annotations

import argparse
import resource
import statistics
import time
from collections.abc import Callable

import numpy as np

from tfcomp.analysis import (
    gram,
    kernel_regression,
    kernels,
    schmidt,
    superposition,
)

GRID_SIZE = 28
REGION = (6, 22)
NOISE = 0.01
SUBSET = 48


def make_grid(size: int) -> np.ndarray:
    """All positions (x, y), [size^2, 2]."""
    axis = np.arange(size, dtype=np.float32)
    grid = np.meshgrid(axis, axis, indexing="ij")
    return np.stack(grid, axis=-1).reshape(-1, 2)


def make_outputs(grid: np.ndarray, size: int) -> np.ndarray:
    """Bumps of sigma 1 with some noise, float32 [n, size, size]."""
    profiles = np.exp(-0.5 * (np.arange(size) - grid[..., None]) ** 2)
    bumps = np.einsum("nj,ni->nij", profiles[:, 0], profiles[:, 1])
    noise = np.random.default_rng(0).normal(size=bumps.shape)
    return (bumps + NOISE * noise).astype(np.float32)


def time_call(fn: Callable[[], object], repeats: int) -> float:
    """Median seconds of a call, after one that warms up."""
    fn()
    seconds = []
    for _ in range(repeats):
        start = time.perf_counter()
        fn()
        seconds.append(time.perf_counter() - start)
    return statistics.median(seconds)


def loop_pairs(
    rows: np.ndarray, fn: Callable[[np.ndarray, np.ndarray], float]
) -> np.ndarray:
    """A matrix pair by pair, [n, n]."""
    return np.array([[fn(a, b) for b in rows] for a in rows])


def compute_cosine(a: np.ndarray, b: np.ndarray) -> float:
    """Cosine of two flat outputs."""
    return a @ b / (np.linalg.norm(a) * np.linalg.norm(b))


def compute_product(a: np.ndarray, b: np.ndarray) -> float:
    """Product kernel of two points, scales 1."""
    return np.prod(np.exp(-((a - b) ** 2) / 2))


def make_work(
    grid: np.ndarray, outputs: np.ndarray, is_ood: np.ndarray
) -> dict[str, Callable[[], object]]:
    """Everything that the analysis of one model computes, by name."""
    cosines = gram.compute_cosine_gram(outputs)
    work = {
        "cosine Gram": lambda: gram.compute_cosine_gram(outputs),
        "distance Gram": lambda: gram.compute_distance_gram(outputs),
        "overlap Gram": lambda: gram.compute_overlap_gram(outputs),
        "alignments, one Gram": lambda: kernels.summarize_alignment(
            cosines, grid, is_ood
        ),
        "Schmidt, one Gram": lambda: schmidt.summarize_schmidt(cosines, grid),
        "superposition": lambda: superposition.compute_superposition(
            grid, outputs, is_ood
        ),
    }
    for name in kernel_regression.KERNELS:
        work[f"regression, {name}"] = lambda name=name: (
            kernel_regression.fit_kernel(name, grid, outputs, is_ood)
        )
    return work


def compare(
    name: str,
    fast: Callable[[], object],
    slow: Callable[[], object],
    factor: float,
    repeats: int,
) -> None:
    """Prints the seconds of both, the slow ones extrapolated by `factor`."""
    seconds = time_call(fast, repeats)
    slow_seconds = factor * time_call(slow, repeats)
    print(
        f"{name:<24}{seconds:9.4f} s{slow_seconds:9.2f} s by pairs"
        f"{slow_seconds / seconds:9.0f} x"
    )


def main() -> None:
    """Times all parts and prints medians and ratios."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--grid_size", type=int, default=GRID_SIZE)
    parser.add_argument("--repeats", type=int, default=3)
    args = parser.parse_args()
    grid = make_grid(args.grid_size)
    is_ood = ((grid >= REGION[0]) & (grid <= REGION[1])).all(axis=1)
    outputs = make_outputs(grid, args.grid_size)
    print(f"{len(grid)} points, {is_ood.sum()} OOD, {args.repeats} repeats")
    for name, fn in make_work(grid, outputs, is_ood).items():
        print(f"{name:<24}{time_call(fn, args.repeats):9.4f} s", flush=True)
    flat = outputs.reshape(len(grid), -1)
    pairs = (len(grid) / SUBSET) ** 2
    compare(
        "cosine Gram",
        lambda: gram.compute_cosine_gram(outputs),
        lambda: loop_pairs(flat[:SUBSET], compute_cosine),
        pairs,
        args.repeats,
    )
    compare(
        "product kernel",
        lambda: kernel_regression.make_kernel(
            "product", grid, grid, (1.0, 1.0)
        ),
        lambda: loop_pairs(grid[:SUBSET], compute_product),
        pairs,
        args.repeats,
    )
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(f"{'peak memory':<24}{peak:9.2f} GiB")


if __name__ == "__main__":
    main()
