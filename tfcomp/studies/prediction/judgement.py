"""Does a measure predict the OOD error? The rules, fixed before any network.

A measure is looked at in the exploring half of the design first, which gives
its sign and proposes it if, at 95 %,

1. Kendall's tau with the OOD error is not 0,
2. its tau over pairs that share any two hyperparameters has this sign, too
   (else it only follows a hyperparameter), and
3. it ranks the networks of decoders that it was not fitted to better than
   hyperparameters, the ID error at that time and the measure's own value
   before training do. A ridge regression on all decoders but one predicts the
   outcome from these, with and without the measure, and ranks the networks of
   that one; the gain is one of tau.

Of the proposed measures those predict that pass again, with the same sign, on
the half that was held back, at a level of 95 % for all of them together
(Bonferroni). A measure must exist for nine of ten networks.
"""

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tfcomp.studies.prediction.design import ALL_POINTS
from tfcomp.studies.prediction.evidence import (
    ID_ERROR,
    Array,
    Evidence,
    Key,
    Networks,
)
from tfcomp.studies.prediction.pairs import (
    Estimate,
    combine,
    compare_orders,
    compute_conditional,
    compute_granulated,
    compute_information,
    compute_sign_error,
)

LEVEL = 0.95
START = "0"
Row = dict[str, Any]
RIDGE = 1e-2  # of the number of networks; features have unit variance


def judge(
    evidence: Evidence,
    keys: Sequence[Key],
    signs: Mapping[Key, float] | None = None,
    confirm: Collection[Key] = (),
) -> Iterator[Row]:
    """The statistics of measures, one after another.

    Args:
        signs: What the other half has found; by default that of tau.
        confirm: The measures that share the level among them.
    """
    for key in keys:
        level = 1 - (1 - LEVEL) / len(confirm) if key in confirm else LEVEL
        known = evidence.take(np.isfinite(evidence.measures[key]))
        yield _judge_one(known, key, signs, level)


def _judge_one(
    evidence: Evidence,
    key: Key,
    signs: Mapping[Key, float] | None,
    level: float,
) -> Row:
    networks, measure = evidence.networks, evidence.measures[key]
    pairs = compare_orders(measure, networks)
    sign = signs[key] if signs else float(np.sign(pairs.average().value)) or 1.0
    if sign < 0:
        pairs = compare_orders(-measure, networks)
    tau = pairs.average()
    lines = compute_granulated(pairs)
    given, conditional = compute_conditional(pairs)
    errors = compute_sign_error(pairs).values()
    gain = _compute_gain(evidence, key)
    lows = [e.get_interval(level)[0] for e in (tau, conditional, gain)]
    worst = min(lines, key=lambda name: lines[name].value, default="")
    return {
        "measure": key[0],
        "time": float(key[1]),
        "peeks": key[0].startswith(ALL_POINTS),
        "sign": sign,
        "networks": len(measure),
        **_show("tau", tau, level),
        **_show("granulated", combine(lines.values(), np.mean), level),
        "worst_line": worst,
        "worst_granulated": lines[worst].value if worst else math.nan,
        **_show("conditional_tau", conditional, level),
        "given": " ".join(given),
        "information": compute_information(pairs),
        **_show("sign_error", combine(errors, np.mean), level),
        "worst_sign_error": combine(errors, np.max).value,
        **_show("gain", gain, level),
        "passes": all(low > 0 for low in lows),
    }


def _compute_gain(evidence: Evidence, key: Key) -> Estimate:
    """What a measure adds to the rank of networks of unknown decoders."""
    networks, decoder = evidence.networks, evidence.decoder
    columns = [make_features(networks, decoder)]
    for other in ((ID_ERROR, key[1]), (key[0], START)):
        if other != key and other in evidence.measures:
            values = evidence.measures[other]
            known = np.isfinite(values)
            mean = values[known].mean() if known.any() else 0
            columns.append(np.where(known, values, mean))
    less, more = (
        compute_transfer(np.column_stack(features), networks, decoder)
        for features in (columns, [*columns, evidence.measures[key]])
    )
    return Estimate(more.values - less.values)


def _show(name: str, estimate: Estimate, level: float) -> Row:
    ends = estimate.get_interval(level)
    low, high = np.clip(ends, 0 if name == "sign_error" else -1, 1).tolist()
    return {name: estimate.value, f"{name}_low": low, f"{name}_high": high}


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
    groups, outcome = networks.settings[decoder], networks.outcome
    keeps = [np.ones(len(groups), bool), *(networks.blocks.T == 0)]
    taus = [_score(features[k], outcome[k], groups[k]) for k in keeps]
    return Estimate(np.array(taus))


def _score(features: Array, outcome: Array, groups: NDArray[np.int_]) -> float:
    taus = []
    for group in np.unique(groups):
        left_out = groups == group
        count = left_out.sum()
        if 2 <= count < len(groups):
            found = _predict(features, outcome, left_out)
            signs = _compare(found) * _compare(outcome[left_out])
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
