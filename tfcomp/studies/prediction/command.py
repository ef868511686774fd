"""Which early number predicts how a network will generalize?

    tfcomp study prediction predict --workers=2

trains the networks of a design, every combination of the values of --grid
with several seeds, to one ID error (--target); measures them at 0, 5, 10, 25
and 100 % of their training; and judges which measures order them by their OOD
error at the end. Half of the design is held back until --confirm. Networks
that are trained survive an interruption: the same command goes on.
"""

import sys
from pathlib import Path
from typing import Any

from absl import flags

from tfcomp.config.command import run_command
from tfcomp.config.run_config import make_config
from tfcomp.config.run_flags import (
    define_run_flags,
    define_settings,
    format_flags,
    list_flag_lines,
    make_flags,
)
from tfcomp.storage.output_folders import check_run_folders
from tfcomp.studies.prediction.design import (
    HALVES,
    list_cells,
    list_hyperparameters,
)
from tfcomp.studies.prediction.predict_run import PredictionStudy
from tfcomp.studies.prediction.predict_settings import PredictSettings
from tfcomp.sweeps.grid import GRID
from tfcomp.sweeps.scheduler_options import SchedulerOptions
from tfcomp.sweeps.workload import run_missing


def main(argv: list[str]) -> int:
    """The command; returns its exit status."""
    first = "tfcomp study prediction predict_smoke --workers=2"
    return run_command(argv, __doc__, define_flags(), predict, first)


def predict(values: dict[str, Any]) -> int:
    """Trains what is missing, judges, prints what predicts."""
    options = SchedulerOptions.from_flags(values)
    study = make_study(values)
    check_run_folders(values)
    failures = run_missing(study, options)
    count, reached = study.count_networks()
    print(f"\n{count} networks, {reached} reached {study.settings.target:g}")
    print("\n".join(study.describe_answer()))
    print(f"tables   {study.folder}")
    for line in study.describe_failures(failures):
        print(f"failed   {line}", file=sys.stderr)
    return 1 if failures else 0


def define_flags() -> flags.FlagValues:
    """The flags of a run, those of a study, and where its networks train."""
    values = make_flags(GRID, define_run_flags())
    values.set_default("run_name", "predict")
    define_settings(PredictSettings.list_settings(), values)
    define_settings(SchedulerOptions.list_settings(), values)
    return values


def make_study(values: dict[str, Any]) -> PredictionStudy:
    """The study that the flags describe, checked; writes nothing.

    Raises:
        ConfigError: If a flag or a combination breaks a rule.
    """
    settings = PredictSettings.from_flags(values)
    base = make_config(values)
    cells, notes = list_cells(values, settings.all_seeds)
    for note in notes:
        print(note)
    if not settings.confirm:
        cells = [cell for cell in cells if cell.half == HALVES[0]]
    lines = [f"--grid={spec}" for spec in values["grid"]]
    lines = "\n".join([*lines, *list_flag_lines(settings), ""])
    text = format_flags(base) + lines
    axes = list_hyperparameters(values["grid"])
    return PredictionStudy(Path(base.run_dir), cells, text, settings, axes)
