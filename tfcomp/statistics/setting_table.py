"""Runs as a table, one row a setting: its scores over seeds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from tfcomp.statistics.seed_statistics import (
    IGNORED,
    compute_statistics,
    get_score,
)

if TYPE_CHECKING:
    import pandas as pd


# The flags that decide what a run computes, and its `metrics.json`.
FinishedRun = tuple[dict[str, Any], dict[str, Any]]


def tabulate_settings(
    runs: Sequence[FinishedRun], scores: Sequence[str]
) -> pd.DataFrame:
    """Groups runs that differ in nothing but their seed.

    A second run with the same flags and seed is the same computation, and
    counts once.

    Args:
        runs: The runs; all have the same flags.
        scores: Scores by their path (see `seed_statistics.get_score`).

    Returns:
        One row a setting: the flags in which the settings differ, sorted by
        them; `seeds`, their number; and for each score `<score> mean`,
        `<score> sd`, and `<score> ci95`, half of its 95 % interval (Student).
        None where a seed lacks the score.
    """
    import pandas as pd

    flags = pd.DataFrame([flags for flags, _ in runs], dtype=object)
    shared = [name for name in flags if name not in IGNORED]
    varied = [name for name in shared if flags[name].nunique(dropna=False) > 1]
    rows = []
    distinct = flags.drop_duplicates([*shared, "seed"])
    # Without a flag that varies, all runs are of one setting.
    for values, group in distinct.groupby(varied or shared, dropna=False):
        row = dict(zip(varied, values, strict=False)) | {"seeds": len(group)}
        for score in scores:
            found = compute_statistics(
                [get_score(runs[index][1], score) for index in group.index]
            )
            row[f"{score} mean"] = found.mean if found else None
            row[f"{score} sd"] = found.deviation if found else None
            row[f"{score} ci95"] = found.half_width if found else None
        rows.append(row)
    return pd.DataFrame(rows, dtype=object)


def format_markdown(table: pd.DataFrame, scores: Sequence[str]) -> str:
    """The table in Markdown, mean ± standard deviation."""
    names = list(table.columns[: len(table.columns) - 3 * len(scores)])
    lines = [
        "| " + " | ".join([*names, *scores]) + " |",
        "|" + "---|" * (len(names) + len(scores)),
    ]
    for row in table.to_dict("records"):
        cells = [str(row[name]) for name in names]
        cells += [_format(row[f"{s} mean"], row[f"{s} sd"]) for s in scores]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def _format(mean: float | None, spread: float | None) -> str:
    if mean is None:
        return "–"
    if spread is None:
        return f"{mean:.3g}"
    return f"{mean:.3g} ± {spread:.2g}"
