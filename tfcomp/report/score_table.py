"""A table of settings and a paired test, of several runs or of a sweep."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tfcomp.figures.exhibits import Exhibit
from tfcomp.metrics.registry import SUBSET_WORDS, find_limits
from tfcomp.report.page import Section, make_exhibit, make_section
from tfcomp.report.verbalize import (
    FAILED,
    FITTED,
    list_references,
    name_reference,
)
from tfcomp.statistics.seed_statistics import Statistics, compute_statistics

if TYPE_CHECKING:
    from tfcomp.metrics.run_analysis import RunAnalysis

Row = Mapping[str, Any]
SUBSETS = ("id", "ood")
HELD_OUT = "ood_relative_mse"
MIN_SEEDS = 3  # the interval of two is wider than any figure of them
MAX_NAMED = 3
MAX_LINKS = 5
LEVEL = 0.05
# Predictors of `references` in `metrics.json`, and their columns; {} is the
# word for a row of the data.
RIVALS = {
    "additive": "additive",
    "nearest_id": "nearest training {}",
    "mean_image": "mean training {}",
}
IGNORED = "mean over a factor"
NO_TEST = "so held-out errors are no test of generalization."


class Links(str):
    """Text of a table's cell, whose parts link to addresses beside the page."""

    parts: Sequence[tuple[str, str]]

    def __new__(cls, parts: Sequence[tuple[str, str]]) -> Links:
        """Joins texts; the address of one without a link is empty."""
        links = super().__new__(cls, ", ".join(text for text, _ in parts))
        links.parts = parts
        return links


@dataclass(frozen=True)
class ScoredRun:
    """The errors of a run.

    Attributes:
        setting: The name of its setting.
        seed: Its seed.
        errors: Relative MSE by subset.
        others: Relative MSE of other predictors out of distribution, by column.
        link: The address of its page or folder.
        reference: What has the relative MSE 1.
    """

    setting: str
    seed: int
    errors: Mapping[str, float | None]
    others: Mapping[str, float | None] = field(default_factory=dict)
    link: str = ""
    reference: str = "a blank image"


def read_scored(
    setting: str,
    seed: int,
    metrics: Mapping[str, Any],
    link: str = "",
) -> ScoredRun:
    """Reads the errors of a run.

    Args:
        setting: The name of its setting.
        seed: Its seed.
        metrics: The content of its `metrics.json`.
        link: The address of its page or folder, from the page of the table.
    """
    reference = name_reference(metrics)
    example = "embedding" if reference.endswith("embedding") else "image"
    references = metrics.get("references", {})
    others = {}
    for name, column in RIVALS.items():
        if name in references:
            others[column.format(example)] = references[name].get("ood")
    for name in list_references(references):
        if name not in RIVALS:
            others[IGNORED] = references[name]["ood"]
    errors = {}
    for subset in SUBSETS:
        scores = metrics.get(subset, {})
        errors[subset] = scores.get("relative_mse")
    return ScoredRun(
        setting,
        seed,
        errors,
        others,
        link,
        reference=reference,
    )


def score_runs(
    analyses: Sequence[RunAnalysis], folder: Path
) -> list[ScoredRun]:
    """Returns the errors of runs.

    Args:
        analyses: The runs.
        folder: The folder of the report, from which links lead.
    """
    scored = []
    for analysis in analyses:
        run = analysis.run
        link = ""
        if run.path is not None:
            target = run.path / "analysis" / "report.html"
            if not target.exists():
                target = run.path
            address = os.path.relpath(target, folder)
            link = Path(address).as_posix()
        scores = analysis.evaluation.scores
        metrics = {
            **scores,
            "references": analysis.references,
            "reference": analysis.dataset.reference_label,
        }
        seed = run.config.training.seed
        scored.append(
            read_scored(
                analysis.setting,
                seed,
                metrics,
                link,
            )
        )
    return scored


def make_table(runs: Sequence[ScoredRun]) -> Exhibit:
    """Makes the table of settings, one row each."""
    references = dict.fromkeys(run.reference for run in runs)
    predictors: dict[str, None] = {}
    for run in runs:
        predictors |= dict.fromkeys(run.others)
    rows = []
    for setting, group in _group_settings(runs).items():
        group = sorted(group, key=lambda run: run.seed)
        links = [(str(run.seed), run.link) for run in group[:MAX_LINKS]]
        if len(group) > MAX_LINKS:
            links.append((f"… ({len(group)})", ""))

        row: dict[str, Any] = {
            "setting": setting,
            "seeds": Links(links),
        }
        for subset in SUBSETS:
            column = SUBSET_WORDS[subset]
            statistics = _summarize(group, subset)
            row[column] = getattr(statistics, "mean", None)
            row[f"{column} 95 %"] = _format_interval(statistics)
        for column in predictors:
            errors = [run.others.get(column) for run in group]
            statistics = compute_statistics(errors)
            row[column] = getattr(statistics, "mean", None)
        rows.append(row)
    return make_exhibit(
        "relative_mse",
        rows=rows,
        reference=" or ".join(references),
    )


