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
from tfcomp.storage.files import (
    make_subfolder,
    write_bytes,
    write_csv,
    write_text,
)
from tfcomp.studies.claims import result_text
from tfcomp.studies.claims.all_claims import judge
from tfcomp.studies.claims.claim_pictures import (
    OVERVIEW,
    draw_claims,
)
from tfcomp.studies.claims.controls import read_declarations
from tfcomp.studies.claims.evidence import Evidence
from tfcomp.studies.claims.judgement import ClaimResult
from tfcomp.studies.claims.searches import count_searches
from tfcomp.tables.flatten import MEASURED, ORIGIN
from tfcomp.tables.groups import Group

UsedRun = tuple[Mapping[str, Any], Mapping[str, Any], float]
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
    picture of all claims.

    Args:
        output: A folder; made if it does not exist.
        command: The command that makes it, to be shown.

    Raises:
        RunError: If the folder cannot be written.
    """
    from tfcomp.report.page import render_template

    output = Path(output)
    shown = judge_all(evidence, command)
    results = shown["results"]
    picture = draw_picture(results)
    shown |= {"picture": picture, "caption": OVERVIEW}
    pages = make_tables(evidence, shown)
    pages["report.html"] = render_template(
        TEMPLATES / "report.html", title="Reproduction report", **shown
    )
    claims = list(map(result_text.describe_result, results))
    content = {"origin": shown["facts"], "claims": claims}
    text = json.dumps(content, indent=1, allow_nan=False) + "\n"
    pages["claims.json"] = text
    rows = [row for r in results for row in result_text.list_rows(r)]
    try:
        make_subfolder(output, "figures")
        if picture:
            write_bytes(output / "figures" / "verdicts.png", picture)
        write_csv(output / "claims.csv", rows)
        for name, page in pages.items():
            write_text(output / name, page)
    except OSError as error:
        raise RunError(f"--output must be writable: {error}") from error
    return Report(output / "report.html", tuple(results))


def judge_all(evidence: Evidence, command: str = "") -> dict[str, Any]:
    """Returns what templates show, but for the picture."""
    results = judge(evidence)
    parts = [part for result in results for part in result.parts]
    used = list_runs(group for part in parts for group in part.groups)
    names = dict.fromkeys(name for _, flags, _ in used for name in flags)
    values = {
        name: [str(flags.get(name, "unknown")) for _, flags, _ in used]
        for name in names
    }
    return {
        "results": results,
        "versions": read_declarations()["versions"],
        "facts": describe_origin(evidence, used, command),
        "varied": [
            (name, count_values(found))
            for name, found in values.items()
            if len(set(found)) > 1
        ],
        "num_runs": len(used),
        "text": result_text,
    }


def list_runs(groups: Iterable[Group]) -> list[UsedRun]:
    """Returns the row, the flags and the seconds of each run, once."""
    found: dict[str, UsedRun] = {}
    for group in groups:
        seconds = group.get("train/seconds").fillna(0.0)
        for seed, run in group.runs.items():
            found.setdefault(run["run"], (run, group.flags, seconds[seed]))
    return list(found.values())


def make_tables(evidence: Evidence, shown: Mapping[str, Any]) -> dict[str, str]:
    """The tables in Markdown by the names of their files."""
    tables = {
        path.name: result_text.render_markdown(path, shown)
        for path in TEMPLATES.glob("*.md")
    }
    for sweep, table in result_text.make_score_tables(evidence).items():
        tables[f"scores_{sweep}.md"] = table
    for study in evidence.studies:
        tables[f"data_{study.path.name}.md"] = result_text.format_study(study)
    return tables


def draw_picture(results: Sequence[ClaimResult]) -> bytes | None:
    """Draws all claims as PNG; returns None if none was run."""
    from tfcomp.figures.exhibits import figure_to_png

    figure = draw_claims(results)
    return figure_to_png(figure, num_colors=64, dpi=140) if figure else None


def describe_origin(
    evidence: Evidence, used: Sequence[UsedRun], command: str = ""
) -> dict[str, str]:
    """Facts about a report by name, as the command that made it."""
    seconds = sum(seconds for _, _, seconds in used)
    runs = [run for run, _, _ in used]
    facts = {
        "command": command,
        "runs": f"{len(used)} used of {evidence.num_runs} found",
        "seeds": ", ".join(map(str, sorted({run["seed"] for run in runs}))),
        "time of training": format_duration(seconds),
        "threshold searches": str(count_searches(evidence.studies) or ""),
        "this machine": describe_machine(),
        "code": describe_code(),
    }
    for name in ORIGIN:
        if any(run[name] for run in runs):
            values = (run[name] or "unknown" for run in runs)
            facts[f"{name} (runs)"] = count_values(values)
    facts["measured with"] = count_values(
        run[MEASURED] or "not measured" for run in runs
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
