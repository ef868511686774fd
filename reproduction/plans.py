"""The plans of studies: their parts, progress, and remaining time."""

import io
import math
import shlex
from collections.abc import Sequence
from contextlib import redirect_stdout

from reproduction import FLAGFILES
from reproduction.claims.evidence import SEARCH, Evidence, read_evidence
from reproduction.selection import list_differences
from reproduction.thresholds import command as thresholds
from tfcomp.config.flagfiles import SUFFIX
from tfcomp.config.run_config import split_names
from tfcomp.config.run_flags import parse_flags
from tfcomp.statistics.seed_statistics import format_rows
from tfcomp.sweeps import sweep_run
from tfcomp.sweeps.scheduler_options import SchedulerOptions
from tfcomp.sweeps.workload import Workload, format_seconds, run_missing
from tfcomp.tables.flatten import hash_setting, parse_run_flags

# Flagfiles of the runs that a study needs, and flags that follow them; patterns
# match shipped ones.
PLANS: dict[str, Sequence[str]] = {
    "claims": ("campaign/*", "campaign_fresh/*", "campaign_unseen/*"),
    "decoders": (
        "decoders_truth",
        "decoders_bumps",
        "decoders_acting_bumps",
        "decoders_acting_composed",
        "decoders_forced_composed",
        "decoders_distinct",
        "decoders_distinct_acting",
    ),
    "thresholds": ("threshold",),
    # The networks of the claims, and one long search.
    "figures": ("campaign/*", "threshold"),
}
THRESHOLD = "threshold"  # the start of the names of flagfiles of searches


def list_works(plan: Sequence[str], *places: str) -> list[Workload]:
    """Returns the sweeps and searches of a plan, with flags as `--log_dir`."""
    works: list[Workload] = []
    for line in plan:
        pattern, *flags = shlex.split(line)
        files = sorted(map(str, FLAGFILES.glob(f"{pattern}{SUFFIX}")))
        for file in files or [pattern]:
            arguments = [f"--flagfile={file}", *flags, *places]
            works.append(make_work(file.rpartition("/")[2], arguments))
    return works


def make_work(name: str, arguments: Sequence[str]) -> Workload:
    """Makes the sweep, or by its name the search, of a flagfile, in silence."""
    is_search = name.startswith(THRESHOLD)
    flags = (thresholds if is_search else sweep_run).define_flags()
    with redirect_stdout(io.StringIO()):  # notes of the commands
        values = parse_flags(arguments, flags)
        if is_search:
            return thresholds.make_searches(values)
        return sweep_run.make_sweep(values)


def run_all(works: Sequence[Workload], options: SchedulerOptions) -> list[str]:
    """Runs several in turn; returns a line for each item that failed."""
    lines = []
    for number, work in enumerate(works, 1):
        name = work.folder.name
        print(f"{work.kind} {name} ({number} of {len(works)})", flush=True)
        lines += [f"{name} {line}" for line in run_missing(work, options)]
    return lines


def describe_plan(works: Sequence[Workload], runs: str, workers: int) -> str:
    """Returns a table of parts, with finished items and remaining time."""
    evidence = read_evidence(split_names(runs)) if runs else Evidence()
    heads = "part", "items", "finished", "in evidence", "time for the rest"
    rows, missing, times = [list(heads)], 0, []
    for work in works:
        left = len(work.list_missing())
        num_known, seconds = find_in_evidence(work, evidence)
        tally = len(work.items), len(work.items) - left, num_known
        time = "not known" if math.isnan(seconds) else format_seconds(seconds)
        rows.append([work.folder.name, *map(str, tally), time if left else "-"])
        missing += left
        times.append(seconds)
    known = [seconds for seconds in times if not math.isnan(seconds)]
    time = format_seconds(sum(s / max(workers, 1) for s in known))
    text = f"{missing} to run, about {time} of training"
    text += f" with {workers} at a time" if workers > 1 else ""
    if unknown := len(times) - len(known):
        text += f", and {unknown} parts without a measured time"
    return f"{format_rows(rows)}\n{text}"


def find_in_evidence(work: Workload, evidence: Evidence) -> tuple[int, float]:
    """Returns how many missing items evidence has; their time, else NaN."""
    missing = work.list_missing()
    if not isinstance(work, sweep_run.Sweep):  # searches keep no times
        asked, every = parse_run_flags(work.flags)[0], evidence.studies
        same = [s for s in every if not list_differences(s.flags, asked)]
        rows = {tuple(r) for s in same for r in s.thresholds[SEARCH].to_numpy()}
        keys = {(c.kind, c.region, c.grid_size, c.seed) for c in missing}
        return len(rows & keys), math.nan if missing else 0.0
    known, times = set(), {}
    for group in evidence.groups:
        seconds = float(group.get("train/seconds").mean())
        for run in group.runs.values():
            known.add(run["run"])
            times[run["setting"]] = seconds
    flags = [trial.config.to_flags() for trial in missing]
    hashes = [hash_setting(each, each["seed"]) for each in flags]
    seconds = sum(times.get(hash_setting(each), math.nan) for each in flags)
    return len(known.intersection(hashes)), seconds
