"""Are two representations of the same points alike? Three measures, one null.

Of stages at the same n points, with inner products K and L of their centered
activations, all of which are blind to rotations, shifts and a common scale:

    cka          debiased linear CKA: HSIC(K, L) / sqrt(HSIC(K, K) HSIC(L, L))
                 with the unbiased HSIC of Song et al. (2012), so that random
                 features have 0 in the mean, where the biased one has n / (n +
                 units); at most 1, and rarely below 0
    procrustes   |X Q - Y| of activations of norm 1, after the rotation Q that
                 brings them closest: sqrt(2 - 2 |X^T Y|_*), |.|_* the sum of
                 singular values; 0 for equal shapes, at most sqrt(2)
    rsa          Spearman correlation of the distances between all points

No single one of them wins among the many that there are (ReSi, ICLR 2025), and
many units make any two stages look alike to the second one. So each stands
beside its null: the same numbers after the points of one side were permuted.
"""

from dataclasses import dataclass

import numpy as np

from tfcomp.analysis.finite import finite_or_none
from tfcomp.analysis.threads import single_threaded

# Singular values of every permutation take the third power of this.
MAX_POINTS = 200
# The fewest for which p can be 0.05.
NUM_PERMUTATIONS = 19


@dataclass(frozen=True)
class Shape:
    """One representation of n points, prepared to be compared.

    Attributes:
        gram: U-centered inner products, zero on the diagonal, of norm 1.
        roots: Centered activations of norm 1, up to a rotation, [n, n].
        ranks: Centered ranks of the distances of all pairs, of norm 1, as a
            symmetric matrix [n, n].
    """

    gram: np.ndarray
    roots: np.ndarray
    ranks: np.ndarray


@single_threaded
def make_shape(gram: np.ndarray) -> Shape:
    """Prepares inner products [n, n], centered or not; at least 4 points.

    Of activations that are not finite, or all equal, everything is NaN.
    """
    from scipy.stats import rankdata

    count = len(gram)
    gram = np.asarray(gram, np.float64)
    if count < 4 or not np.isfinite(gram).all():
        return Shape(*(np.full((count, count), np.nan) for _ in range(3)))
    centered = gram - gram.mean(axis=0) - gram.mean(axis=1)[:, None]
    centered += gram.mean()
    values, vectors = np.linalg.eigh(centered)
    roots = vectors * np.sqrt(np.maximum(values, 0.0))
    lengths = np.diagonal(centered)
    squared = lengths[:, None] + lengths - 2 * centered
    i, j = np.triu_indices(count, 1)
    ranks = np.zeros_like(centered)
    # Rounding must not order what is equally far apart.
    distances = np.round(squared[i, j] / (squared.max() or 1.0), 9)
    ranks[i, j] = ranks[j, i] = rankdata(distances) - (len(i) + 1) / 2
    return Shape(_unit(_center_debiased(gram)), _unit(roots), _unit(ranks))


def compare_shapes(
    first: Shape, second: Shape, order: np.ndarray | None = None
) -> dict[str, float]:
    """`cka`, `procrustes` and `rsa`; the second's points in another order."""
    order = np.arange(len(second.gram)) if order is None else order
    rows, grid = second.roots[order], np.ix_(order, order)
    product = first.roots.T @ rows
    nuclear = np.nan
    if np.isfinite(product).all():
        nuclear = np.linalg.svd(product, compute_uv=False).sum()
    return {
        "cka": np.vdot(first.gram, second.gram[grid]),
        "procrustes": np.sqrt(np.maximum(2 - 2 * nuclear, 0.0)),
        "rsa": np.vdot(first.ranks, second.ranks[grid]),
    }


@single_threaded
def summarize_similarity(
    first: Shape, second: Shape, seed: int = 0
) -> dict[str, float | None]:
    """All three, with `<name>_null`, the mean over permutations of the points.

    And `<name>_p`, the share of permutations, this one among them, that are
    as similar: 0.05 at the least. None where there is no number.
    """
    value = compare_shapes(first, second)
    rng = np.random.default_rng(seed)
    orders = [rng.permutation(len(first.gram)) for _ in range(NUM_PERMUTATIONS)]
    nulls = [compare_shapes(first, second, order) for order in orders]
    numbers: dict[str, float | None] = {}
    for name, number in value.items():
        null = np.array([found[name] for found in nulls])
        better = null <= number if name == "procrustes" else null >= number
        p = (1 + better.sum()) / (1 + len(null))
        p = p if np.isfinite(number) else np.nan
        numbers |= {name: number, f"{name}_null": null.mean(), f"{name}_p": p}
    return {name: finite_or_none(value) for name, value in numbers.items()}


def _center_debiased(gram: np.ndarray) -> np.ndarray:
    """U-centering of Szekely and Rizzo (2014): unbiased products of two."""
    count = len(gram)
    open_gram = gram - np.diag(np.diagonal(gram))
    means = open_gram.sum(axis=0) / (count - 2)
    total = open_gram.sum() / ((count - 1) * (count - 2))
    centered = open_gram - means - means[:, None] + total
    np.fill_diagonal(centered, 0.0)
    return centered


def _unit(values: np.ndarray) -> np.ndarray:
    norm = np.linalg.norm(values)
    return values / norm if norm > 0 else np.full_like(values, np.nan)
