"""Does the paper hold? Every claim, judged by finished runs.

    python -m reproduction.claims --runs='tensorboard_logs/*' --output=report

The report shows every claim of the paper with its figure, numbers, interval,
rule and verdict. Runs and tables of threshold searches are found at any depth
below the folders that the patterns match.
"""

import shlex
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tfcomp
from reproduction.claims import result_text
from reproduction.claims.all_claims import judge
from reproduction.claims.claim_pictures import OVERVIEW, draw_claims
from reproduction.claims.controls import read_declarations
from reproduction.claims.evidence import Evidence, read_some_evidence
from reproduction.claims.judgement import ClaimResult
from reproduction.claims.result_text import IN_PARTS
from reproduction.groups import Group
from reproduction.verdicts import Verdict
from tfcomp.config.command import Command
from tfcomp.config.errors import RunError
from tfcomp.storage import files
from tfcomp.storage.code_version import compute_code_version
from tfcomp.storage.output_folders import check_folder
from tfcomp.tables.flatten import MEASURED
from tfcomp.tables.read import print_left_out

TEMPLATES = Path(__file__).parent / "templates"
FLAGS = {
    "runs": (
        "",
        "Run folders, or folders that contain them, such as sweeps: patterns "
        "with *, separated by commas.",
    ),
    "output": (
        "report",
        "The folder for report.html, report.md, claims.csv and the figures.",
    ),
}


@dataclass(frozen=True)
class Report:
    """The HTML page that was written, and the verdicts that it shows."""

    page: Path
    results: tuple[ClaimResult, ...]


def write_report(
    evidence: Evidence, output: str | Path, command: str = ""
) -> Report:
    """Judges all claims and writes the report.

    Writes `report.html` (self-contained), `report.md`, short tables
    (`verdicts.md`, `history.md` with the rules and verdicts of all versions,
    `controls.md`, `scores_<sweep>.md` for each sweep, and `data_<study>.md` for
    each threshold study), `claims.csv` (a row a part), and the picture of all
    claims.

    Args:
        output: A folder; made if it does not exist.
        command: The command that makes it, to be shown.

    Raises:
        RunError: If the folder cannot be written.
    """
    from tfcomp.figures.exhibits import use_own_style
    from tfcomp.report.page import render_template

    output = Path(output)
    shown = judge_all(evidence, command)
    results = shown["results"]
    with use_own_style():
        picture = draw_claims(results)
    shown |= {"picture": picture, "caption": OVERVIEW}
    pages = make_tables(evidence, shown)
    pages["report.html"] = render_template(
        TEMPLATES / "report.html", title="Reproduction report", **shown
    )
    rows = [row for r in results for row in list_rows(r)]
    try:
        files.make_folder(output / "figures")
        if picture:
            files.write_bytes(output / "figures" / "verdicts.png", picture)
        files.write_csv(output / "claims.csv", rows)
        for name, page in pages.items():
            files.write_text(output / name, page)
    except OSError as error:
        raise RunError(f"--output must be writable: {error}") from error
    return Report(output / "report.html", tuple(results))


def judge_all(evidence: Evidence, command: str = "") -> dict[str, Any]:
    """Returns the values of templates, but for the picture."""
    results = judge(evidence)
    groups = [g for r in results for p in r.parts for g in p.groups]
    runs = {run["run"]: run for g in groups for run in g.runs.values()}
    versions = {run["tfcomp"] or "unknown" for run in runs.values()}
    measured = {run[MEASURED] or "not measured" for run in runs.values()}
    facts = {
        "command": command,
        "runs": f"{len(runs)} used of {evidence.num_runs} found",
        "versions of tfcomp (runs)": ", ".join(sorted(versions)),
        "measured with": ", ".join(sorted(measured)),
        "threshold searches": str(evidence.num_searches or ""),
        "code": f"{tfcomp.__version__}, {compute_code_version()[:16]}",
        "left out": "; ".join(evidence.notes),
    }
    return {
        "results": results,
        "versions": read_declarations()["versions"],
        "facts": {name: fact for name, fact in facts.items() if fact},
        "text": result_text,
        "count_controls": count_controls,
        "list_used": list_used,
        "summarize_controls": summarize_controls,
        "summarize_counts": summarize_counts,
    }


