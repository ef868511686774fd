"""The plans of studies: their sweeps and searches, and what is finished."""

import io
from collections.abc import Sequence
from contextlib import redirect_stdout

from reproduction import FLAGFILES
from reproduction.thresholds import command as thresholds
from tfcomp.config.run_flags import SUFFIX, parse_flags
from tfcomp.statistics.seed_statistics import format_rows
from tfcomp.sweeps import sweep_run
from tfcomp.sweeps.pool import SchedulerOptions
from tfcomp.sweeps.sweep_run import Workload, run_missing

# Names of the flagfiles of a study's runs; patterns match shipped ones.
PLANS: dict[str, Sequence[str]] = {
    "claims": (
        "campaign/*",
        "campaign_fresh/*",
        "campaign_unseen/*",
        "campaign_next/*",
    ),
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


def list_works(plan: Sequence[str], *flags: str) -> list[Workload]:
    """Lists the sweeps and searches of a plan.

    Args:
        plan: Names of flagfiles, or patterns.
        *flags: Flags for each of them, as `--log_dir=logs`.
    """
    works = []
    for pattern in plan:
        paths = FLAGFILES.glob(f"{pattern}{SUFFIX}")
        shipped = sorted(map(str, paths))
        if not shipped:
            shipped = [pattern]
        for file in shipped:
            _, _, name = file.rpartition("/")
            arguments = [f"--flagfile={file}", *flags]
            works.append(make_work(name, arguments))
    return works


def make_work(name: str, arguments: Sequence[str]) -> Workload:
    """Makes the sweep, or by its name the search, of a flagfile, in silence.

    Args:
        name: Of the flagfile.
        arguments: Flags of the command.
    """
    with redirect_stdout(io.StringIO()):  # notes of the commands
        if name.startswith(THRESHOLD):
            flags = thresholds.define_flags()
            values = parse_flags(arguments, flags)
            return thresholds.make_searches(values)
        flags = sweep_run.define_flags()
        values = parse_flags(arguments, flags)
        return sweep_run.make_sweep(values)


def run_all(works: Sequence[Workload], options: SchedulerOptions) -> list[str]:
    """Runs several in turn; returns a line for each item that failed.

    Args:
        works: Sweeps and searches.
        options: Where they run.
    """
    failures = []
    count = len(works)
    for number, work in enumerate(works, 1):
        name = work.folder.name
        print(f"{work.kind} {name} ({number} of {count})", flush=True)
        failed = run_missing(work, options)
        for line in failed:
            failures.append(f"{name} {line}")
    return failures


def describe_plan(works: Sequence[Workload]) -> str:
    """Describes parts with their finished items in a table."""
    rows = [["part", "items", "finished"]]
    for work in works:
        count = len(work.items)
        num_missing = len(work.list_missing())
        finished = count - num_missing
        name = work.folder.name
        row = [name, str(count), str(finished)]
        rows.append(row)
    return format_rows(rows)
