"""The reproduction report: one page, Markdown tables, the numbers."""

import json
import os
import platform
import re
import subprocess
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tfcomp
from tfcomp.config.errors import RunError
from tfcomp.storage.code_version import compute_code_version
from tfcomp.storage.files import write_bytes, write_csv, write_text
from tfcomp.studies.claims import result_text
from tfcomp.studies.claims.all_claims import judge
from tfcomp.studies.claims.claim_pictures import draw_parts
from tfcomp.studies.claims.controls import read_declarations
from tfcomp.studies.claims.evidence import UNIMPORTANT, Evidence, Run
from tfcomp.studies.claims.judgement import ClaimResult
from tfcomp.studies.claims.margin_plot import CAPTION, draw_margins
from tfcomp.studies.claims.packed_evidence import count_searches
from tfcomp.studies.claims.score_table import (
    make_score_tables,
    make_threshold_tables,
)
from tfcomp.studies.claims.selection import Group

Pictures = dict[str, bytes]  # PNG files by caption
TEMPLATES = Path(__file__).parent / "templates"
CPU_INFO = Path("/proc/cpuinfo")


@dataclass(frozen=True)
class Report:
    """What was written: the HTML page, and the verdicts that it shows."""

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
        output: A folder; made if it does not exist.
        command: The command that makes it, to be shown.

    Raises:
        RunError: If the folder cannot be written.
    """
    output = Path(output)
    shown = judge_all(evidence, command)
    results = shown["results"]
    shown["pictures"] = draw_claims(evidence, results)
    shown["overview"] = draw_overview(results)
    pages = {path.name: render(path, shown) for path in TEMPLATES.iterdir()}
    claims = list(map(result_text.describe_result, results))
    content = {"origin": shown["facts"], "claims": claims}
    text = json.dumps(content, indent=1, allow_nan=False) + "\n"
    pages |= _name_tables(evidence) | {"claims.json": text}
    rows = [row for r in results for row in result_text.list_rows(r)]
    try:
        (output / "figures").mkdir(parents=True, exist_ok=True)
        for claim, drawn in shown["pictures"].items():
            save_pictures(output / "figures", claim, drawn)
        for picture in shown["overview"].values():
            write_bytes(output / "figures" / "verdicts.png", picture)
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
    parts = [part for result in results for part in result.parts]
    used = list({run.path: run for p in parts for run in p.runs}.values())
    return {
        "results": results,
        "versions": read_declarations()["versions"],
        "facts": describe_origin(evidence, used, command),
        "varied": list_varied_flags(used),
        "num_runs": len(used),
        "text": result_text,
    }


def _name_tables(evidence: Evidence) -> dict[str, str]:
    tables = make_score_tables(evidence)
    named = {f"scores_{sweep}.md": table for sweep, table in tables.items()}
    studies = make_threshold_tables(evidence.studies)
    return named | {f"data_{name}.md": t for name, t in studies.items()}


def draw_claims(
    evidence: Evidence, results: Sequence[ClaimResult]
) -> dict[str, Pictures]:
    """All figures of claims by their names; none of one that was not run."""
    from tfcomp.figures.exhibits import figure_to_png

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


def draw_overview(results: Sequence[ClaimResult]) -> Pictures:
    """All parts that decide against their margins, if there are any."""
    from tfcomp.figures.exhibits import figure_to_png

    figure = draw_margins(results)
    if figure is None:
        return {}
    return {CAPTION: figure_to_png(figure, num_colors=256)}


def save_pictures(folder: Path, name: str, pictures: Pictures) -> None:
    """Writes `C1.png`, `C1_2.png`, ..."""
    for number, picture in enumerate(pictures.values(), 1):
        suffix = "" if number == 1 else f"_{number}"
        write_bytes(folder / f"{name}{suffix}.png", picture)


def render(path: Path, shown: Mapping[str, Any]) -> str:
    """One of the files, by its template: the page, or a Markdown table."""
    import jinja2

    from tfcomp.report.page import render_template

    if path.suffix == ".html":
        tools = {"list_groups": _list_groups}
        return render_template(
            path, title="Reproduction report", **shown, **tools
        )
    environment = jinja2.Environment(
        trim_blocks=True, keep_trailing_newline=True
    )
    signs = str.maketrans({"|": "\\|", "<": "&lt;", ">": "&gt;"})
    environment.filters["cell"] = lambda text: text.translate(signs)
    return environment.from_string(path.read_text("utf-8")).render(shown)


def _list_groups(result: ClaimResult) -> list[Group]:
    """The groups behind a claim, each once."""
    groups = [group for part in result.parts for group in part.groups]
    found = {tuple(run.path for run in g.runs): g for g in groups if g.runs}
    return list(found.values())


def describe_origin(
    evidence: Evidence, used: Sequence[Run], command: str = ""
) -> dict[str, str]:
    """Facts about a report, by name.

    Args:
        command: The command that made it, if one did.
    """
    facts = {
        "command": command,
        "runs": f"{len(used)} used of {len(evidence.runs)} found",
        "seeds": ", ".join(map(str, sorted({run.seed for run in used}))),
        "time of training": format_duration(
            sum(run.get("train/seconds") or 0 for run in used)
        ),
        "threshold searches": str(count_searches(evidence.studies) or ""),
        "this machine": describe_machine(),
        "code": describe_code(),
    }
    names = dict.fromkeys(name for run in used for name in run.origin)
    for name in names:
        facts[f"{name} (runs)"] = count_values(
            run.origin.get(name, "unknown") for run in used
        )
    facts["measured with"] = count_values(
        run.measures.get("version", "not measured") for run in used
    )
    facts["left out"] = "; ".join(evidence.notes)
    return {name: fact for name, fact in facts.items() if fact}


def describe_machine() -> str:
    """Processor, cores and system of this machine."""
    name = platform.processor() or platform.machine()
    try:  # Linux, where `platform` knows no more than x86_64
        found = re.search(r"model name\s*: (\S.*)", CPU_INFO.read_text("utf-8"))
    except OSError:
        found = None
    name = found[1].strip() if found else name
    system = f"{platform.system()}, Python {platform.python_version()}"
    return f"{name}, {os.cpu_count()} cores, {system}"


def describe_code() -> str:
    """Version of tfcomp, commit if it is a checkout, hash of the code."""
    folder = str(Path(tfcomp.__file__).parent)
    command = ["git", "-C", folder, "log", "-1", "--format=%h", "--", "."]
    try:
        log = subprocess.run(command, capture_output=True, text=True).stdout
    except OSError:  # no git
        log = ""
    commit = f", commit {log.strip()}" if log.strip() else ""
    version = compute_code_version()[:16]
    return f"tfcomp {tfcomp.__version__}{commit}, code {version}"


def list_varied_flags(runs: Sequence[Run]) -> list[tuple[str, str]]:
    """Flags in which runs differ, and their values with counts."""
    names = dict.fromkeys(name for run in runs for name in run.flags)
    values = {
        name: [str(run.flags.get(name, "unknown")) for run in runs]
        for name in names
        if name not in UNIMPORTANT
    }
    return [(n, count_values(v)) for n, v in values.items() if len(set(v)) > 1]


def count_values(values: Iterable[str]) -> str:
    """Distinct values, with how often each occurs if there are several."""
    counts = sorted(Counter(values).items())
    if len(counts) == 1:
        return counts[0][0]
    return ", ".join(f"{value or 'empty'} ({count})" for value, count in counts)


def format_duration(seconds: float) -> str:
    """Hours and minutes, or seconds if it is short."""
    if seconds < 60:
        return f"{seconds:.0f} s"
    hours, minutes = divmod(round(seconds / 60), 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min"
