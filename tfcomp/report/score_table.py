"""A table of settings and a paired test, of several runs or of a sweep."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from tfcomp.figures.exhibits import Exhibit
from tfcomp.metrics.registry import find_limits
from tfcomp.report.page import Section, make_exhibit, make_section
from tfcomp.report.verbalize import FITTED, list_references
from tfcomp.statistics.seed_statistics import (
    Statistics,
    compare_settings,
    compute_statistics,
)

if TYPE_CHECKING:
    from tfcomp.metrics.run_analysis import RunAnalysis

Row = Mapping[str, Any]
SUBSETS = ("id", "ood")
HELD_OUT = "ood_relative_mse"
MIN_SEEDS = 3  # the interval of two is wider than any figure of them
MAX_NAMED = 3
MAX_LINKS = 5
LEVEL = 0.05
# Predictors of `references` in `metrics.json`, and their columns.
RIVALS = {
    "nearest_id": "nearest image",
    "additive": "sum of effects",
    "mean_image": "mean image",
}
IGNORED = "one factor ignored"


class Links(str):
    """Text of a table's cell, whose parts link to addresses beside the page."""

    parts: Sequence[tuple[str, str]]

    def __new__(cls, parts: Sequence[tuple[str, str]]) -> Links:
        """Joins texts; the address of one without a link is empty."""
        made = super().__new__(cls, " ".join(text for text, _ in parts))
        made.parts = parts
        return made


@dataclass(frozen=True)
class ScoredRun:
    """The relative errors of a run by subset, and OOD errors by column."""

    setting: str
    seed: int
    errors: Mapping[str, float | None]
    others: Mapping[str, float | None] = field(default_factory=dict)
    link: str = ""


def read_scored(
    setting: str, seed: int, metrics: Mapping[str, Any], link: str = ""
) -> ScoredRun:
    """Reads the errors of a run from the content of its `metrics.json`."""
    references = metrics.get("references", {})
    others = {"untrained": metrics.get("untrained", {}).get("ood")} | {
        column: references.get(name, {}).get("ood")
        for name, column in RIVALS.items()
    }
    for name in list_references(references):
        if name not in RIVALS:
            others[IGNORED] = references[name]["ood"]
    errors = {s: metrics.get(s, {}).get("relative_mse") for s in SUBSETS}
    return ScoredRun(setting, seed, errors, others, link)


def score_runs(
    analyses: Sequence[RunAnalysis], folder: Path
) -> list[ScoredRun]:
    """Returns the errors of runs, with links from the folder of a report."""
    scored = []
    for analysis in analyses:
        run, link = analysis.run, ""
        if run.path is not None:
            page = run.path / "analysis" / "report.html"
            target = page if page.exists() else run.path
            link = Path(os.path.relpath(target, folder)).as_posix()
        metrics = analysis.evaluation.scores | {
            "references": analysis.references,
            "untrained": run.metrics.get("untrained", {}),
        }
        seed = run.config.training.seed
        scored.append(read_scored(analysis.setting, seed, metrics, link))
    return scored


def make_table(runs: Sequence[ScoredRun]) -> Exhibit:
    """Makes the table of settings, one row each."""
    rows = []
    for setting, group in _group_settings(runs).items():
        ordered = sorted(group, key=lambda run: run.seed)
        parts = [(str(run.seed), run.link) for run in ordered[:MAX_LINKS]]
        if len(group) > MAX_LINKS:
            parts.append((f"… ({len(group)})", ""))
        row: dict[str, Any] = {"setting": setting, "seeds": Links(parts)}
        for subset in SUBSETS:
            found, name = _summarize(group, subset), subset.upper()
            row |= {name: found.mean if found else None}
            row |= {f"{name} 95 %": _format_interval(found)}
        for column in ("untrained", *RIVALS.values(), IGNORED):
            others = compute_statistics([r.others.get(column) for r in group])
            row[column] = others.mean if others else None
        rows.append(row)
    return make_exhibit("relative_errors", rows=rows)


def _group_settings(runs: Sequence[ScoredRun]) -> dict[str, list[ScoredRun]]:
    groups: dict[str, list[ScoredRun]] = {}
    for run in runs:
        groups.setdefault(run.setting, []).append(run)
    return groups


