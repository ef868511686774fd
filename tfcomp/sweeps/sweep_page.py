"""The page of a sweep: what its numbers say, scores, folded sections."""

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from tfcomp.evaluation.verbalize import FITTED
from tfcomp.figures.exhibits import Exhibit
from tfcomp.report.findings import describe_course
from tfcomp.report.page import Answer, Section
from tfcomp.statistics.setting_table import make_label
from tfcomp.sweeps.sweep_exhibits import MIN_SEEDS, SweepScores

Row = Mapping[str, Any]
KNOWN, HELD_OUT = "id_relative_mse", "ood_relative_mse"
# What is told of a figure, by its axis: the number, and what it is called.
AXES = {
    "epoch": ("ood/relative_mse", "the OOD relative error"),
    "stage": ("factorization", "the factorization"),
}
# Titles of sections by the beginnings of the names of their exhibits.
SECTIONS = {
    "curves": ("Course of training", "Errors against the epoch."),
    "layers": ("Stages", "Numbers of stages against the depth."),
    "by": ("Scores by a number", "Scores against a flag that is a number."),
}


def make_answer(
    sweep: SweepScores, exhibits: Sequence[Exhibit], planned: int
) -> Answer:
    """Three sentences, the scores of every setting, and their picture."""
    rows = list_settings(sweep)
    table = Exhibit(
        "settings",
        "Relative errors",
        "Means over seeds, and 95 % intervals of three seeds or more, of the "
        "pixel MSE divided by that of the reference (a blank image if the data "
        "declare a constant ground, else the mean training image).",
        rows=[
            {
                "setting": row["label"],
                "seeds": row["n"],
                "ID": format_interval(row.get(KNOWN)),
                "OOD": format_interval(row.get(HELD_OUT)),
            }
            for row in rows
        ],
    )
    finished = int(sweep.seeds.drop_duplicates([*sweep.flags, "seed"]).shape[0])
    sentences = [
        describe_settings(rows),
        describe_fit(rows),
        f"{finished} of {planned} trials have scores.",
    ]
    shown = [item for item in exhibits if item.name == "scores"]
    return Answer([s for s in sentences if s], [table, *shown])


def list_settings(sweep: SweepScores) -> list[dict[str, Any]]:
    """Settings with their label, number of seeds, and numbers by score."""
    found: dict[str, dict[str, Any]] = {}
    for row in sweep.summary.to_dict("records"):
        label = name_setting(row, sweep.flags)
        setting = found.setdefault(label, {"label": label, "n": 0})
        setting["n"] = max(setting["n"], int(row["n"]))
        setting[row["score"]] = row
    return [*found.values()]


def name_setting(row: Row, flags: Sequence[str]) -> str:
    """As `depth 2`: the value alone says little in a sentence."""
    label = make_label(row, flags)
    return f"{flags[0]} {label}" if len(flags) == 1 else label


def describe_settings(rows: Sequence[Row]) -> str:
    """Which setting errs least, and whether that can be told from the rest."""
    known = [
        row for row in rows if HELD_OUT in row and _is_known(row[HELD_OUT])
    ]
    known.sort(key=lambda row: row[HELD_OUT]["mean"])
    if not known:
        return "No setting has an OOD error."
    best, worst = known[0], known[-1]
    if len(known) == 1:
        return f"{best['label']} has an OOD relative error of {_mean(best)}."
    high, low = best[HELD_OUT]["high"], known[1][HELD_OUT]["low"]
    if min(best["n"], known[1]["n"]) < MIN_SEEDS:
        found = "two seeds or fewer do not tell settings apart"
    elif None in (high, low):
        found = "seeds that are all alike have no interval"
    elif high < low:
        found = "the intervals of the best two do not overlap"
    else:
        found = (
            "the intervals of the best two settings overlap, so that these are "
            "not told apart"
        )
    return (
        f"The OOD relative error is least for {best['label']} ({_mean(best)}) "
        f"and largest for {worst['label']} ({_mean(worst)}); {found}."
    )


def describe_fit(rows: Sequence[Row]) -> str:
    """How many settings fit what they saw, in the mean."""
    means = [row[KNOWN]["mean"] for row in rows if KNOWN in row]
    if not means:
        return ""
    return (
        f"{sum(mean <= FITTED for mean in means)} of {len(means)} settings fit "
        "what they saw, by a mean ID relative error of at most "
        f"{100 * FITTED:.0f} %."
    )


def make_sections(
    sweep: SweepScores, exhibits: Sequence[Exhibit], paired: pd.DataFrame
) -> list[Section]:
    """The other exhibits, and the comparisons at equal seeds."""
    sections = []
    for start, (title, text) in SECTIONS.items():
        shown = [e for e in exhibits if e.name.split("_")[0] == start]
        found = " ".join(describe_lines(sweep, item) for item in shown)
        sections.append(Section(start, title, text, shown, found.strip()))
    rows = paired.astype(object).where(paired.notna(), None).to_dict("records")
    if rows:
        caption = (
            "Second setting less first one, at equal seeds; p_holm is "
            "corrected for the pairs of a score."
        )
        table = Exhibit("paired", "Differences", caption, rows=rows)
        text, found = "Pairs of settings at equal seeds.", describe_pairs(rows)
        pairs = Section("paired", "Comparisons", text, [table], found)
        sections.append(pairs)
    return sections


def describe_lines(sweep: SweepScores, exhibit: Exhibit) -> str:
    """How a number goes along the axis of a figure, for every setting."""
    x = next((n for n in AXES if n in exhibit.rows[0]), "")
    x = x or exhibit.name.removeprefix("by_")
    wanted, name = AXES.get(x, (HELD_OUT, "the OOD relative error"))
    others = [flag for flag in sweep.flags if flag != x]
    rows = [
        {
            "run": name_setting(row, others),
            "stage": _name_place(x, row[x]),
            "place": row[x],
            "mean": row["mean"] if _is_known(row) else None,
        }
        for row in exhibit.rows
        if row.get("quantity", row.get("score")) == wanted and x in row
    ]
    rows.sort(key=lambda row: row["place"])
    if x == "stage":
        for last in {row["run"]: row for row in rows}.values():
            last["stage"] = "image"
    return describe_course(rows, "mean", name)


def _name_place(x: str, value: float) -> str:
    if x != "stage":
        return f"{x} {value:g}"
    return f"stage_{int(value) - 1}" if value else "code"


def describe_pairs(rows: Sequence[Row]) -> str:
    """In how many pairs the OOD error differs for sure."""
    found = [row["p_holm"] for row in rows if row["score"] == HELD_OUT]
    pairs = [p for p in found if p is not None]
    if not pairs:
        return "No pair has seeds enough for a test."
    sure = sum(p < 0.05 for p in pairs)
    return (
        f"The OOD error differs in {sure} of {len(pairs)} pairs (p < 0.05 by "
        "Holm)."
    )


def format_interval(row: Row | None) -> str | None:
    """As `0.12 [0.10, 0.14]`; the mean alone of fewer than three seeds."""
    if row is None:
        return None
    text = f"{row['mean']:.3g}"
    if row["n"] < MIN_SEEDS or not _is_known(row, "low"):
        return text
    return f"{text} [{row['low']:.3g}, {row['high']:.3g}]"


def _is_known(row: Row, column: str = "mean") -> bool:
    """Whether there is a number, neither None nor NaN."""
    return row[column] is not None and row[column] == row[column]


def _mean(row: Row) -> str:
    return f"{row[HELD_OUT]['mean']:.3g}"
