"""Judges finished runs, trains missing ones, or packs their evidence.

    python -m reproduction.claims --plan
    python -m reproduction.claims --run --workers=2 --output=report
    python -m reproduction.claims --runs='tensorboard_logs/*' --pack=packed

`--plan` lists the runs of a study with the number of finished ones. `--run`
trains missing runs, continues after an interruption, and judges. `--pack` makes
one file of every sweep, with flags, scores and versions of its finished runs,
and without weights; it gives the same verdicts in seconds and without
TensorFlow.
"""

import functools
import glob
import importlib
import sys
from pathlib import Path
from typing import Any

from reproduction.plans import PLANS, describe_plan, list_works, run_all
from tfcomp.config.process import exit_on_user_error
from tfcomp.config.run_flags import (
    HELP,
    Command,
    define_settings,
    format_help,
    make_flags,
)
from tfcomp.config.settings import split_names
from tfcomp.storage.files import check_folder
from tfcomp.sweeps.pool import SchedulerOptions

PACK_FLAGS = {
    "runs": ("", "Sweeps and studies, or folders of them; patterns with *."),
    "pack": ("", "The folder for the packed files."),
}
PLAN_FLAGS = {
    "plan": (False, "List the runs of the study; run nothing."),
    "run": (False, "Train missing runs, then judge."),
    "log_dir": ("tensorboard_logs", "The folder of its sweeps."),
    "output": ("", "With --run, the folder for tables and figures."),
}


def run(name: str) -> None:
    """Runs the command `python -m reproduction.<name>` and exits."""
    action = functools.partial(main, name)
    exit_on_user_error(action)


def main(name: str, argv: list[str]) -> int:
    """Judges, packs, plans or trains; returns the exit status.

    Args:
        name: The study, as `claims`.
        argv: The name of the program and its flags.
    """
    arguments = argv[1:]
    program = [f"python -m reproduction.{name}", *arguments]
    flags = set()
    for argument in arguments:
        stripped = argument.lstrip("-")
        flag, _, _ = stripped.partition("=")
        flags.add(flag)

    if "pack" in flags:
        pack = Command(__doc__, PACK_FLAGS, _pack)
        return pack(program)
    if flags & {"plan", "run"}:
        fields = SchedulerOptions.list_settings()
        plan_flags = make_flags(PLAN_FLAGS)
        values = define_settings(fields, plan_flags)
        action = functools.partial(_follow_plan, name=name)
        follow = Command(__doc__, lambda: values, action)
        return follow(program)

    status = _judge(name, program)
    if HELP & set(arguments):
        _print_help("With --plan or --run, and those of workers:", PLAN_FLAGS)
        _print_help("With --pack, in place of these:", PACK_FLAGS)
    return status


def _print_help(title: str, table: dict[str, Any]) -> None:
    flags = make_flags(table)
    text = format_help(title, {"Flags": list(flags)}, flags)
    print(f"\n{text}")


def _follow_plan(settings: dict[str, Any], name: str) -> int:
    """Prints the progress of a plan, or trains missing runs and judges."""
    options = SchedulerOptions.from_flags(settings)
    log_dir = settings["log_dir"]
    check_folder("log_dir", log_dir)
    works = list_works(PLANS[name], f"--log_dir={log_dir}")
    if settings["plan"]:
        print(describe_plan(works))
        return 0

    failures = run_all(works, options)
    for line in failures:
        print(f"failed   {line}", file=sys.stderr)
    if name != "thresholds":  # searches write their tables themselves
        folders = []
        for work in works:
            if work.folder.exists():
                folder = glob.escape(str(work.folder))
                folders.append(folder)
        runs = ",".join(folders)
        output = settings["output"] or f"{name}_report"
        program = [
            f"python -m reproduction.{name}",
            f"--runs={runs}",
            f"--output={output}",
        ]
        _judge(name, program)
    if failures:
        return 1
    return 0


def _judge(name: str, program: list[str]) -> int:
    """Calls the command of a study with a command line."""
    study = importlib.import_module(f"reproduction.{name}.command")
    return study.main(program)


def _pack(settings: dict[str, Any]) -> int:
    """Packs runs, and prints the sizes of the files."""
    check_folder("pack", settings["pack"])
    from reproduction.packing import pack_evidence

    patterns = split_names(settings["runs"])
    output = Path(settings["pack"])
    for path in pack_evidence(patterns, output):
        kilobytes = path.stat().st_size / 1e3
        print(f"{kilobytes:8.0f} kB  {path}")
    return 0
