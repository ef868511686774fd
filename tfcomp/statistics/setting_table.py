"""Runs as a table, one row a setting: its scores over seeds."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tfcomp.statistics.limits import Limits
from tfcomp.statistics.seed_statistics import (
    IGNORED,
    compute_statistics,
    get_score,
    list_numbers,
)

if TYPE_CHECKING:
    import pandas as pd


# Of every score, as columns.
NUMBERS = ("mean", "sd", "low", "high")
# The flags that decide what a run computes, and its `metrics.json`.
FinishedRun = tuple[dict[str, Any], dict[str, Any]]


def tabulate_settings(
    runs: Sequence[FinishedRun],
    scores: Sequence[str],
    find_limits: Callable[[str], Limits],
) -> pd.DataFrame:
    """Groups runs that differ in nothing but their seed.

    All have the same flags; a second run with the same ones and seed is the
    same computation, and counts once. One row a setting: the flags that vary,
    sorted by them; `seeds`, their number; and for each score (a path, see
    `get_score`) `<score> mean`, `<score> sd`, and the ends `<score> low` and
    `<score> high` of the 95 % interval. None where a seed lacks the score.
    """
    import pandas as pd

    flags = pd.DataFrame([flags for flags, _ in runs], dtype=object)
    shared = [name for name in flags if name not in IGNORED]
    varied = [name for name in shared if flags[name].nunique(dropna=False) > 1]
    rows = []
    distinct = flags.drop_duplicates([*shared, "seed"])
    # Without a flag that varies, all runs are of one setting.
    for setting, group in distinct.groupby(varied or shared, dropna=False):
        row = dict(zip(varied, setting, strict=False)) | {"seeds": len(group)}
        for score in scores:
            values = [get_score(runs[i][1], score) for i in group.index]
            found = compute_statistics(values, limits=find_limits(score))
            numbers = zip(NUMBERS, list_numbers(found), strict=True)
            row |= {f"{score} {name}": number for name, number in numbers}
        rows.append(row)
    return pd.DataFrame(rows, dtype=object)


def format_markdown(table: pd.DataFrame, scores: Sequence[str]) -> str:
    """The table in Markdown, mean ± standard deviation."""
    columns = len(table.columns) - len(NUMBERS) * len(scores)
    names = list(table.columns[:columns])
    rows = [
        [row[name] for name in names]
        + [_format(row[f"{s} mean"], row[f"{s} sd"]) for s in scores]
        for row in table.to_dict("records")
    ]
    return format_rows([[*names, *scores], *rows])


def format_rows(rows: Sequence[Sequence[Any]]) -> str:
    """A table in Markdown, a line each; the first row is its head."""
    head, *lines = (f"| {' | '.join(map(str, row))} |\n" for row in rows)
    return "".join([head, f"|{'---|' * len(rows[0])}\n", *lines])


def _format(mean: float | None, spread: float | None) -> str:
    if mean is None:
        return "–"
    return f"{mean:.3g}" + ("" if spread is None else f" ± {spread:.2g}")


def choose_flags(settings: Sequence[Mapping[str, Any]]) -> list[str]:
    """The flags that tell the settings apart, in their order.

    One that follows from one before it, as epochs that are varied together with
    the encoding, is left out; so is one that does not vary.
    """
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
    """The values of some flags, as `bump`, or `encoding bump, depth 2`."""
    texts = []
    for name in names:
        value = setting[name]
        text = f"{value:g}" if isinstance(value, float) else str(value)
        # Values of several flags may look alike.
        texts.append(f"{name} {text}" if len(names) > 1 else text)
    return ", ".join(texts) or "all"


def _count(settings: Sequence[Mapping[str, Any]], names: Sequence[str]) -> int:
    return len({tuple(setting[name] for name in names) for setting in settings})
