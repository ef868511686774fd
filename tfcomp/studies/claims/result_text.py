"""Evidence and results as text: numbers as they are shown, tables, rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from statistics import fmean, geometric_mean
from typing import TYPE_CHECKING, Any

import numpy as np

from tfcomp.statistics import setting_table
from tfcomp.statistics.estimates import Estimate
from tfcomp.statistics.verdicts import Verdict
from tfcomp.studies.claims.claim import select_fitted
from tfcomp.studies.claims.evidence import TOTAL, Evidence, ThresholdStudy
from tfcomp.studies.claims.judgement import IN_PARTS, PLANS, ClaimResult
from tfcomp.studies.claims.parts import Part
from tfcomp.tables.groups import Group

if TYPE_CHECKING:
    from pandas import DataFrame

SCORES = {  # by the heading of their column
    "ID relative MSE": "id/relative_mse",
    "OOD relative MSE": "ood/relative_mse",
    "OOD MSE": "ood/mse",
    "OOD positions in place (%)": "ood/position_accuracy",
}
ROW = ["kind", "region", "criterion"]


def render_markdown(path: Path, shown: Mapping[str, Any]) -> str:
    """Renders a template in Markdown; its filter `cell` escapes a cell."""
    import jinja2

    environment = jinja2.Environment(
        trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=True
    )
    signs = str.maketrans({"|": "\\|", "<": "&lt;", ">": "&gt;"})
    environment.filters["cell"] = lambda text: text.translate(signs)
    return environment.from_string(path.read_text("utf-8")).render(shown)


def format_estimate(estimate: Estimate | None) -> str:
    """Formats a number and its 95 % interval, as `0.82 [0.79, 0.85]`."""
    if estimate is None:
        return "–"
    text = format_number(estimate.mean)
    if estimate.unit == "share":
        text = f"{round(estimate.mean * estimate.count)} of {estimate.count}"
    if estimate.low is None or estimate.high is None:
        return text
    if estimate.low == estimate.high and estimate.count > 1:
        return f"{text} (all alike)"
    ends = f"{format_number(estimate.low)}, {format_number(estimate.high)}"
    return f"{text} [{ends}]"


def format_count(estimate: Estimate | None) -> str:
    """Formats the number of seeds, or of sizes, behind an estimate."""
    if estimate is None:
        return "0"
    sizes = " sizes" if estimate.unit == "sizes" else ""
    return f"{estimate.count}{sizes}"


def format_number(value: float) -> str:
    """Formats three significant digits, or two of a tiny number."""
    if abs(value) >= 1000:
        return f"{value:.0f}"
    if 0 < abs(value) < 1e-3:
        return f"{value:.1e}"
    return f"{value:.3g}"


def summarize_counts(results: Sequence[ClaimResult]) -> str:
    """Counts of both columns, as `as the paper states them 12 reproduced`."""
    paper = _count(result.paper_word for result in results)
    ours = _count(result.word for result in results)
    return f"as the paper states them {paper}; by our stricter tests {ours}"


def _count(found: Iterable[str]) -> str:
    counts = Counter(found)
    words = (*map(str, Verdict), IN_PARTS)
    return ", ".join(f"{counts[word]} {word}" for word in words if counts[word])


def select_shown(parts: Sequence[Part]) -> list[Part]:
    """Returns the deciding parts that were run."""
    return [p for p in parts if p.decides and p.verdict is not Verdict.NOT_RUN]


def list_used(result: ClaimResult) -> list[Group]:
    """Returns the groups behind a claim, each once."""
    groups = [group for part in result.parts for group in part.groups]
    found = {
        tuple(run["run"] for run in g.runs.values()): g
        for g in groups
        if len(g)
    }
    return list(found.values())


def describe_part(part: Part) -> str:
    """Formats a part in a line, as `donut, bump: 0.82 [0.79, 0.85], n = 5`."""
    count = format_count(part.estimate)
    text = f"{part.label}: {format_estimate(part.estimate)}, n = {count}"
    if part.is_fresh:
        text += f", {PLANS[part.round]} seeds"
    if part.fitted:
        text += f" ({part.fitted})"
    return f"{text}, {part.verdict}{shorten_reason(part)}"


def shorten_reason(part: Part) -> str:
    """Formats the reason of a verdict in a few words, as ` (not fitted)`."""
    words = part.reason.partition(":")[0]
    return f" ({words})" if words else ""


def count_controls(result: ClaimResult, kind: str) -> str:
    """Counts the controls of a kind that the test told right, as `2 of 2`."""
    chosen = [c for c in result.controls if c.kind == kind]
    if not chosen:
        return "–"
    if chosen[0].verdict is Verdict.NOT_RUN:
        return "not run yet"
    right = sum(control.is_right for control in chosen)
    return f"{right} of {len(chosen)}"


def summarize_controls(results: Sequence[ClaimResult]) -> str:
    """Counts the controls of all claims that were told right."""
    controls = [
        c
        for result in results
        for c in result.controls
        if c.verdict is not Verdict.NOT_RUN
    ]
    right = sum(control.is_right for control in controls)
    return f"The tests are right on {right} of {len(controls)} controls."


def list_rows(result: ClaimResult) -> list[dict[str, Any]]:
    """Returns the rows of `claims.csv` for one claim, one a part."""
    claim = {
        "claim": result.claim.name,
        "title": result.claim.title,
        "paper_verdict": result.paper_word,
        "claim_verdict": result.word,
    }
    own = result.paper if result.claim.tests.paper else ()
    return [
        {**claim, "test": test, **_describe_numbers(part)}
        for test, parts in (("paper", own), ("ours", result.parts))
        for part in parts
    ]


def _describe_numbers(part: Part) -> dict[str, Any]:
    found = part.estimate
    return {
        "part": part.label,
        "quantity": part.quantity,
        "decides": part.decides,
        "fresh": part.is_fresh,
        "mean": found.mean if found else None,
        "low": found.low if found else None,
        "high": found.high if found else None,
        "n": found.count if found else 0,
        "n_of": found.unit if found else "",
        "rule": str(part.rule),
        "verdict": str(part.verdict),
        "reason": part.reason,
        "setting": ", ".join(part.differences),
    }


def make_score_tables(evidence: Evidence) -> dict[str, str]:
    """Returns a table in Markdown for each sweep, by its name."""
    sweeps: dict[str, list[Group]] = {}
    for group in evidence.groups:
        by_study: dict[str, set[int]] = {}
        for seed, run in group.runs.items():
            by_study.setdefault(run["study"], set()).add(seed)
        for name, seeds in by_study.items():
            sweeps.setdefault(name, []).append(group.keep(seeds))
    return {name: format_sweep(found) for name, found in sorted(sweeps.items())}


def format_sweep(groups: Sequence[Group]) -> str:
    """Returns the table of some runs, a row a setting.

    Its numbers are means over fitted seeds, or over all if none is fitted
    (errors: geometric means), with the lowest and the highest seed.
    """
    names = setting_table.choose_flags([group.flags for group in groups])
    rows = [["setting", "fitted", *SCORES]]
    for group in sorted(groups, key=lambda group: _order(group, names)):
        fitted = select_fitted(group)
        count = f"{len(fitted)} of {len(group)}"
        if fitted.num_restarted:
            count += f", {fitted.num_restarted} started again"
        label = setting_table.make_label(group.flags, names)
        if len(names) == 1:
            label = label.removeprefix(f"{names[0]} ")
        cells = [label, count]
        for score in SCORES.values():
            found = (fitted if len(fitted) else group).get(score)
            values = found.dropna().tolist()
            mean = geometric_mean
            if score == "ood/position_accuracy":
                values, mean = [100 * value for value in values], fmean
            is_known = values and (mean is fmean or min(values) > 0)
            text = format_spread(mean(values), values) if is_known else "–"
            cells.append(text)
        rows.append(cells)
    return setting_table.format_rows(rows)


def _order(group: Group, names: Sequence[str]) -> list[tuple[bool, float, str]]:
    values = [group.flags[name] for name in names]
    return [
        (True, 0.0, value) if isinstance(value, str) else (False, value, "")
        for value in values
    ]


def format_spread(mean: float, values: Sequence[float]) -> str:
    """Formats a mean and extremes, as `1.2 (0.8 to 1.9)` or `100 (all)`."""
    low, high = format_number(min(values)), format_number(max(values))
    ends = "all" if low == high else f"{low} to {high}"
    return f"{format_number(mean)} ({ends})"


def format_study(study: ThresholdStudy) -> str:
    """Returns the table of a threshold study, a row a kind of training set."""
    found = study.thresholds
    sizes = sorted(found["grid_size"].unique())
    heads = [f"N = {size:g}" for size in sizes]
    rows = [["training set", "held out", "criterion", *heads, "slope"]]
    for row, searches in found.groupby(ROW, sort=False):
        words = [str(word).replace("_", " ") for word in row]
        counts = [
            _format_searches(searches[searches["grid_size"] == size])
            for size in sizes
        ]
        table = study.slopes[study.slopes["quantity"] == TOTAL]
        law = table[(table[ROW] == list(row)).all(axis=1)]
        cells = law[["slope", "low", "high"]].to_numpy(dtype=float).ravel()
        numbers = cells[np.isfinite(cells)].tolist()
        slope, *interval = [format_number(n) for n in numbers] or ["–"]
        ends = f" [{', '.join(interval)}]" if interval else ""
        rows.append([*words, *counts, f"{slope}{ends}"])
    return setting_table.format_rows(rows)


def _format_searches(searches: DataFrame) -> str:
    """Formats counts as `74.1 (64 to 98)`; failed searches stand beside."""
    reached = searches[searches["reached"].astype(bool)]
    counts = reached[TOTAL].tolist()
    missed = len(searches) - len(counts)
    text = format_spread(geometric_mean(counts), counts) if counts else "–"
    return text + (f", {missed} not reached" if missed else "")
