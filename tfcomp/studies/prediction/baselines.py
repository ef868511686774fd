"""What is known of networks without a measure: task, settings, fit, times."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy import stats

from tfcomp.studies.prediction.design import DECODER, TIMES, Found
from tfcomp.studies.prediction.evidence import make_evidence
from tfcomp.studies.prediction.judgement import (
    ID_ERROR,
    START,
    compute_transfer,
    make_features,
)
from tfcomp.studies.prediction.networks import Array, Numbers

Row = dict[str, Any]


def list_baselines(
    found: Sequence[Found], axes: Sequence[tuple[str, ...]]
) -> list[Row]:
    """A row for each fact: its subject, what is counted, and the number."""
    evidence = make_evidence(found, axes)
    if evidence is None:
        return []
    networks = evidence.networks
    met = [each for each in found if each.record["reached"]]
    reached = np.array([each.record[ID_ERROR] for each in met])
    features = make_features(networks, evidence.decoder)
    transfer = compute_transfer(features, networks, evidence.decoder)
    rank = stats.spearmanr(reached, networks.outcome).statistic
    decoders = networks.settings[evidence.decoder]
    centered = networks.outcome - _average(decoders, networks.outcome)
    return [
        *_rows(
            "share of the variance of the outcome",
            {"decoder": _explain(decoders, networks.outcome)},
        ),
        *_rows(
            "share of the variance within decoders",
            {
                name: _explain(values, centered)
                for name, values in networks.settings.items()
                if name != evidence.decoder
            },
        ),
        *_rows(
            "tau on a decoder that was left out",
            {"hyperparameters alone": transfer.value},
        ),
        *_rows(
            "ID error that was reached",
            {"smallest": reached.min(), "largest": reached.max()},
        ),
        *_rows("Spearman with the outcome", {"ID error reached": rank}),
        *_rows("networks that are not trained yet", _count_untrained(met)),
        *_rows("networks that missed the target", _count_missed(found)),
    ]


def _rows(what: str, numbers: dict[str, float]) -> list[Row]:
    return [
        {"subject": name, "what": what, "number": float(value)}
        for name, value in numbers.items()
    ]


def _explain(values: Numbers, outcome: Array) -> float:
    """Share of the variance between the values of a hyperparameter."""
    means = _average(values, outcome)
    return float(means.var() / max(outcome.var(), 1e-300))


def _average(values: Numbers, outcome: Array) -> Array:
    """For each network the mean of those that share its value, [n]."""
    means = np.bincount(values, outcome) / np.maximum(np.bincount(values), 1)
    return means[values]


def _count_untrained(met: Sequence[Found]) -> dict[str, float]:
    """Share of networks by early look: epochs can be too long for it."""
    return {
        f"the look at {time:.0%}": np.mean(
            [each.record["measures"][f"{time:g}"]["share"] == 0 for each in met]
        )
        for time in TIMES
        if f"{time:g}" != START
    }


def _count_missed(found: Sequence[Found]) -> dict[str, float]:
    missed = [e.cell.setting[DECODER] for e in found if not e.record["reached"]]
    return {str(name): missed.count(name) for name in sorted(set(missed))}
