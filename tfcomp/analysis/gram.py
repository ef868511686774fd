"""Gram matrices of a decoder's outputs over a factor grid.

Similarity of every pair of outputs (paper section 3.3, eq. 2 and 34;
appendix F.1): cosine, L2 distance and pixel overlap. Matrices are [n, n],
float64, in the order of the outputs [n, ...], which are expected *bright*, a
bump of 1 on a background of 0: pass `1 - images` for dark ones.

A *blank* output (all zeros) has no direction and no bright pixel: its cosine
and overlap are 0 with every output, itself included. An output that is not
finite (a diverged model) makes its row and column NaN.
"""

import numpy as np

from tfcomp.analysis.features import single_threaded

# Half of the height of a bump: absolute, so that faint outputs count as blank.
THRESHOLD = 0.5


@single_threaded
def compute_cosine_gram(outputs: np.ndarray) -> np.ndarray:
    """Returns cosine similarities of all pairs, in [-1, 1], to about 1e-6."""
    flat = _scale_rows(flatten_outputs(outputs))
    unit = flat.astype(np.float32)  # for a product that is twice as fast
    gram = (unit @ unit.T).astype(np.float64)
    return np.clip(gram, -1, 1, out=gram)


def compute_neighbor_cosines(
    outputs: np.ndarray, periodic: bool = False
) -> np.ndarray:
    """Returns cosines of outputs with the next, [n - 1]; [n] if periodic."""
    flat = _scale_rows(flatten_outputs(outputs))
    cosines = np.einsum("ij,ij->i", flat, np.roll(flat, -1, axis=0))
    return np.clip(cosines if periodic else cosines[:-1], -1, 1)


@single_threaded
def compute_distance_gram(outputs: np.ndarray) -> np.ndarray:
    """Returns L2 distances of all pairs over all pixels, 0 to itself."""
    flat = flatten_outputs(outputs)
    is_finite = np.isfinite(flat).all(axis=1)
    # |a|^2 + |b|^2 - 2 ab cancels: hence without the common part, in float64.
    if is_finite.any():
        flat -= flat[is_finite].mean(axis=0)
    gram = flat @ flat.T
    squared_lengths = np.diagonal(gram).copy()
    gram *= -2
    gram += squared_lengths[:, None]
    gram += squared_lengths
    gram[is_finite, is_finite] = 0
    return np.sqrt(np.maximum(gram, 0, out=gram), out=gram)


def convert_to_similarity(distances: np.ndarray) -> np.ndarray:
    """Returns 1 - distance / largest distance; 1 without a distance.

    Once centered it is positive semidefinite, as minus a Euclidean distance is.
    """
    largest = np.fmax.reduce(distances, axis=None, initial=0)
    return 1 - distances / (largest if largest > 0 else 1)


@single_threaded
def compute_overlap_gram(outputs: np.ndarray) -> np.ndarray:
    """Returns intersection over union of bright pixels, of all pairs."""
    flat = flatten_outputs(outputs)
    is_finite = np.isfinite(flat).all(axis=1)
    bright = (flat > THRESHOLD).astype(np.float32)
    # Counts of pixels, which float32 holds exactly up to 2^24.
    intersection = (bright @ bright.T).astype(np.float64)
    counts = np.diagonal(intersection).copy()
    union = counts[:, None] + counts - intersection
    overlap = np.divide(intersection, _one_if_zero(union), out=intersection)
    overlap[~is_finite] = np.nan
    overlap[:, ~is_finite] = np.nan
    return overlap


def flatten_outputs(outputs: np.ndarray) -> np.ndarray:
    """Returns a float64 copy [n, pixels]; rows that are not finite are NaN."""
    flat = np.array(outputs, np.float64).reshape(len(outputs), -1)
    flat[~np.isfinite(flat).all(axis=1)] = np.nan
    return flat


def _scale_rows(flat: np.ndarray) -> np.ndarray:
    # In place; by the largest entry first, since squares of 1e-200 underflow.
    flat /= _one_if_zero(np.abs(flat).max(axis=1, keepdims=True, initial=0))
    flat /= _one_if_zero(np.linalg.norm(flat, axis=1, keepdims=True))
    return flat


def _one_if_zero(values: np.ndarray) -> np.ndarray:
    return np.where(values == 0, 1.0, values)