def compare_with_first(runs: Sequence[ScoredRun]) -> Section:
    """Compares OOD errors of the first setting with others, at equal seeds."""
    if len({run.setting for run in runs}) < 2:
        return make_paired([], "")
    table = pd.DataFrame(
        {
            "setting": [run.setting for run in runs],
            "seed": [run.seed for run in runs],
            "score": HELD_OUT,
            "value": [run.errors.get("ood") for run in runs],
        }
    )
    names = {"setting_a": "a", "setting_b": "b"}
    found = compare_settings(table, ["setting"]).rename(columns=names)
    rows: list[Any] = found.to_dict("records")
    text = describe_tests(rows, runs[0].setting)
    is_tested = any(row["p_holm"] is not None for row in rows)
    return make_paired(rows if is_tested else [], text)


def make_paired(rows: Sequence[Row], finding: str) -> Section:
    """Makes the section of comparisons, with the sentence of the answer."""
    table = make_exhibit("paired", rows=[*map(dict, rows)])
    return make_section("paired", [table], finding)


def describe_fits(runs: Sequence[ScoredRun], every: Sequence[str] = ()) -> str:
    """Counts settings that fit, and names the best of them on held-out data."""
    means: dict[str, dict[str, float]] = {setting: {} for setting in every}
    for setting, group in _group_settings(runs).items():
        found = {s: _summarize(group, s) for s in SUBSETS}
        means[setting] = {s: f.mean for s, f in found.items() if f is not None}
    known = {setting: m for setting, m in means.items() if "id" in m}
    if not known:
        return "No setting has an ID error for every seed."
    fit = {setting: m for setting, m in known.items() if m["id"] <= FITTED}
    # One that lacks an ID error, or any trial, has not been seen to fit.
    text = f"{len(fit)} of {len(means)} settings fit their"
    if len(means) == 1:
        text = "The setting fits its" if fit else "The setting does not fit its"
    text += f" training data (mean ID error at most {100 * FITTED:.0f} %)"
    if not fit:
        return f"{text}, so OOD errors are no test of generalization."
    held_out = {s: m["ood"] for s, m in fit.items() if "ood" in m}
    if not held_out:
        return f"{text}."
    least = min(held_out.values())
    if len(means) == 1:
        return f"{text}; its mean OOD error is {least:.3g}."
    best = "; ".join(s for s, error in held_out.items() if error == least)
    whole = "these" if len(held_out) == len(fit) else "those that have one"
    text += f"; the lowest mean OOD error of {whole} is {least:.3g}"
    return f"{text} ({best})."


def describe_tests(rows: Sequence[Row], reference: str = "") -> str:
    """Describes paired tests of OOD errors of the settings `a` and `b`."""
    tested = [row for row in rows if row["p_holm"] is not None]
    if not tested:
        return "Differences are not tested: in no pair do they vary over seeds."
    clear = [row for row in tested if row["p_holm"] < LEVEL]
    shown = tested if len(tested) == 1 else clear
    pairs = f"pairs with {reference}" if reference else "pairs"
    text = (
        f"At equal seeds the OOD error differs in {len(clear)} of "
        f"{len(tested)} {pairs} (paired t-test, p < {LEVEL} by Holm)"
    )
    named = [_describe_pair(row) for row in shown[:MAX_NAMED]]
    if len(clear) > MAX_NAMED:
        named.append(f"{len(clear) - MAX_NAMED} more")
    return f"{text}: {'; '.join(named)}." if named else f"{text}."


def _describe_pair(row: Row) -> str:
    interval = ""
    if row["low"] is not None:
        interval = f" [{row['low']:.3g}, {row['high']:.3g}]"
    return (
        f"{row['b']} less {row['a']} is {row['difference']:.3g}{interval}, "
        f"p = {row['p_holm']:.2g}"
    )


def _summarize(runs: Sequence[ScoredRun], subset: str) -> Statistics | None:
    values = [run.errors.get(subset) for run in runs]
    return compute_statistics(values, find_limits(f"{subset}_relative_mse"))


def _format_interval(found: Statistics | None) -> str | None:
    ends = (found.low, found.high) if found else (None,)
    few = found is None or found.count < MIN_SEEDS
    return None if few or None in ends else "{:.3g} to {:.3g}".format(*ends)
