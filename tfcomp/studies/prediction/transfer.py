"""Does a measure rank the networks of a decoder that it was not fitted to?

A ridge regression predicts the outcome from hyperparameters, from baselines
and from the measure on all decoders but one, and ranks the networks of that
one. What the measure adds is the gain of tau over the same regression without
it.
"""

import numpy as np
from numpy.typing import NDArray

from tfcomp.studies.prediction.networks import Array, Estimate, Networks

RIDGE = 1e-2  # of the number of networks; features have unit variance


def make_features(networks: Networks, decoder: str) -> Array:
    """Hyperparameters but the decoder as one column for each value, [n, d]."""
    columns = [
        np.eye(values.max() + 1)[values]
        for name, values in networks.settings.items()
        if name != decoder
    ]
    return np.concatenate(columns, axis=1)


def compute_transfer(
    features: Array, networks: Networks, decoder: str
) -> Estimate:
    """Mean tau within each decoder, predicted from the others.

    Args:
        features: What is known of every network, [n, d].
        decoder: The hyperparameter that names the decoder.
    """
    groups, blocks = networks.settings[decoder], networks.blocks
    keeps = [np.ones(len(groups), bool), *(blocks.T == 0)]
    return Estimate(
        np.array(
            [_score(features[k], networks.outcome[k], groups[k]) for k in keeps]
        )
    )


def subtract(first: Estimate, second: Estimate) -> Estimate:
    """How much larger the first is, with the interval of the difference."""
    return Estimate(first.values - second.values)


def _score(features: Array, outcome: Array, groups: NDArray[np.int_]) -> float:
    taus = []
    for group in np.unique(groups):
        left_out = groups == group
        if left_out.sum() < 2 or left_out.all():
            continue
        found = _predict(features, outcome, left_out)
        signs = _compare(found) * _compare(outcome[left_out])
        count = left_out.sum()
        taus.append(signs.sum() / (count * (count - 1)))
    return float(np.mean(taus)) if taus else float("nan")


def _compare(values: Array) -> Array:
    return np.sign(values[:, None] - values)


def _predict(
    features: Array, outcome: Array, left_out: NDArray[np.bool_]
) -> Array:
    known = features[~left_out]
    center, scale = known.mean(axis=0), known.std(axis=0)
    scaled = (features - center) / np.where(scale > 1e-12, scale, 1.0)
    x, y = scaled[~left_out], outcome[~left_out]
    gram = x.T @ x + RIDGE * len(x) * np.eye(x.shape[1])
    return scaled[left_out] @ np.linalg.solve(gram, x.T @ (y - y.mean()))
