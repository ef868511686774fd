"""Runs every combination of settings and seeds, each as its own process.

    python -m tfcomp.sweep --flagfile=donut.flags --run_name=depth \\
        --grid=depth=2,3,4 --grid=encoding/epochs=bump/50,ramp/100 \\
        --seeds=5 --workers=2

Flags that are joined by a slash vary together; a value that contains a comma
is quoted: --grid='region="box:x:6-22,y:0-9",corner:14'. The same command goes
on after an interruption; with more seeds or values it runs what is missing.
"""

from __future__ import annotations

import sys
from typing import Any

from absl import flags

from tfcomp.config.command import exit_on_user_error
from tfcomp.config.command import run_command
from tfcomp.config.errors import ConfigError
from tfcomp.config.run_config import make_config
from tfcomp.config.run_flags import define_run_flags
from tfcomp.config.run_flags import format_flags
from tfcomp.config.run_flags import make_flags
from tfcomp.storage.code_version import compute_code_version
from tfcomp.sweeps.grid import list_seeds
from tfcomp.sweeps.grid import list_settings
from tfcomp.sweeps.grid import parse_grid
from tfcomp.sweeps.scheduling import SchedulerOptions
from tfcomp.sweeps.sweep_folder import SweepFolder
from tfcomp.sweeps.sweep_run import Sweep
from tfcomp.sweeps.sweep_run import run_sweep
from tfcomp.sweeps.trial import define_measure
from tfcomp.sweeps.trials import make_trials

INTERVALS = ("student", "bootstrap")
FLAGS = {
    "grid": ([], "Flags to vary and their values, once for each axis."),
    "seeds": (1, "Seeds of every setting."),
    "first_seed": (0, "The first of the seeds, which are consecutive."),
    "workers": (0, "Trials at a time; 0 is one a GPU, or one."),
    "threads": (0, "Threads of a trial; 0 shares the cores."),
    "interval": (
        INTERVALS[0],
        "How 95 % intervals of means are made: student or bootstrap.",
    ),
    "scheduler": (
        "",
        "Address of a Dask scheduler, whose workers share the folders.",
    ),
}


def main(argv: list[str]) -> int:
    """The command; returns its exit status."""
    return run_command(argv, __doc__, define_flags(), run_trials)


def run_trials(settings: dict[str, Any]) -> int:
    """Checks everything, runs what is missing, writes the tables."""
    options = SchedulerOptions(
        workers=settings["workers"],
        scheduler=settings["scheduler"],
        threads=settings["threads"],
    )
    sweep = make_sweep(settings)
    sweep.folder.check()
    failures = run_sweep(sweep, options)
    print(f"tables  {sweep.folder.path}")
    for trial in sweep.trials:
        if trial.name in failures:
            line = f"failed  {trial.describe()}: {failures[trial.name]}"
            print(line, file=sys.stderr)
    return 1 if failures else 0


def define_flags() -> flags.FlagValues:
    """The flags of a run, and those of a sweep."""
    values = make_flags(FLAGS, define_run_flags())
    # A hundred trials need no pictures, and drawing them takes a third of
    # what a short run spends outside training.
    values.set_default("pictures", False)
    define_measure(values)
    return values


def make_sweep(settings: dict[str, Any]) -> Sweep:
    """The sweep that the flags describe, checked; writes nothing.

    Raises:
        ConfigError: If a flag or a combination breaks a rule.
        RunError: If a flag does not exist.
    """
    if settings["interval"] not in INTERVALS:
        rule = f"must be one of: {', '.join(INTERVALS)}"
        raise ConfigError("interval", rule, settings["interval"])
    axes = parse_grid(settings["grid"])
    seeds = list_seeds(settings)
    config = make_config(settings)
    folder = SweepFolder(config)
    trials, notes = make_trials(settings, list_settings(axes), seeds)
    for note in notes:
        print(note)
    lines = [f"--grid={spec}\n" for spec in settings["grid"]]
    for name in ("seeds", "first_seed", "measure", "interval"):
        lines.append(f"--{name}={str(settings[name]).lower()}\n")
    version = compute_code_version(config.plugins)
    header = f"# code version: {version}\n"
    text = header + format_flags(config) + "".join(lines)
    return Sweep(
        folder,
        trials,
        text,
        measure=bool(settings["measure"]),
        interval=settings["interval"],
    )


if __name__ == "__main__":
    exit_on_user_error(main)
