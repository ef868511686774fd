"""Means over seeds: runs that differ in nothing but their seed.

No single run proves a claim. The spread is the sample standard deviation
over seeds; the interval of the mean is Student's at 95 %, which takes the
scores of seeds for normal, or on request a bootstrap, which does not but is
too narrow for a handful of seeds.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import stats

# What may differ between runs that are the same but for their seed.
IGNORED = ("seed", "eval_every", "layerwise_every", "checkpoint_seconds")


@dataclass(frozen=True)
class Setting:
    """Runs of one setting.

    Attributes:
        flags: The flags in which the settings differ from each other.
        seeds: Seeds of the runs.
        metrics: Their `metrics.json`, in the order of the seeds.
    """

    flags: dict[str, Any]
    seeds: list[int]
    metrics: list[dict[str, Any]]


@dataclass(frozen=True)
class Statistics:
    """A score over seeds.

    Attributes:
        mean: Mean over seeds.
        deviation: Sample standard deviation; None for one seed.
        half_width: Half of the 95 % interval of the mean (Student); None
            for one seed.
        count: Number of seeds.
    """

    mean: float
    deviation: float | None
    half_width: float | None
    count: int


def group_by_setting(
    runs: Sequence[tuple[dict[str, Any], dict[str, Any]]],
) -> list[Setting]:
    """Sorts runs, pairs of flags and metrics, into settings.

    A second run with the same flags and seed is the same computation, and
    counts once.
    """
    identities = [
        {k: v for k, v in flags.items() if k not in IGNORED}
        for flags, _ in runs
    ]
    varied = [
        name
        for name in identities[0]
        if len({repr(identity.get(name)) for identity in identities}) > 1
    ]
    groups: dict[tuple, Setting] = {}
    for identity, (flags, metrics) in zip(identities, runs, strict=True):
        chosen = {name: identity.get(name) for name in varied}
        key = tuple(map(repr, identity.values()))
        setting = groups.setdefault(key, Setting(chosen, [], []))
        if flags["seed"] not in setting.seeds:
            setting.seeds.append(flags["seed"])
            setting.metrics.append(metrics)
    return list(groups.values())


def compute_interval(
    values: Sequence[float], method: str = "student"
) -> tuple[float, float] | None:
    """The 95 % interval of the mean of some numbers.

    Args:
        values: The numbers, finite.
        method: `student`, or `bootstrap` (bias-corrected and accelerated,
            9999 resamples that are the same in every call).

    Returns:
        Its ends; None for a single number.
    """
    sample = np.asarray(values, float)  # [n]
    if len(sample) < 2:
        return None
    mean = float(sample.mean())
    if np.ptp(sample) == 0:  # nothing to resample, and no width either
        return mean, mean
    if method == "bootstrap":
        rng = np.random.default_rng(0)
        found = stats.bootstrap((sample,), np.mean, random_state=rng)
        low, high = found.confidence_interval
        return float(low), float(high)
    deviation = float(sample.std(ddof=1))
    half_width = compute_half_width(deviation, len(sample))
    return mean - half_width, mean + half_width


def compute_half_width(deviation: float, count: int) -> float:
    """Half of Student's 95 % interval of a mean of `count` numbers."""
    quantile = stats.t.ppf(0.975, count - 1)
    return float(quantile * deviation / math.sqrt(count))


def compute_statistics(values: Sequence[float | None]) -> Statistics | None:
    """Mean, spread and interval of one value a seed.

    None if a seed lacks its value: it diverged, and the mean over the rest
    would flatter.
    """
    if not values or None in values:
        return None
    sample = np.array(values, float)
    if len(sample) == 1:
        return Statistics(float(sample[0]), None, None, 1)
    deviation = float(sample.std(ddof=1))
    half_width = compute_half_width(deviation, len(sample))
    return Statistics(float(sample.mean()), deviation, half_width, len(sample))


def get_score(metrics: dict[str, Any], path: str) -> float | None:
    """A number of `metrics.json` by its path, as `ood/mse`."""
    value: Any = metrics
    for part in path.split("/"):
        value = value.get(part) if isinstance(value, dict) else None
    return value


def tabulate(
    settings: Sequence[Setting], scores: Sequence[str]
) -> list[dict[str, Any]]:
    """One row a setting: its flags, seeds, and statistics per score."""
    rows = []
    for setting in settings:
        row: dict[str, Any] = dict(setting.flags)
        row["seeds"] = len(setting.seeds)
        for score in scores:
            values = [get_score(m, score) for m in setting.metrics]
            found = compute_statistics(values)
            row[f"{score} mean"] = found.mean if found else None
            row[f"{score} sd"] = found.deviation if found else None
            row[f"{score} ci95"] = found.half_width if found else None
        rows.append(row)
    return rows


def summarize(
    settings: Sequence[Setting], scores: Sequence[str], method: str = "student"
) -> list[dict[str, Any]]:
    """One row a setting and score: mean, sd, low, high and n over seeds.

    n counts the seeds that have the score; unless all do, it is all there is.

    Args:
        settings: The settings.
        scores: Scores by their path (see `get_score`).
        method: Of the 95 % interval from low to high (`compute_interval`).
    """
    rows = []
    for setting in settings:
        for score in scores:
            values = [get_score(m, score) for m in setting.metrics]
            found = compute_statistics(values)
            ends = compute_interval(values, method) if found else None
            low, high = ends or (None, None)
            row = {**setting.flags, "score": score}
            row["mean"] = found.mean if found else None
            row["sd"] = found.deviation if found else None
            count = sum(value is not None for value in values)
            rows.append(row | {"low": low, "high": high, "n": count})
    return rows


def format_markdown(
    rows: Sequence[dict[str, Any]], scores: Sequence[str]
) -> str:
    """The table in Markdown, mean ± standard deviation."""
    flags = [
        name for name in rows[0] if not name.endswith((" mean", " sd", " ci95"))
    ]
    lines = [
        "| " + " | ".join([*flags, *scores]) + " |",
        "|" + "---|" * (len(flags) + len(scores)),
    ]
    for row in rows:
        cells = [str(row[name]) for name in flags]
        for score in scores:
            mean, spread = row[f"{score} mean"], row[f"{score} sd"]
            cells.append(_format(mean, spread))
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def _format(mean: float | None, spread: float | None) -> str:
    if mean is None:
        return "–"
    if spread is None:
        return f"{mean:.3g}"
    return f"{mean:.3g} ± {spread:.2g}"
