"""Judges finished runs, trains missing ones, or packs their evidence.

    tfcomp study
    tfcomp study claims --runs=docs/evidence --output=report
    tfcomp study claims --plan --runs=docs/evidence
    tfcomp study claims --run --workers=2 --output=report
    tfcomp study claims --runs='tensorboard_logs/*' --pack=docs/evidence

The first line lists the studies. `--plan` lists the runs of a study, the number
of finished ones and the remaining time. `--run` trains missing runs, continues
after an interruption, and judges. `--pack` makes one file of every sweep, with
flags, scores and versions of its finished runs, and without weights; it gives
the same verdicts in seconds and without TensorFlow.
"""

import functools
import glob
import importlib
import sys
from pathlib import Path
from typing import Any

from tfcomp.config import command
from tfcomp.config.errors import RunError, suggest
from tfcomp.config.run_config import split_names
from tfcomp.config.run_flags import define_settings, make_flags
from tfcomp.storage.output_folders import check_folder
from tfcomp.sweeps.scheduler_options import SchedulerOptions

NAMES = "claims decoders prediction thresholds paper".split()
PACK_FLAGS = {
    "runs": ("", "Sweeps and studies, or folders of them; patterns with *."),
    "pack": ("", "The folder for the packed files."),
}
PLAN_FLAGS = {
    "plan": (False, "List the runs of the study; run nothing."),
    "run": (False, "Train missing runs, then judge."),
    "log_dir": ("tensorboard_logs", "The folder of its sweeps."),
    "runs": ("", "Evidence with measured times of training."),
    "output": ("", "With --run, the folder for tables and figures."),
}


def main(argv: list[str]) -> int:
    """Lists the studies, or runs one; raises RunError for an unknown name."""
    name, *rest = argv[1:] or ["--help"]
    if name in command.HELP:
        print(__doc__)
        for study in NAMES:
            module = Path(__file__).parent / "studies" / study / "command.py"
            print(f"tfcomp study {study:12}{command.read_purpose(module)}")
        return 0
    if name not in NAMES:
        hint = suggest(name, NAMES) or f" ({', '.join(NAMES)})"
        raise RunError(f"{name!r} is not a study{hint}")
    program = [f"tfcomp study {name}", *rest]
    given = {argument.lstrip("-").partition("=")[0] for argument in rest}
    if "pack" in given:
        return command.Command(__doc__, PACK_FLAGS, _pack)(program)
    if given & {"plan", "run"}:
        fields = SchedulerOptions.list_settings()
        values = define_settings(fields, make_flags(PLAN_FLAGS))
        do = functools.partial(_follow_plan, name=name)
        return command.Command(__doc__, lambda: values, do)(program)
    status = _judge(name, program)
    if command.HELP & set(rest):
        values = make_flags(PACK_FLAGS | PLAN_FLAGS)
        title = "\nFlags of every study, in place of these:"
        print(command.format_help(title, values))
    return status


def _follow_plan(settings: dict[str, Any], name: str) -> int:
    """Prints the progress of a plan, or trains missing runs and judges."""
    options = SchedulerOptions.from_flags(settings)
    check_folder("log_dir", settings["log_dir"])
    from tfcomp.studies.study import PLANS, describe_plan, list_works, run_all

    if not PLANS[name]:
        raise RunError(f"{name} trains nothing: give its networks by --runs")
    works = list_works(PLANS[name], f"--log_dir={settings['log_dir']}")
    if settings["plan"]:
        print(describe_plan(works, settings["runs"], options.workers))
        return 0
    failures = run_all(works, options)
    for line in failures:
        print(f"failed   {line}", file=sys.stderr)
    if name != "thresholds":  # searches write their tables themselves
        paths = [glob.escape(str(w.folder)) for w in works if w.folder.exists()]
        output = settings["output"] or f"{name}_report"
        given = [f"--runs={','.join(paths)}", f"--output={output}"]
        _judge(name, [f"tfcomp study {name}", *given])
    return 1 if failures else 0


def _judge(name: str, program: list[str]) -> int:
    study = importlib.import_module(f"tfcomp.studies.{name}.command")
    return study.main(program)


def _pack(settings: dict[str, Any]) -> int:
    check_folder("pack", settings["pack"])
    from tfcomp.studies.claims.evidence import pack_evidence

    output = Path(settings["pack"])
    for path in pack_evidence(split_names(settings["runs"]), output):
        print(f"{path.stat().st_size / 1e3:8.0f} kB  {path}")
    return 0
