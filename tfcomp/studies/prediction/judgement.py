"""Does a measure predict the OOD error? The rules of docs/predict.md.

The exploring half gives a measure its sign and proposes it if, at 95 %, two
taus have this sign, over all pairs of networks and the smallest over pairs that
share any two hyperparameters, and the gain across decoders is above 0.
The other half confirms it by the same, at 95 % for all that are proposed
together (Bonferroni).
"""

import dataclasses
import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from tfcomp.studies.prediction import pairs
from tfcomp.studies.prediction.design import ALL_POINTS, HALVES
from tfcomp.studies.prediction.evidence import ID_ERROR, Array, Evidence, Key
from tfcomp.studies.prediction.pairs import Estimate

LEVEL = 0.95
START = "0"
Row = dict[str, Any]
STRENGTHS = (0.5, 0.6, 0.65, 0.7, 0.75, 0.8, 0.85, 0.9)
DRAWS = 20
PLANTED, BASELINE = ("planted", "0.1"), (ID_ERROR, "0.1")
RIDGE = 1e-2  # of the number of networks; features have unit variance


def judge(
    evidence: Evidence,
    keys: Sequence[Key],
    signs: Mapping[Key, float] | None = None,
    confirm: Collection[Key] = (),
) -> Iterator[Row]:
    """The statistics of measures, one after another.

    Signs are what the other half has found, by default those of tau; measures
    to confirm share the level among them.
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
    order = pairs.compare_orders(measure, networks)
    sign = signs[key] if signs else float(np.sign(order.average().value)) or 1.0
    if sign < 0:
        order = pairs.compare_orders(-measure, networks)
    tau = order.average()
    lines = pairs.compute_granulated(order)
    given, conditional = pairs.compute_conditional(order)
    errors = pairs.compute_sign_error(order).values()
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
        **_show("granulated", pairs.combine(lines.values(), np.mean), level),
        "worst_line": worst,
        "worst_granulated": lines[worst].value if worst else math.nan,
        **_show("conditional_tau", conditional, level),
        "given": " ".join(given),
        "information": pairs.compute_information(order),
        **_show("sign_error", pairs.combine(errors, np.mean), level),
        "worst_sign_error": pairs.combine(errors, np.max).value,
        **_show("gain", gain, level),
        "passes": all(low > 0 for low in lows),
    }


def _compute_gain(evidence: Evidence, key: Key) -> Estimate:
    """What a measure adds to the rank of networks of unknown decoders.

    Ridge regressions on all decoders but one rank those of that one, by
    hyperparameters, the ID error at that time and the measure before training,
    without the measure and with it.
    """
    columns = [make_features(evidence)]
    for other in ((ID_ERROR, key[1]), (key[0], START)):
        if other != key and other in evidence.measures:
            values = evidence.measures[other]
            known = np.isfinite(values)
            mean = values[known].mean() if known.any() else 0
            columns.append(np.where(known, values, mean))
    less, more = (
        compute_transfer(np.column_stack(features), evidence)
        for features in (columns, [*columns, evidence.measures[key]])
    )
    return Estimate(more.values - less.values)


def _show(name: str, estimate: Estimate, level: float) -> Row:
    ends = estimate.get_interval(level)
    low, high = np.clip(ends, 0 if name == "sign_error" else -1, 1).tolist()
    return {name: estimate.value, f"{name}_low": low, f"{name}_high": high}


def make_features(evidence: Evidence) -> Array:
    """Hyperparameters but the decoder as one column for each value, [n, d]."""
    columns = [
        np.eye(values.max() + 1)[values]
        for name, values in evidence.networks.settings.items()
        if name != evidence.decoder
    ]
    return np.concatenate(columns, axis=1)


def compute_transfer(features: Array, evidence: Evidence) -> Estimate:
    """Mean tau within each decoder, predicted from the others by [n, d]."""
    networks, outcome = evidence.networks, evidence.networks.outcome
    groups = networks.settings[evidence.decoder]
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


def measure_power(
    halves: Mapping[str, Evidence],
    num_proposed: int,
    strengths: Sequence[float] = STRENGTHS,
) -> list[dict[str, Any]]:
    """How often a planted predictor of each strength passes on both halves.

    So many as were proposed share the level of the second half.
    """
    rng = np.random.default_rng(0)
    rows = []
    for strength in strengths:
        tries = range(DRAWS)
        drawn = [_try_once(halves, num_proposed, strength, rng) for _ in tries]
        correlation, found = np.mean(drawn, axis=0)
        rows.append({"spearman": correlation, "draws": DRAWS, "found": found})
    return rows


def find_threshold(rows: Sequence[Mapping[str, Any]]) -> float | None:
    """The correlation that is seen in 80 % of draws; None if none is."""
    found = np.maximum.accumulate([row["found"] for row in rows])
    if found[-1] < 0.8:
        return None
    return float(np.interp(0.8, found, [row["spearman"] for row in rows]))


def _try_once(
    halves: Mapping[str, Evidence],
    num_proposed: int,
    strength: float,
    rng: np.random.Generator,
) -> tuple[float, bool]:
    """Spearman of a planted predictor, and whether both halves see it."""
    # Normal variables with this Spearman correlation have that of Pearson.
    linear = 2 * np.sin(np.pi / 6 * strength)
    passes, correlations = [], []
    for half in HALVES:
        outcome = halves[half].networks.outcome
        noise = rng.standard_normal(len(outcome))
        ranks = stats.rankdata(outcome)
        ranks = stats.norm.ppf((ranks - 0.5) / len(ranks))  # normal scores
        planted = linear * ranks + np.sqrt(1 - linear**2) * noise
        correlations.append(stats.spearmanr(planted, outcome).statistic)
        known = halves[half].measures
        measures = {key: known[key] for key in [BASELINE] if key in known}
        measures[PLANTED] = planted
        evidence = dataclasses.replace(halves[half], measures=measures)
        # The level of the second half is shared among what was proposed.
        shared = [PLANTED] * num_proposed if half == HALVES[1] else ()
        row = next(judge(evidence, [PLANTED], {PLANTED: 1.0}, shared))
        passes.append(row["passes"])
    return float(np.mean(correlations)), all(passes)