def _group_settings(runs: Sequence[ScoredRun]) -> dict[str, list[ScoredRun]]:
    groups: dict[str, list[ScoredRun]] = {}
    for run in runs:
        groups.setdefault(run.setting, []).append(run)
    return groups


def make_paired(rows: Sequence[Row], finding: str) -> Section:
    """Makes the section of comparisons.

    Args:
        rows: Paired tests, as the columns of `paired.csv`.
        finding: Their sentence in the answer.
    """
    table = make_exhibit("paired", rows=list(map(dict, rows)))
    return make_section("paired", [table], finding)


def describe_fits(
    runs: Sequence[ScoredRun], planned: Sequence[str] = ()
) -> str:
    """Counts settings that fit, and says which of them fail on held-out data.

    Names the best of them.

    Args:
        runs: The runs that have scores.
        planned: All settings, if some may have no run yet.
    """
    groups = _group_settings(runs)
    id_errors = _average(groups, "id")
    ood_errors = _average(groups, "ood")
    if not id_errors:
        return "No setting has a training error for every seed."

    # A setting without an ID error has not been seen to fit.
    fitted = []
    errors = {}
    for setting, error in id_errors.items():
        if error > FITTED:
            continue
        fitted.append(setting)
        if setting in ood_errors:
            errors[setting] = ood_errors[setting]
    count = len({*groups, *planned})
    if count == 1:
        return _describe_fit(bool(fitted), list(errors.values()))

    text = (
        f"{len(fitted)} of {count} settings fit what they were trained on "
        f"(relative MSE at most {FITTED:g})"
    )
    if not fitted:
        return f"{text}, {NO_TEST}"
    if not errors:
        return f"{text}."
    others = [setting for setting in id_errors if setting not in fitted]
    if 0 < len(others) <= MAX_NAMED:
        text += f", but not {', '.join(others)}"
    text += _describe_failures(errors)
    least = min(errors.values())
    best = "; ".join(s for s, error in errors.items() if error == least)
    which = "The lowest held-out error"
    if len(errors) < len(fitted):
        which += " of those that have one"
    return f"{text}. {which} is {least:.3g} ({best})."


def _describe_failures(ood_errors: Mapping[str, float]) -> str:
    """Names settings that fit, and fail on held-out combinations."""
    failed = [name for name, error in ood_errors.items() if error > FAILED]
    if not failed:
        return ""
    named = failed[:MAX_NAMED]
    if len(failed) > MAX_NAMED:
        named.append(f"{len(failed) - MAX_NAMED} more")
    count = f"{len(failed)} of these"
    if len(failed) == len(ood_errors):
        count = "all" if len(failed) > 1 else "it"
    verb = "fails" if len(failed) == 1 else "fail"
    return (
        f"; {count} {verb} on held-out combinations (above {FAILED:g}): "
        f"{', '.join(named)}"
    )


def _describe_fit(is_fitted: bool, ood_errors: Sequence[float]) -> str:
    """Describes a single setting, which may have an OOD error."""
    if not is_fitted:
        return f"The setting does not fit what it was trained on, {NO_TEST}"
    text = "The setting fits what it was trained on"
    for error in ood_errors:
        text += f"; its held-out relative MSE is {error:.3g}"
    return f"{text}."


def _average(
    groups: Mapping[str, Sequence[ScoredRun]], subset: str
) -> dict[str, float]:
    """Returns the mean error of each setting that has one for every seed."""
    means = {}
    for setting, group in groups.items():
        statistics = _summarize(group, subset)
        if statistics is not None:
            means[setting] = statistics.mean
    return means


def describe_tests(rows: Sequence[Row], reference: str = "") -> str:
    """Describes paired tests of OOD errors.

    Args:
        rows: The tests, each of the settings `a` and `b`.
        reference: The setting `a`, if all tests have the same.
    """
    tested = [row for row in rows if row["p_holm"] is not None]
    if not tested:
        return "Differences are not tested: in no pair do they vary over seeds."
    clear = [row for row in tested if row["p_holm"] < LEVEL]
    pairs = "pairs"
    if reference:
        pairs = f"pairs with {reference}"
    text = (
        f"At equal seeds the held-out error differs in {len(clear)} of "
        f"{len(tested)} {pairs} (paired t-test, p < {LEVEL} by Holm)"
    )
    named = clear[:MAX_NAMED]
    if len(tested) == 1:
        named = tested
    if not named:
        return f"{text}."
    details = list(map(_describe_pair, named))
    if len(clear) > MAX_NAMED:
        details.append(f"{len(clear) - MAX_NAMED} more")
    return f"{text}: {'; '.join(details)}."


def _describe_pair(row: Row) -> str:
    """Describes the difference of a pair, with its interval if known."""
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


def _format_interval(statistics: Statistics | None) -> str | None:
    if statistics is None or statistics.low is None:
        return None
    if statistics.count < MIN_SEEDS:
        return None
    return f"{statistics.low:.3g} to {statistics.high:.3g}"
