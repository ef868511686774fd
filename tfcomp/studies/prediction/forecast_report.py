"""Tables beside the judgement: what else orders networks, and how surely.

baselines.csv    what is known of networks without any measure
power.csv        how strong a planted predictor must be for the rules
one_decoder.csv  what all early numbers add for one decoder and region
trust.csv        the same, as shares of pairs of networks in the right order
"""

import contextlib
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from scipy import stats

from tfcomp.storage.files import read_csv, write_csv
from tfcomp.studies.prediction import evidence, judgement, one_decoder
from tfcomp.studies.prediction.design import DECODER, TIMES, Found
from tfcomp.studies.prediction.evidence import Array, Evidence, Numbers
from tfcomp.studies.prediction.judgement import START, Row
from tfcomp.studies.prediction.one_decoder import Group

# Fewer settings of a decoder and region, or networks of a half, tell nothing.
MIN_CELLS, MIN_HALF = 8, 100
# The share of the networks of a decoder that met the target.
MOSTLY = 0.9
GAIN = (
    "early numbers, {case}: Spearman {spearman_hyperparameters:.2f} -> "
    "{spearman_early:.2f}, gain {spearman_gain:.2f} "
    "[{spearman_gain_low:.2f}, {spearman_gain_high:.2f}]"
)
VERDICTS = {"True": ": they help", "False": ": they do not help"}
TRUST = (
    "{pair}: the better of two networks is named in {early:.0%} "
    "[{early_low:.0%}, {early_high:.0%}] of pairs, by hyperparameters alone in "
    "{hyperparameters:.0%}"
)


def write_forecasts(
    folder: Path,
    found: Sequence[Found],
    axes: Sequence[tuple[str, ...]],
    fresh: Sequence[Found] = (),
) -> None:
    """Writes all tables but power.csv; on fresh networks nothing was chosen."""
    if not (baselines := list_baselines(found, axes)):
        return  # no network has met the target
    write_csv(folder / "baselines.csv", baselines)
    names = [name for axis in axes for name in axis]
    groups = {
        "settings left out": _group(found, names),
        "given the ID error reached": _group(found, names, with_error=True),
        "decoders that mostly fit": _group(_drop_missing(found), names),
    }
    made = {
        case: [one_decoder.forecast_left_out(group) for group in chosen]
        for case, chosen in groups.items()
        if chosen
    }
    if not made:
        return
    # How the answer depends on a choice has no control, and so no verdict.
    empty = {"permuted_gain": None, "helps": None}
    rows = [
        empty | {"case": case} | one_decoder.judge_forecasts(forecasts)
        for case, forecasts in made.items()
    ]
    forecasts = made["settings left out"]
    if fresh:
        count = len(found)
        pairs = [
            (group.take(group.index < count), group.take(group.index >= count))
            for group in _group([*found, *fresh], names)
        ]
        pairs = [pair for pair in pairs if all(len(g.outcome) for g in pair)]
        forecasts = [one_decoder.forecast_fresh(*pair) for pair in pairs]
        others = one_decoder.forecast_permuted(pairs)
        row = one_decoder.judge_forecasts(forecasts, others)
        rows.append(empty | {"case": "fresh networks"} | row)
    write_csv(folder / "one_decoder.csv", rows)
    trust = [one_decoder.describe_trust(forecast) for forecast in forecasts]
    write_csv(folder / "trust.csv", trust)


def list_baselines(
    found: Sequence[Found], axes: Sequence[tuple[str, ...]]
) -> list[Row]:
    """A row for each fact: its subject, what is counted, and the number."""
    known = evidence.make_evidence(found, axes)
    if known is None:
        return []
    networks = known.networks
    met = [each for each in found if each.record["reached"]]
    reached = np.array([each.record[evidence.ID_ERROR] for each in met])
    transfer = judgement.compute_transfer(judgement.make_features(known), known)
    outcome, others = networks.outcome, dict(networks.settings)
    decoders = others.pop(known.decoder)
    centered = outcome - _average(decoders, outcome)
    missed = [e.cell.setting[DECODER] for e in found if not e.record["reached"]]
    facts = {
        "share of the variance of the outcome": {
            "decoder": _explain(decoders, outcome)
        },
        "share of the variance within decoders": {
            name: _explain(values, centered) for name, values in others.items()
        },
        "tau on a decoder that was left out": {
            "hyperparameters alone": transfer.value
        },
        "ID error that was reached": {
            "smallest": reached.min(),
            "largest": reached.max(),
        },
        "Spearman with the outcome": {
            "ID error reached": stats.spearmanr(reached, outcome).statistic
        },
        # Epochs can be too long for an early look.
        "networks that are not trained yet": {
            f"the look at {time:.0%}": _count_untrained(met, f"{time:g}")
            for time in TIMES
            if f"{time:g}" != START
        },
        "networks that missed the target": {
            str(name): missed.count(name) for name in sorted(set(missed))
        },
    }
    return [
        {"subject": name, "what": what, "number": float(value)}
        for what, numbers in facts.items()
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


def _count_untrained(met: Sequence[Found], time: str) -> float:
    """The share of networks that had not begun to train."""
    return np.mean([e.record["measures"][time]["share"] == 0 for e in met])


def write_power(
    folder: Path, halves: Mapping[str, Evidence | None], num_proposed: int
) -> None:
    """Writes how strong a predictor must be, if there are networks enough."""
    sizes = [len(e.networks.outcome) if e else 0 for e in halves.values()]
    if min(sizes) >= MIN_HALF:
        rows = judgement.measure_power(halves, num_proposed)
        write_csv(folder / "power.csv", rows)


def describe_forecasts(folder: Path) -> list[str]:
    """What the tables of a folder say, in a line each."""
    lines = []
    if rows := _read_numbers(folder / "power.csv"):
        least = judgement.find_threshold(rows)
        seen = f"from {least:.2f}" if least else "at no strength that was tried"
        lines.append(f"planted predictors are seen in 80 % of draws {seen}")
    for row in _read_numbers(folder / "one_decoder.csv"):
        lines.append(GAIN.format(**row) + VERDICTS.get(row["helps"], ""))
    for row in _read_numbers(folder / "trust.csv"):
        lines.append(TRUST.format(**row))
    return lines


def _read_numbers(path: Path) -> list[Row]:
    """A table, its numbers as numbers; no rows if there is none."""
    rows: list[Row] = list(read_csv(path)) if path.exists() else []
    for row in rows:
        for name, text in row.items():
            with contextlib.suppress(ValueError):
                row[name] = float(text)
    return rows


def _group(
    found: Sequence[Found], names: Sequence[str], **choice: bool
) -> list[Group]:
    """Decoders and regions with enough settings."""
    groups = one_decoder.make_groups(found, names, **choice)
    return [g for g in groups if len(np.unique(g.cells)) >= MIN_CELLS]


def _drop_missing(found: Sequence[Found]) -> list[Found]:
    """The decoders of which few networks missed the target.

    What a network that missed it would have done is not known: if those that
    did not are a choice, this is where it shows.
    """
    decoders = [each.cell.setting[DECODER] for each in found]
    reached = np.array([each.record["reached"] for each in found])
    shares = {
        name: reached[np.equal(decoders, name)].mean() for name in set(decoders)
    }
    pairs = zip(found, decoders, strict=True)
    return [each for each, name in pairs if shares[name] >= MOSTLY]
