"""Tells which early number predicts how a network generalizes.

    tfcomp study prediction --runs=docs/predict_evidence --output=prediction

judges the recorded networks of the study (docs/predict.md): which numbers,
measured at 0, 5, 10, 25 and 100 % of their training, order them by their OOD
error at the end. It trains nothing and needs no TensorFlow.
"""

from pathlib import Path
from typing import Any

from tfcomp.config.command import Command
from tfcomp.config.errors import ConfigError
from tfcomp.config.run_config import split_names
from tfcomp.storage.files import make_folder
from tfcomp.storage.output_folders import check_folder
from tfcomp.storage.run_folder import find_folders

TABLE = "networks.csv.xz"
FLAGS = {
    "runs": ("", f"The folder of a study, with {TABLE}."),
    "output": ("prediction", "The folder for the tables."),
    "fresh": (
        "",
        "A study with the same hyperparameters that nothing was chosen on: "
        "what early numbers add for one decoder is tried on it.",
    ),
}


def judge(settings: dict[str, Any]) -> int:
    """Judges the networks of one study; prints the predictors' scores."""
    check_folder("output", settings["output"])
    runs = find_table("runs", settings["runs"])
    fresh = settings["fresh"] and find_table("fresh", settings["fresh"])
    # Imported here: bad flags must be answered without SciPy.
    from tfcomp.studies.prediction.early_numbers import DECODER, read_networks
    from tfcomp.studies.prediction.report import write_report

    found, others = read_networks(runs), fresh and read_networks(fresh)
    halves = (found.get_half(half).table for half in ("explore", "confirm"))
    if min(table[DECODER].nunique() for table in halves) < 2:
        rule = "must have two decoders in each half that reached the target"
        raise ConfigError("runs", rule, settings["runs"])
    if others and others.hyperparameters != found.hyperparameters:
        rule = "must vary the hyperparameters of --runs, in their order"
        raise ConfigError("fresh", rule, settings["fresh"])
    output = make_folder(Path(settings["output"]))
    lines = write_report(output, found, others or None)
    reached = found.table["reached"].sum()
    print(f"{len(found.table)} networks, {reached} reached the target")
    print("\n".join([*lines, f"tables   {output}"]))
    return 0


def find_table(flag: str, place: str) -> Path:
    """Returns the table of the one study of a place, else ConfigError."""
    folders = find_folders(split_names(place), lambda names: TABLE in names)
    if len(folders) != 1:
        rule = f"must match one prediction study, not {len(folders)}"
        raise ConfigError(flag, rule, place)
    return folders[0] / TABLE


main = Command(__doc__, FLAGS, judge)
