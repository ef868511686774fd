"""Claims as rows and text: numbers as they are shown, Markdown, CSV, JSON."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tfcomp.claims.parts import ClaimResult
from tfcomp.claims.parts import Part
from tfcomp.claims.verdict import Estimate
from tfcomp.claims.verdict import Verdict


def format_estimate(estimate: Estimate | None) -> str:
    """A number and its 95 % interval, as `0.82 [0.79, 0.85]`."""
    if estimate is None:
        return "–"
    text = format_number(estimate.mean)
    if estimate.low is None or estimate.high is None:
        return text
    ends = f"{format_number(estimate.low)}, {format_number(estimate.high)}"
    return f"{text} [{ends}]"


def format_count(estimate: Estimate | None) -> str:
    """How many seeds are behind a number; or sizes, which it says."""
    if estimate is None:
        return "0"
    is_seeds = estimate.unit == "seeds"
    return f"{estimate.count}" if is_seeds else f"{estimate.count} sizes"


def format_number(value: float) -> str:
    """Three significant digits, two where it is tiny."""
    if abs(value) >= 1000:
        return f"{value:.0f}"
    if 0 < abs(value) < 1e-3:
        return f"{value:.1e}"
    return f"{value:.3g}"


def list_rows(results: Sequence[ClaimResult]) -> list[dict[str, Any]]:
    """One row for every part of every claim."""
    return [
        {
            "claim": result.claim.name,
            "title": result.claim.title,
            "claim_verdict": str(result.verdict),
            "part": part.label,
            "quantity": part.quantity,
            "decides": part.decides,
            "mean": part.estimate.mean if part.estimate else None,
            "low": part.estimate.low if part.estimate else None,
            "high": part.estimate.high if part.estimate else None,
            "n": part.estimate.count if part.estimate else 0,
            "n_of": part.estimate.unit if part.estimate else "",
            "rule": str(part.rule),
            "verdict": str(part.verdict),
            "reason": part.reason,
            "setting": ", ".join(part.differences),
        }
        for result in results
        for part in result.parts
    ]


def list_claims(results: Sequence[ClaimResult]) -> list[dict[str, Any]]:
    """Claims with their parts nested, for JSON."""
    rows = list_rows(results)
    return [
        {
            "claim": result.claim.name,
            "title": result.claim.title,
            "statement": result.claim.statement,
            "place": result.claim.place,
            "rule": result.claim.rule,
            "method": result.claim.method,
            "verdict": str(result.verdict),
            "reason": result.reason,
            "parts": [
                {k: v for k, v in row.items() if k not in ("claim", "title")}
                | {"values": _list_values(part), "runs": _list_runs(part)}
                for part, row in zip(
                    result.parts,
                    (r for r in rows if r["claim"] == result.claim.name),
                    strict=True,
                )
            ],
        }
        for result in results
    ]


def count_verdicts(results: Sequence[ClaimResult]) -> dict[str, int]:
    """How many claims have which verdict, all four in order."""
    return {
        str(verdict): sum(r.verdict is verdict for r in results)
        for verdict in Verdict
    }


def summarize_counts(results: Sequence[ClaimResult]) -> str:
    """As `12 reproduced, 3 refuted, 4 undecided, 1 not run`."""
    counts = count_verdicts(results)
    return ", ".join(f"{count} {verdict}" for verdict, count in counts.items())


def format_markdown(
    results: Sequence[ClaimResult], facts: dict[str, str]
) -> str:
    """One table of all claims, and what made it."""
    lines = [
        f"{len(results)} claims: {summarize_counts(results)}.",
        "",
        "| claim | rule | numbers [95 % interval], n seeds | verdict |",
        "|---|---|---|---|",
    ]
    for result in results:
        numbers = "<br>".join(
            _escape(describe_part(part)) for part in select_shown(result.parts)
        )
        cells = [
            f"**{result.claim.name}** {_escape(result.claim.title)}",
            _escape(result.claim.rule),
            numbers or "–",
            f"**{result.verdict}**<br>{_escape(result.reason)}",
        ]
        lines.append("| " + " | ".join(cells) + " |")
    lines += ["", "Made by:", ""]
    lines += [f"- {name}: {fact}" for name, fact in facts.items()]
    return "\n".join(lines) + "\n"


def format_verdicts(results: Sequence[ClaimResult]) -> str:
    """A short table: each claim, its verdict, the first part that made it."""
    lines = [
        "| claim | verdict | for instance: number [95 % interval] | rule |",
        "|---|---|---|---|",
    ]
    for result in results:
        cells = [
            f"{result.claim.name} {result.claim.title}",
            f"**{result.verdict}**",
            *describe_example(result),
        ]
        lines.append("| " + " | ".join(map(_escape, cells)) + " |")
    return "\n".join(lines) + "\n"


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


def select_shown(parts: Sequence[Part]) -> list[Part]:
    """The parts of the summary: those that decide and were run."""
    return [
        part
        for part in parts
        if part.decides and part.verdict is not Verdict.NOT_RUN
    ]


def describe_part(part: Part) -> str:
    """A part in a line, as `donut, bump: 0.82 [0.79, 0.85], n = 5`."""
    count = format_count(part.estimate)
    text = f"{part.label}: {format_estimate(part.estimate)}, n = {count}"
    return f"{text}, {part.verdict}{shorten_reason(part)}"


def shorten_reason(part: Part) -> str:
    """Why a part is not plain, in a few words, as ` (not fitted)`."""
    words = part.reason.partition(":")[0]
    return f" ({words})" if words else ""


def _list_values(part: Part) -> dict[str, float]:
    values = part.estimate.values if part.estimate else {}
    return {str(seed): value for seed, value in values.items()}


def _list_runs(part: Part) -> list[str]:
    return [run.name for run in part.runs]


def _escape(text: str) -> str:
    return text.replace("|", "\\|").replace("<", "&lt;").replace(">", "&gt;")
