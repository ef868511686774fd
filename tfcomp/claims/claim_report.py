"""The reproduction report: one page, one Markdown table, the numbers."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tfcomp.claims.claim_list import judge
from tfcomp.claims.claim_pictures import draw_parts
from tfcomp.claims.claim_tables import count_verdicts
from tfcomp.claims.claim_tables import format_count
from tfcomp.claims.claim_tables import format_estimate
from tfcomp.claims.claim_tables import format_markdown
from tfcomp.claims.claim_tables import format_verdicts
from tfcomp.claims.claim_tables import list_claims
from tfcomp.claims.claim_tables import list_rows
from tfcomp.claims.claim_tables import select_shown
from tfcomp.claims.claim_tables import shorten_reason
from tfcomp.claims.claim_tables import summarize_counts
from tfcomp.claims.evidence import Evidence
from tfcomp.claims.origin import describe_origin
from tfcomp.claims.origin import list_used_runs
from tfcomp.claims.origin import list_varied_flags
from tfcomp.claims.parts import ClaimResult
from tfcomp.claims.parts import Part
from tfcomp.claims.selection import Group
from tfcomp.config.errors import RunError
from tfcomp.figures import figure_to_png
from tfcomp.report.page import encode_png
from tfcomp.report.page import render_template
from tfcomp.storage.files import write_csv
from tfcomp.storage.files import write_text

Pictures = dict[str, bytes]  # PNG files by caption
TITLE = "Reproduction report"
RULE_CAPTION = (
    "Numbers of the parts that decide: {bars}; shaded: what agrees with the "
    "rule."
)
# What dots and bars are, by what is counted.
BARS = {
    "seeds": "dots are seeds, the bar is the 95 % interval of their mean",
    "sizes": "the bar is the 95 % interval of a slope over sizes",
}


@dataclass(frozen=True)
class Report:
    """What was written.

    Attributes:
        page: The HTML page.
        results: The verdicts that it shows.
    """

    page: Path
    results: tuple[ClaimResult, ...]


def write_report(
    evidence: Evidence, output: str | Path, command: str = ""
) -> Report:
    """Judges all claims and writes the report.

    Writes `report.html` (self-contained), `report.md`, `verdicts.md` (short),
    `claims.csv` (a row a part), `claims.json`, and the figures as PNG.

    Args:
        evidence: Runs and threshold tables.
        output: A folder; made if it does not exist.
        command: The command that makes it, to be shown.

    Returns:
        The page and the verdicts.

    Raises:
        RunError: If the folder cannot be written.
    """
    output = Path(output)
    results = judge(evidence)
    facts = describe_origin(evidence, results, command)
    pictures = {r.claim.name: draw_claim(evidence, r) for r in results}
    page = render_report(results, facts, pictures)
    try:
        (output / "figures").mkdir(parents=True, exist_ok=True)
        for name, drawn in pictures.items():
            save_pictures(output / "figures", name, drawn)
        write_csv(output / "claims.csv", list_rows(results))
        content = {"origin": facts, "claims": list_claims(results)}
        text = json.dumps(content, indent=1, allow_nan=False) + "\n"
        write_text(output / "claims.json", text)
        write_text(output / "report.md", format_markdown(results, facts))
        write_text(output / "verdicts.md", format_verdicts(results))
        write_text(output / "report.html", page)
    except OSError as error:
        raise RunError(f"--output must be writable: {error}") from error
    return Report(output / "report.html", tuple(results))


def draw_claim(evidence: Evidence, result: ClaimResult) -> Pictures:
    """All figures of a claim; none if it was not run."""
    figures = {}
    numbers = draw_parts(result.parts)
    if numbers is not None:
        figures[describe_bars(result.parts)] = numbers
    if result.claim.draw is not None:
        figures |= result.claim.draw(evidence, result.parts)
    # A page of thirty pictures should still go through the mail.
    return {c: figure_to_png(f, num_colors=256) for c, f in figures.items()}


def describe_bars(parts: Sequence[Part]) -> str:
    """The caption of the numbers of a claim."""
    units = {p.estimate.unit for p in parts if p.decides and p.estimate}
    return RULE_CAPTION.format(bars=", ".join(BARS[u] for u in sorted(units)))


def save_pictures(folder: Path, name: str, pictures: Pictures) -> None:
    """Writes `C1.png`, `C1_2.png`, ..."""
    for number, picture in enumerate(pictures.values(), 1):
        suffix = "" if number == 1 else f"_{number}"
        (folder / f"{name}{suffix}.png").write_bytes(picture)


def render_report(
    results: Sequence[ClaimResult],
    facts: dict[str, str],
    pictures: dict[str, Pictures],
) -> str:
    """The page as HTML."""
    used = list_used_runs(results)
    return render_template(
        Path(__file__).with_name("template.html"),
        title=TITLE,
        summary=f"{len(results)} claims: {summarize_counts(results)}.",
        counts=count_verdicts(results),
        claims=[_describe(r, pictures[r.claim.name]) for r in results],
        facts=facts,
        varied=list_varied_flags(used),
        num_runs=len(used),
    )


def _describe(result: ClaimResult, pictures: Pictures) -> dict[str, Any]:
    groups = {
        tuple(run.path for run in group.runs): group
        for part in result.parts
        for group in part.groups
        if group.runs
    }
    return {
        "claim": result.claim,
        "verdict": str(result.verdict),
        "reason": result.reason,
        "shown": [_describe_part(p) for p in select_shown(result.parts)],
        "parts": [_describe_part(part) for part in result.parts],
        "figures": [
            {"caption": caption, "image": encode_png(picture)}
            for caption, picture in pictures.items()
        ],
        "groups": [_describe_group(group) for group in groups.values()],
    }


def _describe_part(part: Part) -> dict[str, Any]:
    return {
        "label": part.label,
        "quantity": part.quantity,
        "estimate": format_estimate(part.estimate),
        "count": format_count(part.estimate),
        "rule": str(part.rule),
        "verdict": str(part.verdict),
        "reason": part.reason,
        "short": shorten_reason(part),
        "decides": part.decides,
        "differences": ", ".join(part.differences),
    }


def _describe_group(group: Group) -> dict[str, Any]:
    first = group.runs[0]
    flags = [f"--{name}={value}" for name, value in first.setting.items()]
    return {
        "title": f"{first.flags['model']}, {first.flags['encoding']}, "
        f"{first.flags['dataset']}, {first.flags['region']}",
        "seeds": ", ".join(str(run.seed) for run in group.runs),
        "names": ", ".join(run.name for run in group.runs),
        "differences": ", ".join(group.differences) or "none",
        "others": group.others,
        "flags": "\n".join(flags),
    }
