"""The plans of studies: their parts, progress, and remaining time."""

import io
import shlex
from collections.abc import Mapping, Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from tfcomp.config.flagfiles import SHIPPED, SUFFIX
from tfcomp.config.run_config import split_names
from tfcomp.config.run_flags import parse_flags
from tfcomp.statistics.setting_table import format_rows
from tfcomp.studies.claims import command as claims
from tfcomp.studies.claims.evidence import Evidence, read_evidence
from tfcomp.studies.decoders import command as decoders
from tfcomp.studies.paper import command as paper
from tfcomp.studies.prediction import command as prediction
from tfcomp.studies.thresholds import command as thresholds
from tfcomp.sweeps import sweep_run
from tfcomp.sweeps.sweep_progress import format_seconds
from tfcomp.sweeps.workload import Workload
from tfcomp.tables.flatten import UNIMPORTANT

_COMMANDS = (claims, decoders, prediction, thresholds, paper)
STUDIES = {command.STUDY.name: command.STUDY for command in _COMMANDS}
HEADS = ["part", "items", "finished", "in evidence", "time for the rest"]


@dataclass(frozen=True)
class Progress:
    """The progress of a part of a plan.

    Attributes:
        num_finished: How many items have finished in their folder.
        num_known: How many of the others the evidence has.
        seconds: What all that are not finished take, one after another, by
            runs of the evidence like them; None if there is none.
    """

    work: Workload
    num_finished: int
    num_known: int
    seconds: float | None


def list_works(plan: Sequence[str], *places: str) -> list[Workload]:
    """Returns the sweeps and searches of a plan; writes nothing.

    The places are flags added to each of them, as `--log_dir=...`. Raises
    ConfigError if a flag breaks a rule, RunError without such a flagfile.
    """
    works: list[Workload] = []
    for line in plan:
        pattern, *flags = shlex.split(line)
        files = sorted(map(str, SHIPPED.glob(f"{pattern}{SUFFIX}")))
        for file in files or [pattern]:
            name = file.rpartition("/")[2]
            define, make = sweep_run.define_flags, sweep_run.make_sweep
            for study in STUDIES.values():
                if study.start and name.startswith(study.start):
                    define, make = study.make_flags, study.make_work
            arguments = [f"--flagfile={file}", *flags, *places]
            with redirect_stdout(io.StringIO()):  # what the commands would say
                works.append(make(parse_flags(arguments, define())))
    return works


def describe_plan(works: Sequence[Workload], runs: str, workers: int) -> str:
    """Returns a table of parts, with finished items and remaining time.

    `runs` are patterns of evidence with measured times, separated by commas.
    """
    evidence = read_evidence(split_names(runs)) if runs else Evidence()
    found, rows, missing = measure_progress(works, evidence), [HEADS], 0
    for part in found:
        total = len(part.work.items)
        left = "-" if part.num_finished == total else "not known"
        if part.seconds:
            left = format_seconds(part.seconds)
        counts = total, part.num_finished, part.num_known
        rows.append([part.work.folder.name, *map(str, counts), left])
        missing += total - part.num_finished
    table = format_rows(rows)
    seconds = sum(part.seconds or 0.0 for part in found) / max(workers, 1)
    text = f"{missing} to run, about {format_seconds(seconds)} of training"
    text += f" with {workers} at a time" if workers > 1 else ""
    if unknown := sum(part.seconds is None for part in found):
        text += f", and {unknown} parts without a measured time"
    return f"{table}\n{text}"


def measure_progress(
    works: Sequence[Workload], evidence: Evidence
) -> list[Progress]:
    """Measures progress; runs of the evidence count by their flags."""
    times: dict[Any, list[float]] = {}
    known = set()
    for group in evidence.groups:
        keys = _list_keys(group.flags)
        known |= {(keys[0], seed) for seed in group.seeds}
        for seconds in group.get("train/seconds").dropna():
            for key in keys:
                times.setdefault(key, []).append(seconds)
    progress = []
    for work in works:
        missing = work.list_missing()
        num_known, seconds = 0, None if missing else 0.0
        if isinstance(work, sweep_run.Sweep):  # searches keep no times
            flags = [trial.config.to_flags() for trial in missing]
            found = [_list_keys(each) for each in flags]
            seeds = [each["seed"] for each in flags]
            pairs = zip(found, seeds, strict=True)
            num_known = sum((keys[0], seed) in known for keys, seed in pairs)
            # Runs with the same flags tell more than those of the same kind.
            like = [next(filter(times.get, keys), None) for keys in found]
            if None not in like:
                seconds = sum(fmean(times[key]) for key in like)
        num_finished = len(work.items) - len(missing)
        progress.append(Progress(work, num_finished, num_known, seconds))
    return progress


def _list_keys(flags: Mapping[str, Any]) -> tuple[str, tuple[Any, ...]]:
    """Returns keys of a run: of its setting, and of its kind."""
    kept = {k: v for k, v in flags.items() if k not in UNIMPORTANT}
    names = ("dataset", "model", "grid_size", "depth", "width", "epochs")
    kind = tuple(flags.get(name) for name in names)
    return repr(sorted(kept.items())), kind
