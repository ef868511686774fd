"""Runs every combination of settings and seeds, several at the same time.

    tfcomp sweep donut --run_name=depth \\
        --grid=depth=2,3,4 --grid=encoding/epochs=bump/50,ramp/100 \\
        --seeds=5 --workers=2

Flags that are joined by a slash vary together. A value that contains a comma
is quoted, as in --grid='region="box:x:6-22,y:0-9",corner:14'. All other flags
of a run hold for every trial. Finished trials survive an interruption: the
same command runs missing trials, also after seeds or values were added.
"""

import csv
import itertools
import shlex
import sys
from pathlib import Path
from typing import Any

from tfcomp.config.command import Command, exit_on_user_error
from tfcomp.metrics.registry import list_leading
from tfcomp.storage.output_folders import check_run_folders, list_versions
from tfcomp.sweeps.scheduler_options import SchedulerOptions
from tfcomp.sweeps.sweep_run import define_flags, make_sweep
from tfcomp.sweeps.workload import run_missing


def run_trials(values: dict[str, Any]) -> int:
    """Runs missing trials; prints scores and failures."""
    options, sweep = SchedulerOptions.from_flags(values), make_sweep(values)
    check_run_folders(values)
    failures = run_missing(sweep, options)
    print(f"\n{format_summary(sweep.folder)}tables  {sweep.folder}")
    if (page := sweep.folder / "report.html").exists():
        print(f"report  {page}")
    asked = sweep.items if values["export"] else ()
    # Trials that failed, or ended without.
    lost = [t for t in asked if not list_versions(t.config.export_path)]
    if lost:
        run = shlex.quote(str(lost[0].path))
        print(f"no SavedModel of {len(lost)}: tfcomp export --run={run}")
    for line in failures:
        print(f"failed  {line}", file=sys.stderr)
    return 1 if failures else 0


def format_summary(folder: Path) -> str:
    """Formats the main scores, mean and deviation, a line a setting."""
    path = folder / "summary.csv"
    text = path.read_text("utf-8") if path.exists() else ""
    table: dict[str, dict[str, str]] = {}
    for row in csv.DictReader(text.splitlines()):  # pandas would take a second
        flags = itertools.takewhile(lambda name: name != "score", row)
        setting = " ".join(f"{name}={row[name]}" for name in flags)
        numbers = [float(row[name]) for name in ("mean", "sd") if row[name]]
        cell = " ± ".join(f"{number:.3g}" for number in numbers)
        table.setdefault(setting, {})[row["score"]] = cell or "-"
    shown = list(list_leading("image"))
    width = max(map(len, table), default=0)
    lines = ""
    for setting, row in [("", {s: s for s in shown}), *table.items()]:
        cells = (f"{row.get(score, '-'):>24}" for score in shown)
        lines += f"{setting:{width}}{''.join(cells)}\n"
    return lines if table else ""


FIRST = "tfcomp sweep sweep_smoke --workers=2"
main = Command(__doc__, define_flags, run_trials, FIRST)

if __name__ == "__main__":
    exit_on_user_error(main)
