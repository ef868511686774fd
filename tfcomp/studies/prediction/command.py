"""Which early number predicts how a network will generalize?

    tfcomp study prediction predict --workers=2

trains the networks of a design, every combination of the values of --grid
with several seeds, to one ID error (--target); measures them at 0, 5, 10, 25
and 100 % of their training; and judges which numbers order them by their OOD
error at the end. Half of the design is held back until --confirm. Networks
that are trained survive an interruption: the same command goes on.

    tfcomp study prediction --runs=docs/predict_evidence --output=prediction

trains nothing: it judges the networks of a finished study again, from its
folder or from packed evidence, and needs no TensorFlow.
"""

import sys
from pathlib import Path
from typing import Any

from absl import flags

from tfcomp.config import run_flags
from tfcomp.config.errors import ConfigError
from tfcomp.config.run_config import split_names
from tfcomp.storage.files import make_folder
from tfcomp.storage.output_folders import check_folder
from tfcomp.storage.run_search import find_folders
from tfcomp.studies import Study
from tfcomp.studies.prediction.design import (
    PredictSettings,
    make_study,
    print_report,
)
from tfcomp.studies.prediction.networks import TABLE, Networks, read_networks
from tfcomp.sweeps.grid import GRID
from tfcomp.sweeps.scheduler_options import SchedulerOptions
from tfcomp.sweeps.workload import run_as_asked

RECORDED = {
    "runs": (
        "",
        "Trains nothing: judges a finished study, its folder or packed "
        "evidence, a pattern with *.",
    ),
    "output": ("prediction", "With --runs, the folder for its tables."),
    "fresh": (
        "",
        "With --runs, a study with the same hyperparameters that nothing was "
        "chosen on: what early numbers add for one decoder is tried on it.",
    ),
}


def predict(values: dict[str, Any]) -> int:
    """Trains what is missing and judges; prints what predicts."""
    if values["runs"]:
        return judge_recorded(values)
    if values["fresh"]:
        raise ConfigError("fresh", "goes with --runs", values["fresh"])
    study, failures = run_as_asked(make_study, values)
    for line in study.describe_failures(failures):
        print(f"failed   {line}", file=sys.stderr)
    return 1 if failures else 0


def judge_recorded(values: dict[str, Any]) -> int:
    """Judges the recorded networks of one study; prints what predicts.

    Raises:
        ConfigError: Without such a study, or a folder to write.
    """
    output = Path(values["output"])
    check_folder("output", str(output))
    found, fresh = read_study("runs", values["runs"]), None
    if values["fresh"]:
        fresh = read_study("fresh", values["fresh"])
        if fresh.hyperparameters != found.hyperparameters:
            rule = "must vary the hyperparameters of --runs, in their order"
            raise ConfigError("fresh", rule, values["fresh"])
    make_folder(output)
    print_report(output, found, fresh)
    return 0


def read_study(flag: str, place: str) -> Networks:
    """Returns the networks of the one study of a place.

    Raises:
        ConfigError: If there is none, or several.
    """
    names = {TABLE, f"{TABLE}.xz"}
    folders = find_folders(split_names(place), lambda n: bool(names & n))
    if len(folders) != 1:
        rule = f"must match one prediction study, not {len(folders)}"
        raise ConfigError(flag, rule, place)
    packed = folders[0] / f"{TABLE}.xz"
    return read_networks(packed if packed.exists() else folders[0] / TABLE)


def define_flags() -> flags.FlagValues:
    """Returns the flags of a run, of a study, and of where it trains."""
    values = run_flags.make_flags(GRID | RECORDED, run_flags.define_run_flags())
    values.set_default("run_name", "predict")
    run_flags.define_settings(PredictSettings.list_settings(), values)
    run_flags.define_settings(SchedulerOptions.list_settings(), values)
    return values


STUDY = Study(
    "prediction",
    __doc__,
    define_flags,
    predict,
    plan=("predict --confirm",),
    start="predict",
    make_work=make_study,
    first="tfcomp study prediction predict_smoke --workers=2",
)
main = STUDY.main
