"""What each study runs, how far that is, and how long the rest will take.

What is finished is never run again, so that a plan that was interrupted goes on
where it stopped.
"""

import io
import shlex
from collections.abc import Mapping, Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from tfcomp.config.flagfiles import SHIPPED, SUFFIX
from tfcomp.config.run_flags import parse_flags
from tfcomp.statistics.setting_table import format_rows
from tfcomp.storage.run_search import split_patterns
from tfcomp.studies.claims import command as claims
from tfcomp.studies.claims.evidence import UNIMPORTANT, Evidence, read_evidence
from tfcomp.studies.decoders import command as decoders
from tfcomp.studies.paper import command as paper
from tfcomp.studies.prediction import command as prediction
from tfcomp.studies.thresholds import command as thresholds
from tfcomp.sweeps import sweep_run
from tfcomp.sweeps.sweep_progress import format_seconds
from tfcomp.sweeps.workload import Workload

STUDIES = {
    each.name: each
    for each in (
        *(claims.STUDY, decoders.STUDY, prediction.STUDY),
        *(thresholds.STUDY, paper.STUDY),
    )
}
HEADS = ["part", "items", "finished", "in evidence", "time for the rest"]


@dataclass(frozen=True)
class Progress:
    """How far a part of a plan is.

    Attributes:
        num_finished: How many of them have finished in their folder.
        num_known: How many of the others the evidence has.
        seconds: What those that are not finished take, one after another, by
            runs of the evidence like them; None if there is none.
    """

    work: Workload
    num_finished: int
    num_known: int
    seconds: float | None

    def list_cells(self) -> list[str]:
        """A row of the table of a plan."""
        total = len(self.work.items)
        left = "-" if self.num_finished == total else "not known"
        if self.seconds:
            left = format_seconds(self.seconds)
        counts = total, self.num_finished, self.num_known
        return [self.work.folder.name, *map(str, counts), left]


def list_works(plan: Sequence[str], *places: str) -> list[Workload]:
    """The sweeps and searches of a plan, in order; writes nothing.

    The places are flags to add to each of them, as `--log_dir=...`.

    Raises:
        ConfigError: If a flag breaks a rule.
        RunError: If there is no such flagfile.
    """
    works = []
    for line in plan:
        pattern, *flags = shlex.split(line)
        found = sorted(SHIPPED.glob(f"{pattern}{SUFFIX}")) or [pattern]
        for file in found:
            name = str(file).rpartition("/")[2]
            define, make = sweep_run.define_flags, sweep_run.make_sweep
            for study in STUDIES.values():
                if study.start and name.startswith(study.start):
                    define, make = study.make_flags, study.make_work
            arguments = [f"--flagfile={file}", *flags, *places]
            with redirect_stdout(io.StringIO()):  # what the commands would say
                works.append(make(parse_flags(arguments, define())))
    return works


def describe_plan(works: Sequence[Workload], runs: str, workers: int) -> str:
    """A table of what would run, what is finished, and how long the rest takes.

    Args:
        works: As `list_works` gives them.
        runs: Evidence with measured times, patterns separated by commas.
    """
    evidence = read_evidence(split_patterns(runs)) if runs else Evidence()
    found = measure_progress(works, evidence)
    table = format_rows([HEADS, *(part.list_cells() for part in found)])
    missing = sum(len(part.work.items) - part.num_finished for part in found)
    seconds = sum(part.seconds or 0.0 for part in found) / max(workers, 1)
    total = f"{missing} to run, about {format_seconds(seconds)} of training"
    total += f" with {workers} at a time" if workers > 1 else ""
    if unknown := sum(part.seconds is None for part in found):
        total += f", and {unknown} parts without a measured time"
    return f"{table}\n{total}"


def measure_progress(
    works: Sequence[Workload], evidence: Evidence
) -> list[Progress]:
    """How far each part is; runs of the evidence count by their flags."""
    times: dict[Any, list[float]] = {}
    known = {_name_run(run.flags) for run in evidence.runs}
    for run in evidence.runs:
        if seconds := run.get("train/seconds"):
            for key in (_identify(run.flags), _name_kind(run.flags)):
                times.setdefault(key, []).append(seconds)
    return [_measure(work, known, times) for work in works]


def _measure(
    work: Workload, known: set, times: Mapping[Any, list[float]]
) -> Progress:
    missing = work.list_missing()
    num_finished = len(work.items) - len(missing)
    if not isinstance(work, sweep_run.Sweep):  # searches keep no times
        return Progress(work, num_finished, 0, None if missing else 0.0)
    flags = [trial.config.to_flags() for trial in missing]
    seconds = [_guess(each, times) for each in flags]
    num_known = sum(_name_run(each) in known for each in flags)
    total = None if None in seconds else sum(seconds)
    return Progress(work, num_finished, num_known, total)


def _guess(
    flags: Mapping[str, Any], times: Mapping[Any, list[float]]
) -> float | None:
    """Seconds of runs with the same flags, else of their kind, on average."""
    keys = _identify(flags), _name_kind(flags)
    found = next((times[key] for key in keys if key in times), None)
    return fmean(found) if found else None


def _identify(flags: Mapping[str, Any]) -> str:
    """What decides a run, but for its seed."""
    kept = {k: v for k, v in flags.items() if k not in UNIMPORTANT}
    return repr(sorted(kept.items()))


def _name_run(flags: Mapping[str, Any]) -> tuple[str, int]:
    return _identify(flags), flags["seed"]


def _name_kind(flags: Mapping[str, Any]) -> tuple[Any, ...]:
    names = ("dataset", "model", "grid_size", "depth", "width", "epochs")
    return tuple(flags.get(name) for name in names)
