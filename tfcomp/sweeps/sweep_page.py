"""The page of a sweep: its results in sentences, scores, folded sections."""

from collections.abc import Mapping, Sequence
from typing import Any

from tfcomp.evaluation.verbalize import FITTED
from tfcomp.figures.exhibits import Exhibit
from tfcomp.report.page import Answer, Section
from tfcomp.statistics.setting_table import make_label
from tfcomp.sweeps.sweep_exhibits import MIN_SEEDS, list_rows
from tfcomp.sweeps.sweep_numbers import SweepNumbers

Row = Mapping[str, Any]
KNOWN, HELD_OUT = "id_relative_mse", "ood_relative_mse"


def make_answer(sweep: SweepNumbers, exhibits: Sequence[Exhibit]) -> Answer:
    """Makes the first screen: sentences, relative errors, their picture."""
    errors = {name: _list_errors(sweep, name) for name in (KNOWN, HELD_OUT)}
    labels = dict.fromkeys([*errors[KNOWN], *errors[HELD_OUT]])
    rows = [
        {
            "setting": label,
            "ID": _format_interval(errors[KNOWN].get(label)),
            "OOD": _format_interval(errors[HELD_OUT].get(label)),
        }
        for label in labels
    ]
    caption = (
        "Means over seeds, and 95 % intervals of three seeds or more, of the "
        "pixel MSE divided by that of the reference (a blank image if the data "
        "declare a constant ground, else the mean training image)."
    )
    table = Exhibit("settings", "Relative errors", caption, rows=rows)
    finished = len(sweep.seeds.drop_duplicates([*sweep.flags, "seed"]))
    sentences = [
        _describe_best(errors[HELD_OUT]),
        _describe_fit(errors[KNOWN]),
        f"{finished} of {sweep.planned} trials have scores.",
    ]
    shown = [item for item in exhibits if item.name == "scores"]
    return Answer([s for s in sentences if s], [table, *shown])


def make_sections(
    sweep: SweepNumbers, exhibits: Sequence[Exhibit]
) -> list[Section]:
    """Makes the other figures, and the comparisons at equal seeds."""
    shown = [item for item in exhibits if item.name != "scores"]
    text = "Errors by epoch, numbers of stages, scores by varied numbers."
    figures = Section("figures", "Figures", text, shown)
    paired = sweep.paired.astype(object)
    rows = list_rows(paired.where(paired.notna(), None))
    if not rows:
        return [figures]
    caption = (
        "Second setting less first one, at equal seeds; p_holm is corrected "
        "for the pairs of a score."
    )
    p_values = [row["p_holm"] for row in rows if row["score"] == HELD_OUT]
    known = [p for p in p_values if p is not None]
    finding = (
        f"The OOD error differs in {sum(p < 0.05 for p in known)} of "
        f"{len(known)} pairs with enough seeds (p < 0.05 by Holm)."
    )
    table = Exhibit("paired", "Differences", caption, rows=rows)
    text = "Pairs of settings at equal seeds."
    return [figures, Section("paired", "Comparisons", text, [table], finding)]


def _list_errors(sweep: SweepNumbers, score: str) -> dict[str, Row]:
    """Returns the rows of a score by setting, where all seeds have it."""
    rows = list_rows(sweep.scores[sweep.scores["score"] == score])
    # A value alone says little in a sentence.
    start = f"{sweep.flags[0]} " if len(sweep.flags) == 1 else ""
    labels = [f"{start}{make_label(row, sweep.flags)}" for row in rows]
    pairs = zip(labels, rows, strict=True)
    return {label: row for label, row in pairs if row["mean"] is not None}


def _describe_best(errors: Mapping[str, Row]) -> str:
    """Describes the least OOD error, and if its setting stands out."""
    if not errors:
        return "No setting has an OOD error."
    ranked = sorted(errors, key=lambda label: errors[label]["mean"])
    best, worst = ranked[0], ranked[-1]
    means = [f"{errors[label]['mean']:.3g}" for label in (best, worst)]
    if len(ranked) == 1:
        return f"{best} has an OOD relative error of {means[0]}."
    first, second = errors[best], errors[ranked[1]]
    if min(first["n"], second["n"]) < MIN_SEEDS:
        finding = "fewer than three seeds do not tell settings apart"
    elif None in (first["high"], second["low"]):
        finding = "seeds with equal scores have no interval"
    elif first["high"] < second["low"]:
        finding = "the intervals of the best two do not overlap"
    else:
        finding = "the intervals of the best two overlap"
    return (
        f"The OOD relative error is least for {best} ({means[0]}) and largest "
        f"for {worst} ({means[1]}); {finding}."
    )


def _describe_fit(errors: Mapping[str, Row]) -> str:
    """Counts the settings whose mean ID error is small."""
    fitted = sum(row["mean"] <= FITTED for row in errors.values())
    if not errors:
        return ""
    return (
        f"{fitted} of {len(errors)} settings fit their training data, by a "
        f"mean ID relative error of at most {100 * FITTED:.0f} %."
    )


def _format_interval(row: Row | None) -> str | None:
    """Formats as `0.12 [0.10, 0.14]`; the mean alone of few seeds."""
    if row is None:
        return None
    text = f"{row['mean']:.3g}"
    if row["n"] < MIN_SEEDS or row["low"] is None:
        return text
    return f"{text} [{row['low']:.3g}, {row['high']:.3g}]"
