"""The reproduction report: one page, two Markdown tables, the numbers."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tfcomp.claims import result_text
from tfcomp.claims.all_claims import judge
from tfcomp.claims.all_claims import judge_fresh
from tfcomp.claims.claim import ClaimResult
from tfcomp.claims.claim_pictures import draw_parts
from tfcomp.claims.evidence import Evidence
from tfcomp.claims.evidence import Run
from tfcomp.claims.origin import describe_origin
from tfcomp.claims.origin import list_used_runs
from tfcomp.claims.origin import list_varied_flags
from tfcomp.claims.selection import Group
from tfcomp.config.errors import RunError
from tfcomp.storage.files import write_bytes
from tfcomp.storage.files import write_csv
from tfcomp.storage.files import write_text

Pictures = dict[str, bytes]  # PNG files by caption
TEMPLATES = Path(__file__).parent / "templates"


@dataclass(frozen=True)
class Report:
    """What was written: the HTML page, and the verdicts that it shows.

    Attributes:
        page: The HTML page.
        results: By version 1 of the rules.
        fresh: By version 2, which has two claims more.
    """

    page: Path
    results: tuple[ClaimResult, ...]
    fresh: tuple[ClaimResult, ...]


def write_report(
    evidence: Evidence, output: str | Path, command: str = ""
) -> Report:
    """Judges all claims by both versions of the rules and writes the report.

    Writes `report.html` (self-contained), `report.md`, short tables
    (`verdicts.md` for version 1, `verdicts_2.md` beside it, `controls.md`),
    `claims.csv` (a row a part), `claims.json`, and the figures as PNG.

    Args:
        evidence: Runs and threshold tables.
        output: A folder; made if it does not exist.
        command: The command that makes it, to be shown.

    Raises:
        RunError: If the folder cannot be written.
    """
    output = Path(output)
    results, fresh = judge(evidence), judge_fresh(evidence)
    versions = {1: results, 2: fresh}
    used = list_used_runs([*results, *fresh])
    facts = describe_origin(evidence, used, command)
    pictures = {r.claim.name: draw_claim(evidence, r) for r in results}
    page = render_page(results, fresh, facts, pictures, used)
    rows = [
        {"version": version, **row}
        for version, found in versions.items()
        for result in found
        for row in result_text.list_rows(result)
    ]
    content: dict = {"origin": facts}
    for name, found in (("claims", results), ("fresh", fresh)):
        content[name] = [result_text.describe_result(r) for r in found]
    text = json.dumps(content, indent=1, allow_nan=False) + "\n"
    try:
        (output / "figures").mkdir(parents=True, exist_ok=True)
        for name, drawn in pictures.items():
            save_pictures(output / "figures", name, drawn)
        write_csv(output / "claims.csv", rows)
        write_text(output / "claims.json", text)
        for path in TEMPLATES.glob("*.md"):
            text = render_markdown(path.name, results, fresh, facts)
            write_text(output / path.name, text)
        write_text(output / "report.html", page)
    except OSError as error:
        raise RunError(f"--output must be writable: {error}") from error
    return Report(output / "report.html", tuple(results), tuple(fresh))


def draw_claim(evidence: Evidence, result: ClaimResult) -> Pictures:
    """All figures of a claim; none if it was not run."""
    from tfcomp.figures.render import figure_to_png

    figures = draw_parts(result.parts)
    if result.claim.draw is not None:
        figures |= result.claim.draw(evidence)
    # A page of thirty pictures should still go through the mail.
    return {c: figure_to_png(f, num_colors=256) for c, f in figures.items()}


def save_pictures(folder: Path, name: str, pictures: Pictures) -> None:
    """Writes `C1.png`, `C1_2.png`, ..."""
    for number, picture in enumerate(pictures.values(), 1):
        suffix = "" if number == 1 else f"_{number}"
        write_bytes(folder / f"{name}{suffix}.png", picture)


def render_page(
    results: Sequence[ClaimResult],
    fresh: Sequence[ClaimResult],
    facts: dict[str, str],
    pictures: dict[str, Pictures],
    used: Sequence[Run],
) -> str:
    """The page as HTML, with pictures by the name of their claim."""
    from tfcomp.report.page import encode_png
    from tfcomp.report.page import render_template

    return render_template(
        TEMPLATES / "report.html",
        title="Reproduction report",
        results=results,
        fresh=fresh,
        first={result.claim.name: result for result in results},
        facts=facts,
        pictures=pictures,
        varied=list_varied_flags(used),
        num_runs=len(used),
        encode_png=encode_png,
        list_groups=_list_groups,
        text=result_text,
    )


def render_markdown(
    name: str,
    results: Sequence[ClaimResult],
    fresh: Sequence[ClaimResult],
    facts: dict[str, str],
) -> str:
    """One of the Markdown files, by the name of its template."""
    import jinja2

    environment = jinja2.Environment(
        trim_blocks=True, keep_trailing_newline=True
    )
    environment.filters["cell"] = _escape_cell
    template = environment.from_string((TEMPLATES / name).read_text("utf-8"))
    first = {result.claim.name: result for result in results}
    return template.render(
        results=results, fresh=fresh, first=first, facts=facts, text=result_text
    )


def _list_groups(result: ClaimResult) -> list[Group]:
    """The groups behind a claim, each once."""
    groups = [group for part in result.parts for group in part.groups]
    found = {tuple(run.path for run in g.runs): g for g in groups if g.runs}
    return list(found.values())


def _escape_cell(text: str) -> str:
    return text.replace("|", "\\|").replace("<", "&lt;").replace(">", "&gt;")
