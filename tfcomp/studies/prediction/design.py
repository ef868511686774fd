"""The networks that a prediction study trains, half of them held back."""

import dataclasses
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tfcomp.config import run_flags
from tfcomp.config.errors import ConfigError
from tfcomp.config.plugins import import_plugins
from tfcomp.config.quiet import start_tensorflow
from tfcomp.config.run_config import RunConfig, make_config
from tfcomp.config.settings import setting
from tfcomp.models.config_checks import list_announcements
from tfcomp.storage.code_version import compute_code_version, hash_modules
from tfcomp.storage.files import (
    DamagedFileError,
    make_subfolder,
    read_json,
    write_table,
    write_text,
)
from tfcomp.studies.prediction.networks import (
    HALVES,
    TABLE,
    Networks,
    choose_half,
    make_row,
    read_networks,
)
from tfcomp.sweeps.grid import SeedSettings, Trial, compute_hash, parse_grid
from tfcomp.sweeps.scheduler_options import is_here
from tfcomp.sweeps.worker_task import TaskFunction
from tfcomp.sweeps.workload import Workload

TRAINER = "tfcomp.studies.prediction.network_training"


@dataclass(frozen=True)
class PredictSettings(SeedSettings):
    """How the networks of a study are trained, and which are judged."""

    target: float = setting(
        0.05,
        "The ID relative MSE that every network is trained to. It is looked "
        "at once an epoch; a network that misses it in --epochs is reported "
        "and not judged.",
        above=0.0,
    )
    confirm: bool = setting(
        False,
        "Also train the half of the design that is held back, and judge on "
        "it the measures that the other half has proposed. Do so once, when "
        "nothing is left to decide.",
    )


@dataclass(frozen=True)
class PredictionStudy(Workload):
    """All networks of a study; docs/predict.md describes its folder."""

    kind = "prediction study"
    noun = "settings"
    flags_name = "predict.flags"

    items: Sequence[Trial]
    settings: PredictSettings

    def is_finished(self, item: Trial) -> bool:
        """Checks whether all networks of a setting are recorded."""
        return all(map(is_recorded, list_runs(item.config, self.settings)))

    def make_call(self, item: Trial) -> tuple[TaskFunction, list[str]]:
        """Returns the function that trains a setting, and its arguments."""
        lines = run_flags.list_flag_lines(item.config)
        return main, lines + run_flags.list_flag_lines(self.settings)

    def get_config(self, item: Trial) -> RunConfig:
        """Returns the run of the first network of a setting."""
        return item.config

    def write_tables(self, failures: Mapping[str, str]) -> None:
        """Writes the table of all networks that are recorded."""
        rows = [
            make_row(item.setting, run.training.seed, read_json(locate(run)))
            for item in self.items
            for run in list_runs(item.config, self.settings)
            if is_recorded(run)
        ]
        if rows:
            import pandas as pd

            write_table(self.folder / TABLE, pd.DataFrame(rows))

    def write_reports(self) -> None:
        """Judges the numbers, and prints what predicts."""
        print_report(self.folder, read_networks(self.folder / TABLE))


def print_report(
    folder: Path, found: Networks, fresh: Networks | None = None
) -> None:
    """Writes tables and figures into a folder, and prints what they say."""
    # Imported here: bad flags must be answered without SciPy.
    from tfcomp.studies.prediction.report import write_report

    lines = write_report(folder, found, fresh)
    reached = found.table["reached"].sum()
    print(f"{len(found.table)} networks, {reached} reached the target")
    print("\n".join([*lines, f"tables   {folder}"]))


def main(argv: list[str]) -> None:
    """Trains and measures the networks of a setting that are not recorded.

    They share the functions that TensorFlow has traced.
    """
    known = run_flags.define_run_flags()
    run_flags.define_settings(PredictSettings.list_settings(), known)
    values = run_flags.parse_flags(argv[1:], known)
    config, settings = make_config(values), PredictSettings.from_flags(values)
    import_plugins(config.plugins)
    with start_tensorflow():
        import keras

        from tfcomp.studies.prediction.network_training import train_network

    keras.backend.clear_session()
    for run in list_runs(config, settings):
        if not is_recorded(run):
            record = train_network(run, settings.target)
            study = Path(run.log_dir)
            make_subfolder(study.parent, study.name)
            text = json.dumps(record, sort_keys=True, allow_nan=False)
            write_text(locate(run), f"{text}\n")


def list_runs(config: RunConfig, settings: PredictSettings) -> list[RunConfig]:
    """Returns the run of each seed; its name is a hash of what decides it."""
    code = compute_code_version(config.plugins) + hash_modules([TRAINER])
    version = f"{code} {settings.target!r}"
    runs = []
    for seed in settings.all_seeds:
        training = dataclasses.replace(config.training, seed=seed)
        run = dataclasses.replace(config, training=training)
        name = compute_hash(run, version)
        runs.append(dataclasses.replace(run, run_name=name))
    return runs


def is_recorded(config: RunConfig) -> bool:
    """Checks whether a network has an intact file."""
    try:
        return bool(read_json(locate(config)))
    except (FileNotFoundError, DamagedFileError):
        return False


def locate(config: RunConfig) -> Path:
    """Returns the file of a network."""
    return Path(f"{config.run_dir}.json")


def make_study(values: dict[str, Any]) -> PredictionStudy:
    """Returns the study that the flags describe; writes nothing.

    Raises:
        ConfigError: If a flag or a combination breaks a rule.
    """
    settings = PredictSettings.from_flags(values)
    base = make_config(values)
    points = parse_grid(values["grid"], settings.seeds, base.plugins)
    if "model" not in points[0]:
        rule = "must vary model: numbers are judged across decoders"
        raise ConfigError("grid", rule, values["grid"])
    folder = Path(base.run_dir)
    items: list[Trial] = []
    notes: dict[str, None] = {}
    for varied in points:
        config = make_config({**values, **varied})
        if config.data.region == "none":
            raise ConfigError("region", "must hold out combinations", "none")
        notes |= dict.fromkeys(list_announcements(config, is_here(values)))
        if not settings.confirm and choose_half(varied) != HALVES[0]:
            continue
        places = dataclasses.replace(config, log_dir=str(folder / "networks"))
        first = list_runs(places, settings)[0]
        items.append(Trial(varied, first))
    for note in notes:
        print(note)
    lines = [f"--grid={spec}" for spec in values["grid"]]
    lines += [*run_flags.list_flag_lines(settings), ""]
    text = run_flags.format_flags(base) + "\n".join(lines)
    return PredictionStudy(folder, items, text, settings)