def make_tables(evidence: Evidence, shown: Mapping[str, Any]) -> dict[str, str]:
    """Returns the tables in Markdown by the names of their files."""
    tables = {
        path.name: result_text.render_markdown(path, shown)
        for path in TEMPLATES.glob("*.md")
    }
    for sweep, table in result_text.make_score_tables(evidence).items():
        tables[f"scores_{sweep}.md"] = table
    for study in evidence.studies:
        tables[f"data_{study.path.name}.md"] = result_text.format_study(study)
    return tables


def summarize_counts(results: Sequence[ClaimResult]) -> str:
    """Counts both columns, as `as the paper states them 12 reproduced`."""
    paper = _count(result.paper_word for result in results)
    ours = _count(result.word for result in results)
    return f"as the paper states them {paper}; by our stricter tests {ours}"


def _count(found: Iterable[str]) -> str:
    counts = Counter(found)
    words = (*map(str, Verdict), IN_PARTS)
    return ", ".join(f"{counts[word]} {word}" for word in words if counts[word])


def list_used(result: ClaimResult) -> list[Group]:
    """Returns the groups behind a claim, each once."""
    groups = [group for part in result.parts for group in part.groups]
    found = {tuple(r["run"] for r in g.runs.values()): g for g in groups}
    return list(filter(len, found.values()))


def count_controls(result: ClaimResult, kind: str) -> str:
    """Counts the controls of a kind that the test told right, as `2 of 2`."""
    chosen = [c for c in result.controls if c.kind == kind]
    if chosen and chosen[0].verdict is Verdict.NOT_RUN:
        return "no three fitted runs yet"
    right = sum(control.is_right for control in chosen)
    return f"{right} of {len(chosen)}" if chosen else "–"


def summarize_controls(results: Sequence[ClaimResult]) -> str:
    """Counts the controls of all claims that were told right."""
    controls = [c for result in results for c in result.controls]
    run = [c.is_right for c in controls if c.verdict is not Verdict.NOT_RUN]
    return f"The tests are right on {sum(run)} of {len(run)} controls."


def list_rows(result: ClaimResult) -> list[dict[str, Any]]:
    """Returns the rows of `claims.csv` for one claim, one a part."""
    return [
        {
            "claim": result.claim.name,
            "title": result.claim.title,
            "paper_verdict": result.paper_word,
            "claim_verdict": result.word,
            "test": test,
            "part": part.label,
            "quantity": part.quantity,
            "decides": part.decides,
            "fresh": part.is_fresh,
            "mean": getattr(part.estimate, "mean", None),
            "low": getattr(part.estimate, "low", None),
            "high": getattr(part.estimate, "high", None),
            "n": getattr(part.estimate, "count", 0),
            "n_of": getattr(part.estimate, "unit", ""),
            "rule": str(part.rule),
            "verdict": str(part.verdict),
            "reason": part.reason,
            "setting": ", ".join(part.differences),
        }
        for test, parts in (("paper", result.own_paper), ("ours", result.parts))
        for part in parts
    ]


def judge_claims(settings: dict[str, Any]) -> int:
    """Judges the claims and writes the report, which shows the command."""
    check_folder("output", settings["output"])
    evidence = read_some_evidence(settings["runs"])
    given = [f"--{name}={settings[name]}" for name in FLAGS]
    line = shlex.join(["python", "-m", "reproduction.claims", *given])
    report = write_report(evidence, settings["output"], line)
    print(f"{'':4} {'as the paper':14} {'stricter test':14}")
    for result in report.results:
        words = f"{result.paper_word or '–':14} {result.word:14}"
        print(f"{result.claim.name:4} {words} {result.claim.title}")
        if len(result.by_part) > 1:
            print(f"{'':19} {result.badge}")
    print_left_out(evidence.notes)
    print(f"\nreport  {report.page}")
    return 0


main = Command(__doc__, FLAGS, judge_claims)
