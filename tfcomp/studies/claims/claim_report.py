"""The reproduction report: one page, Markdown tables, the numbers."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tfcomp.config.errors import RunError
from tfcomp.storage.files import write_bytes, write_csv, write_text
from tfcomp.studies.claims import result_text
from tfcomp.studies.claims.all_claims import judge
from tfcomp.studies.claims.claim_pictures import draw_parts
from tfcomp.studies.claims.controls import read_declarations
from tfcomp.studies.claims.evidence import Evidence
from tfcomp.studies.claims.judgement import ClaimResult
from tfcomp.studies.claims.origin import (
    describe_origin,
    list_used_runs,
    list_varied_flags,
)
from tfcomp.studies.claims.score_table import make_score_tables
from tfcomp.studies.claims.selection import Group
from tfcomp.studies.claims.threshold_table import make_threshold_tables

Pictures = dict[str, bytes]  # PNG files by caption
TEMPLATES = Path(__file__).parent / "templates"


@dataclass(frozen=True)
class Report:
    """What was written: the HTML page, and the verdicts that it shows.

    Attributes:
        page: The HTML page.
        results: In the order of the claims.
    """

    page: Path
    results: tuple[ClaimResult, ...]


def write_report(
    evidence: Evidence, output: str | Path, command: str = ""
) -> Report:
    """Judges all claims and writes the report.

    Writes `report.html` (self-contained), `report.md`, short tables
    (`verdicts.md`, `history.md` with the rules and verdicts of all versions,
    `controls.md`, and `scores_<sweep>.md` for each sweep, `data_<study>.md` for
    each threshold study), `claims.csv` (a row a part), `claims.json`, and the
    figures as PNG.

    Args:
        evidence: Runs and threshold tables.
        output: A folder; made if it does not exist.
        command: The command that makes it, to be shown.

    Raises:
        RunError: If the folder cannot be written.
    """
    output = Path(output)
    shown = judge_all(evidence, command)
    results = shown["results"]
    shown["pictures"] = draw_claims(evidence, results)
    pages = {path.name: render(path, shown) for path in TEMPLATES.iterdir()}
    pages |= _name_tables(evidence) | {"claims.json": format_json(shown)}
    rows = [row for r in results for row in result_text.list_rows(r)]
    try:
        (output / "figures").mkdir(parents=True, exist_ok=True)
        for claim, drawn in shown["pictures"].items():
            save_pictures(output / "figures", claim, drawn)
        write_csv(output / "claims.csv", rows)
        for name, page in pages.items():
            write_text(output / name, page)
    except OSError as error:
        raise RunError(f"--output must be writable: {error}") from error
    return Report(output / "report.html", tuple(results))


def make_tables(evidence: Evidence) -> dict[str, str]:
    """The tables in Markdown by the names of their files, without pictures."""
    shown = judge_all(evidence)
    tables = {path.name: render(path, shown) for path in TEMPLATES.glob("*.md")}
    return tables | _name_tables(evidence)


def judge_all(evidence: Evidence, command: str = "") -> dict[str, Any]:
    """What templates show, but for the pictures."""
    results = judge(evidence)
    used = list_used_runs(results)
    return {
        "results": results,
        "versions": read_declarations()["versions"],
        "facts": describe_origin(evidence, used, command),
        "varied": list_varied_flags(used),
        "num_runs": len(used),
        "text": result_text,
    }


def format_json(shown: Mapping[str, Any]) -> str:
    """The content of `claims.json`."""
    claims = [result_text.describe_result(r) for r in shown["results"]]
    content = {"origin": shown["facts"], "claims": claims}
    return json.dumps(content, indent=1, allow_nan=False) + "\n"


def _name_tables(evidence: Evidence) -> dict[str, str]:
    tables = make_score_tables(evidence)
    named = {f"scores_{sweep}.md": table for sweep, table in tables.items()}
    studies = make_threshold_tables(evidence.studies)
    return named | {f"data_{name}.md": t for name, t in studies.items()}


def draw_claims(
    evidence: Evidence, results: Sequence[ClaimResult]
) -> dict[str, Pictures]:
    """All figures of claims by their names; none of one that was not run."""
    from tfcomp.figures.render import figure_to_png

    drawn = {}
    for result in results:
        figures = draw_parts(result.parts)
        if result.claim.draw is not None:
            figures |= result.claim.draw(evidence)
        # A page of sixty pictures should still go through the mail.
        drawn[result.claim.name] = {
            caption: figure_to_png(figure, num_colors=256)
            for caption, figure in figures.items()
        }
    return drawn


def save_pictures(folder: Path, name: str, pictures: Pictures) -> None:
    """Writes `C1.png`, `C1_2.png`, ..."""
    for number, picture in enumerate(pictures.values(), 1):
        suffix = "" if number == 1 else f"_{number}"
        write_bytes(folder / f"{name}{suffix}.png", picture)


def render(path: Path, shown: Mapping[str, Any]) -> str:
    """One of the files, by its template: the page, or a Markdown table."""
    import jinja2

    from tfcomp.report.page import encode_png, render_template

    if path.suffix == ".html":
        tools = {"encode_png": encode_png, "list_groups": _list_groups}
        return render_template(
            path, title="Reproduction report", **shown, **tools
        )
    environment = jinja2.Environment(
        trim_blocks=True, keep_trailing_newline=True
    )
    environment.filters["cell"] = _escape_cell
    return environment.from_string(path.read_text("utf-8")).render(shown)


def _list_groups(result: ClaimResult) -> list[Group]:
    """The groups behind a claim, each once."""
    groups = [group for part in result.parts for group in part.groups]
    found = {tuple(run.path for run in g.runs): g for g in groups if g.runs}
    return list(found.values())


def _escape_cell(text: str) -> str:
    return text.replace("|", "\\|").replace("<", "&lt;").replace(">", "&gt;")
