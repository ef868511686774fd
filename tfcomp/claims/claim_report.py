"""The reproduction report: one page, two Markdown tables, the numbers."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tfcomp.claims import result_text
from tfcomp.claims.all_claims import judge
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
    """What was written: the HTML page, and the verdicts that it shows."""

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

    Raises:
        RunError: If the folder cannot be written.
    """
    output = Path(output)
    results = judge(evidence)
    used = list_used_runs(results)
    facts = describe_origin(evidence, used, command)
    pictures = {r.claim.name: draw_claim(evidence, r) for r in results}
    page = render_page(results, facts, pictures, used)
    rows = [row for r in results for row in result_text.list_rows(r)]
    claims = [result_text.describe_result(result) for result in results]
    content = {"origin": facts, "claims": claims}
    text = json.dumps(content, indent=1, allow_nan=False) + "\n"
    try:
        (output / "figures").mkdir(parents=True, exist_ok=True)
        for name, drawn in pictures.items():
            save_pictures(output / "figures", name, drawn)
        write_csv(output / "claims.csv", rows)
        write_text(output / "claims.json", text)
        for name in ("report.md", "verdicts.md"):
            write_text(output / name, render_markdown(name, results, facts))
        write_text(output / "report.html", page)
    except OSError as error:
        raise RunError(f"--output must be writable: {error}") from error
    return Report(output / "report.html", tuple(results))


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
        facts=facts,
        pictures=pictures,
        varied=list_varied_flags(used),
        num_runs=len(used),
        encode_png=encode_png,
        list_groups=_list_groups,
        text=result_text,
    )


def render_markdown(
    name: str, results: Sequence[ClaimResult], facts: dict[str, str]
) -> str:
    """One of the Markdown files, by the name of its template."""
    import jinja2

    environment = jinja2.Environment(
        trim_blocks=True, keep_trailing_newline=True
    )
    environment.filters["cell"] = _escape_cell
    template = environment.from_string((TEMPLATES / name).read_text("utf-8"))
    return template.render(results=results, facts=facts, text=result_text)


def _list_groups(result: ClaimResult) -> list[Group]:
    """The groups behind a claim, each once."""
    groups = [group for part in result.parts for group in part.groups]
    found = {tuple(run.path for run in g.runs): g for g in groups if g.runs}
    return list(found.values())


def _escape_cell(text: str) -> str:
    return text.replace("|", "\\|").replace("<", "&lt;").replace(">", "&gt;")
