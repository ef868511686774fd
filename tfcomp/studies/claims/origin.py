"""What made a set of runs: machine, versions, seeds, flags, time."""

import os
import platform
import re
import subprocess
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

import tfcomp
from tfcomp.storage.code_version import compute_code_version
from tfcomp.studies.claims.evidence import UNIMPORTANT, Evidence, Run
from tfcomp.studies.claims.judgement import ClaimResult
from tfcomp.studies.claims.threshold_studies import count_searches

CPU_INFO = Path("/proc/cpuinfo")


def list_used_runs(results: Iterable[ClaimResult]) -> list[Run]:
    """The runs behind any part of any claim, each once."""
    parts = [part for result in results for part in result.parts]
    return list({run.path: run for p in parts for run in p.runs}.values())


def describe_origin(
    evidence: Evidence, used: Sequence[Run], command: str = ""
) -> dict[str, str]:
    """Facts about a report, by name.

    Args:
        evidence: All that was read.
        used: The runs behind the report.
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
