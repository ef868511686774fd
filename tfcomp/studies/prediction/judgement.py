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

import dataclasses
import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tfcomp.studies.prediction.design import ALL_POINTS
from tfcomp.studies.prediction.networks import (
    Array,
    Estimate,
    Networks,
    combine,
)
from tfcomp.studies.prediction.pairs import (
    compare_orders,
    compute_conditional,
    compute_granulated,
    compute_information,
    compute_sign_error,
    compute_tau,
)

LEVEL = 0.95
MIN_SHARE = 0.9
MIN_NETWORKS = 4
ID_ERROR = "id_relative_mse"
START = "0"
# A measure and the time at which it was taken.
Key = tuple[str, str]
Row = dict[str, Any]
RIDGE = 1e-2  # of the number of networks; features have unit variance


@dataclass(frozen=True)
class Evidence:
    """Networks that met the target, and what was measured of them.

    Attributes:
        measures: Numbers [n] by name and time; NaN where there is none.
        decoder: The hyperparameter that names the decoder.
        decoder_names: The values of that, by their number.
    """

    networks: Networks
    measures: Mapping[Key, Array]
    decoder: str
    decoder_names: Sequence[str] = ()

    def take(self, rows: NDArray[np.bool_]) -> "Evidence":
        """Some of the networks."""
        if rows.all():
            return self
        known = self.networks
        networks = Networks(
            known.outcome[rows],
            {name: values[rows] for name, values in known.settings.items()},
            known.noise,
        )
        measures = {key: values[rows] for key, values in self.measures.items()}
        return dataclasses.replace(self, networks=networks, measures=measures)

    def list_keys(self) -> list[Key]:
        """The measures that enough networks have and that differ at all."""
        return [
            key
            for key, values in self.measures.items()
            if np.isfinite(values).mean() >= MIN_SHARE
            and np.isfinite(values).sum() >= MIN_NETWORKS
            and np.nanmax(values) > np.nanmin(values)
        ]


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
        has_it = np.isfinite(evidence.measures[key])
        yield _judge_one(evidence.take(has_it), key, signs, level)


def _judge_one(
    evidence: Evidence,
    key: Key,
    signs: Mapping[Key, float] | None,
    level: float,
) -> Row:
    networks, measure = evidence.networks, evidence.measures[key]
    pairs = compare_orders(measure, networks)
    tau = compute_tau(pairs)
    sign = signs[key] if signs else float(np.sign(tau.value)) or 1.0
    if sign < 0:
        pairs = compare_orders(-measure, networks)
        tau = compute_tau(pairs)
    lines = compute_granulated(pairs)
    given, conditional = compute_conditional(pairs)
    errors = compute_sign_error(pairs)
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
        **_show("granulated", combine([*lines.values()], "mean"), level),
        "worst_line": worst,
        "worst_granulated": lines[worst].value if worst else math.nan,
        **_show("conditional_tau", conditional, level),
        "given": " ".join(given),
        "information": compute_information(pairs),
        **_show("sign_error", combine([*errors.values()], "mean"), level),
        "worst_sign_error": combine([*errors.values()], "max").value,
        **_show("gain", gain, level),
        "passes": all(low > 0 for low in lows),
    }


def _compute_gain(evidence: Evidence, key: Key) -> Estimate:
    """What a measure adds to the rank of networks of unknown decoders."""
    networks, (name, time) = evidence.networks, key
    baselines = [(ID_ERROR, time), (name, START)]
    columns = []
    for other in baselines:
        if other != key and other in evidence.measures:
            values = evidence.measures[other]
            known = np.isfinite(values)
            mean = values[known].mean() if known.any() else 0
            columns.append(np.where(known, values, mean))
    features = make_features(networks, evidence.decoder)
    known = np.column_stack([features, *columns])
    more = np.column_stack([known, evidence.measures[key]])
    decoder = evidence.decoder
    return subtract(
        compute_transfer(more, networks, decoder),
        compute_transfer(known, networks, decoder),
    )


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
