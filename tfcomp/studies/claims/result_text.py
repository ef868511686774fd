"""Results as text and rows: numbers as they are shown, CSV and JSON."""

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tfcomp.studies.claims.controls import Kind
from tfcomp.studies.claims.estimation import Estimate
from tfcomp.studies.claims.judgement import IN_PARTS, ClaimResult
from tfcomp.studies.claims.selection import Group
from tfcomp.studies.claims.verdict import Part, Verdict


def render_markdown(path: Path, shown: Mapping[str, Any]) -> str:
    """A page in Markdown by its template; `cell` escapes cells of a table."""
    import jinja2

    environment = jinja2.Environment(
        trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=True
    )
    signs = str.maketrans({"|": "\\|", "<": "&lt;", ">": "&gt;"})
    environment.filters["cell"] = lambda text: text.translate(signs)
    return environment.from_string(path.read_text("utf-8")).render(shown)


def format_estimate(estimate: Estimate | None) -> str:
    """A number and its 95 % interval, as `0.82 [0.79, 0.85]`."""
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
    """How many seeds are behind a number; or sizes, which it says."""
    if estimate is None:
        return "0"
    sizes = " sizes" if estimate.unit == "sizes" else ""
    return f"{estimate.count}{sizes}"


def format_number(value: float) -> str:
    """Three significant digits, two where it is tiny."""
    if abs(value) >= 1000:
        return f"{value:.0f}"
    if 0 < abs(value) < 1e-3:
        return f"{value:.1e}"
    return f"{value:.3g}"


def summarize_counts(results: Sequence[ClaimResult]) -> str:
    """As `12 reproduced, 3 refuted, 4 undecided, 1 not run`."""
    counts = Counter(result.word for result in results)
    words = (*map(str, Verdict), IN_PARTS)
    return ", ".join(f"{counts[word]} {word}" for word in words if counts[word])


def select_shown(parts: Sequence[Part]) -> list[Part]:
    """The parts of the summary: those that decide and were run."""
    return [p for p in parts if p.decides and p.verdict is not Verdict.NOT_RUN]


def list_groups(result: ClaimResult) -> list[Group]:
    """The groups behind a claim, each once."""
    groups = [group for part in result.parts for group in part.groups]
    found = {tuple(run.path for run in g.runs): g for g in groups if g.runs}
    return list(found.values())


def describe_part(part: Part) -> str:
    """A part in a line, as `donut, bump: 0.82 [0.79, 0.85], n = 5`."""
    count = format_count(part.estimate)
    text = f"{part.label}: {format_estimate(part.estimate)}, n = {count}"
    if part.is_fresh:
        text += ", fresh seeds"
    if part.fitted:
        text += f" ({part.fitted})"
    return f"{text}, {part.verdict}{shorten_reason(part)}"


def describe_example(result: ClaimResult) -> tuple[str, str]:
    """The first part that has the claim's own verdict, and its rule.

    If it follows from no single part, as when others were not run: from
    which it does, and no rule.
    """
    for part in select_shown(result.parts):
        if part.verdict is result.verdict:
            number = f"{part.label}: {format_estimate(part.estimate)}"
            rule = f"{part.quantity} {part.rule}"
            return f"{number}{shorten_reason(part)}", rule
    return result.reason, "–"


def shorten_reason(part: Part) -> str:
    """Why a part is not plain, in a few words, as ` (not fitted)`."""
    words = part.reason.partition(":")[0]
    return f" ({words})" if words else ""


def count_controls(result: ClaimResult, kind: str) -> str:
    """As `2 of 2`: controls of a kind of which the test is right."""
    chosen = [c for c in result.controls if c.kind == kind]
    if not chosen:
        return "–"
    right = sum(control.is_right for control in chosen)
    # Of untrained networks: what stopped them.
    how = ", ".join(c.name for c in chosen if c.kind is Kind.UNTRAINED)
    return f"{right} of {len(chosen)}" + (f", {how}" if how else "")


def summarize_controls(results: Sequence[ClaimResult]) -> str:
    """How many controls of all claims are told right."""
    controls = [c for result in results for c in result.controls]
    right = sum(control.is_right for control in controls)
    return f"The tests are right on {right} of {len(controls)} controls."


def list_rows(result: ClaimResult) -> list[dict[str, Any]]:
    """The rows of `claims.csv` for one claim, one a part."""
    claim = {
        "claim": result.claim.name,
        "title": result.claim.title,
        "claim_verdict": result.word,
    }
    return [claim | _describe_numbers(part) for part in result.parts]


def describe_result(result: ClaimResult) -> dict[str, Any]:
    """A claim with its parts nested, for `claims.json`."""
    texts = ("title", "statement", "place", "rule", "method")
    return {
        "claim": result.claim.name,
        **{name: getattr(result.claim, name) for name in texts},
        "verdict": str(result.verdict),
        "badge": result.badge,
        "meaning": result.meaning,
        "reason": result.reason,
        "history": [dict(row) for row in result.claim.history],
        "controls": [
            {"name": c.name, "kind": str(c.kind), "verdict": str(c.verdict)}
            for c in result.controls
        ],
        "parts": [
            {
                "claim_verdict": result.word,
                **_describe_numbers(part),
                "values": dict(part.estimate.values) if part.estimate else {},
                "runs": [run.name for run in part.runs],
            }
            for part in result.parts
        ],
    }


def _describe_numbers(part: Part) -> dict[str, Any]:
    found = part.estimate or Estimate(None, None, None, 0, {}, unit="")
    return {
        "part": part.label,
        "quantity": part.quantity,
        "decides": part.decides,
        "fresh": part.is_fresh,
        "mean": found.mean,
        "low": found.low,
        "high": found.high,
        "n": found.count,
        "n_of": found.unit,
        "rule": str(part.rule),
        "verdict": str(part.verdict),
        "reason": part.reason,
        "setting": ", ".join(part.differences),
    }
