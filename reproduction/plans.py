"""The plans of studies: their sweeps and searches, and what is finished."""

import io
from collections.abc import Sequence
from contextlib import redirect_stdout

from reproduction import FLAGFILES
from reproduction.thresholds import command as thresholds
from tfcomp.config.run_flags import SUFFIX, parse_flags
from tfcomp.statistics.seed_statistics import format_rows
from tfcomp.sweeps import sweep_run
from tfcomp.sweeps.scheduler_options import SchedulerOptions
from tfcomp.sweeps.sweep_run import Workload, run_missing

# Names of the flagfiles of a study's runs; patterns match shipped ones.
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


def list_works(plan: Sequence[str], *flags: str) -> list[Workload]:
    """Lists the sweeps and searches of a plan.

    Args:
        plan: Names of flagfiles, or patterns.
        *flags: Flags for each of them, as `--log_dir=logs`.
    """
    works = []
    for pattern in plan:
        shipped = sorted(map(str, FLAGFILES.glob(f"{pattern}{SUFFIX}")))
        for file in shipped or [pattern]:
            name = file.rpartition("/")[2]
            works.append(make_work(name, [f"--flagfile={file}", *flags]))
    return works


def make_work(name: str, arguments: Sequence[str]) -> Workload:
    """Makes the sweep, or by its name the search, of a flagfile, in silence.

    Args:
        name: Of the flagfile.
        arguments: Flags of the command.
    """
    with redirect_stdout(io.StringIO()):  # notes of the commands
        if name.startswith(THRESHOLD):
            values = parse_flags(arguments, thresholds.define_flags())
            return thresholds.make_searches(values)
        values = parse_flags(arguments, sweep_run.define_flags())
        return sweep_run.make_sweep(values)


def run_all(works: Sequence[Workload], options: SchedulerOptions) -> list[str]:
    """Runs several in turn; returns a line for each item that failed.

    Args:
        works: Sweeps and searches.
        options: Where they run.
    """
    lines = []
    for number, work in enumerate(works, 1):
        name = work.folder.name
        print(f"{work.kind} {name} ({number} of {len(works)})", flush=True)
        for line in run_missing(work, options):
            lines.append(f"{name} {line}")
    return lines


def describe_plan(works: Sequence[Workload]) -> str:
    """Describes parts with their finished items in a table."""
    rows = [["part", "items", "finished"]]
    for work in works:
        count = len(work.items)
        finished = count - len(work.list_missing())
        rows.append([work.folder.name, str(count), str(finished)])
    return format_rows(rows)
