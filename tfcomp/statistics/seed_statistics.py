"""Means over seeds, paired tests at equal seeds, and labels of settings.

Tables have a row for each number: the flags of its setting,
its `seed`, its name (as `score`), and its `value`. Runs of one seed share their
data order and much of their chance, so that the difference within a seed has
less spread than the scores have.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import astuple, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from tfcomp.statistics.limits import REAL, Limits

if TYPE_CHECKING:
    import pandas as pd

# Flags that may differ between runs of one setting.
IGNORED = ("seed", "eval_every", "layerwise_every", "checkpoint_seconds")
# Scores of which "half as large" says more than "0.01 less".
RATIO_ENDINGS = ("mse", "_error")
NUMBERS = "difference sd low high n p p_holm ratio ratio_low ratio_high".split()


@dataclass(frozen=True)
class Statistics:
    """Number over seeds: mean, sample standard deviation, 95 % interval."""

    mean: float
    deviation: float | None
    low: float | None
    high: float | None
    count: int


def compute_statistics(
    values: Sequence[float | None], limits: Limits = REAL
) -> Statistics | None:
    """Computes statistics of one value a seed; None if a seed lacks its own."""
    # The mean over the rest would flatter.
    sample = np.asarray(values, float)  # [n]; NaN for None
    if not len(sample) or np.isnan(sample).any():
        return None
    deviation = float(sample.std(ddof=1)) if len(sample) > 1 else None
    low, high = compute_interval(sample.tolist(), limits) or (None, None)
    return Statistics(float(sample.mean()), deviation, low, high, len(sample))


def compute_interval(
    values: Sequence[float], limits: Limits = REAL
) -> tuple[float, float] | None:
    """Computes Student's 95 % interval of the mean, within the limits.

    None for fewer than two numbers, or if all are equal: their spread is
    unknown. Limits are ignored if a number is outside.
    """
    sample = np.asarray(values, float)  # [n]
    if len(sample) < 2 or np.ptp(sample) == 0:
        return None
    from scipy.special import stdtrit  # a tenth of the time of scipy.stats

    limits = limits.widen(sample.tolist())
    mean, error = sample.mean(), sample.std(ddof=1) / math.sqrt(len(sample))
    width = stdtrit(len(sample) - 1, 0.975) * error
    width *= limits.derivative(mean)
    place = limits.link(mean)
    low, high = place - width, place + width
    return limits.inverse_link(low), limits.inverse_link(high)


def summarize(
    table: pd.DataFrame,
    keys: Sequence[str],
    find_limits: Callable[[str], Limits],
) -> pd.DataFrame:
    """Computes mean, spread and interval of numbers with equal keys."""
    import pandas as pd

    # The score decides the range of its values.
    named = [keys.index(n) for n in ("score", "quantity") if n in keys]
    rows = []
    for key, group in table.groupby(list(keys), sort=False, dropna=False):
        limits = find_limits(str(key[named[0]])) if named else REAL
        found = compute_statistics(group["value"].tolist(), limits)
        rows.append([*key, *list_numbers(found), int(group["value"].count())])
    columns = [*keys, "mean", "sd", "low", "high", "n"]
    return pd.DataFrame(rows, columns=columns, dtype=object)


def list_numbers(found: Statistics | None) -> tuple[float | None, ...]:
    """Lists mean, deviation and interval; None each without statistics."""
    return astuple(found)[:4] if found else (None,) * 4


def compare_settings(
    table: pd.DataFrame, flags: Sequence[str], pairs: str = "first"
) -> pd.DataFrame:
    """Compares settings at equal seeds: the first with each other one, or all.

    Rows have the columns of `paired.csv` (docs/sweeps.md); None where no
    number is known.
    """
    import pandas as pd

    rows = []
    for score, numbers in table.groupby("score", sort=False):
        settings = [
            (setting, group.set_index("seed")["value"].dropna().astype(float))
            for setting, group in numbers.groupby([*flags, "score"], sort=False)
        ]
        chosen = list(itertools.combinations(settings, 2))
        if pairs == "first":
            chosen = list(itertools.product(settings[:1], settings[1:]))
        names = [f"{flag}_{side}" for side in "ab" for flag in flags]
        family = [
            dict(zip(names, [*a[:-1], *b[:-1]], strict=True))
            | {"score": score}
            | _compare(first, second, str(score))
            for (a, first), (b, second) in chosen
        ]
        adjusted = adjust_by_holm([row["p"] for row in family])
        for row, p_holm in zip(family, adjusted, strict=True):
            row["p_holm"] = p_holm
        rows += family
    return pd.DataFrame(rows, dtype=object)


def adjust_by_holm(p_values: Sequence[float | None]) -> list[float | None]:
    """Adjusts the p of a family by Holm; None where there is no test."""
    known = sorted((p, i) for i, p in enumerate(p_values) if p is not None)
    adjusted: list[float | None] = [None] * len(p_values)
    largest = 0.0
    for rank, (p_value, index) in enumerate(known):
        # Never below the one before, so that the order stays.
        largest = max(largest, (len(known) - rank) * p_value)
        adjusted[index] = min(1.0, largest)
    return adjusted


def _compare(first: pd.Series, second: pd.Series, score: str) -> dict[str, Any]:
    """Compares the values of two settings, given by seed."""
    seeds = first.index.intersection(second.index).sort_values()
    a, b = first[seeds].to_numpy(), second[seeds].to_numpy()  # [n]
    found = compute_statistics(b - a)
    ratio = None
    if score.endswith(RATIO_ENDINGS) and len(seeds) and min(*a, *b) > 0:
        ratio = compute_statistics(np.log(b) - np.log(a))
    mean, _, low, high = list_numbers(ratio)
    numbers = [*list_numbers(found), len(seeds), _test(b - a), None]
    numbers += [x if x is None else float(np.exp(x)) for x in (mean, low, high)]
    return dict(zip(NUMBERS, numbers, strict=True))


def _test(differences: np.ndarray) -> float | None:
    """Computes the two-sided p of the t-test; None if all are equal, or one."""
    from scipy import stats

    if len(differences) < 2 or np.ptp(differences) == 0:
        return None  # their spread is unknown
    return float(stats.ttest_1samp(differences, 0.0).pvalue)


def format_rows(rows: Sequence[Sequence[Any]]) -> str:
    """Formats a table in Markdown; its first row is the head."""
    texts = [[str(cell).replace("|", r"\|") for cell in row] for row in rows]
    head, *lines = (f"| {' | '.join(row)} |\n" for row in texts)
    return "".join([head, f"|{'---|' * len(rows[0])}\n", *lines])


def choose_flags(settings: Sequence[Mapping[str, Any]]) -> list[str]:
    """Returns flags that tell the settings apart, and follow from no other."""
    chosen: list[str] = []
    for name in settings[0]:
        varies = _count(settings, [name]) > 1
        if varies and not any(
            _count(settings, [other, name]) == _count(settings, [other])
            for other in chosen
        ):
            chosen.append(name)
    return chosen


def make_label(setting: Mapping[str, Any], names: Sequence[str]) -> str:
    """Formats the values of flags, as `encoding bump, depth 2`."""
    values = [setting[name] for name in names]
    texts = [f"{x:.15g}" if isinstance(x, float) else x for x in values]
    pairs = zip(names, texts, strict=True)
    return ", ".join(f"{name} {text}" for name, text in pairs) or "all"


def _count(settings: Sequence[Mapping[str, Any]], names: Sequence[str]) -> int:
    return len({tuple(setting[name] for name in names) for setting in settings})
