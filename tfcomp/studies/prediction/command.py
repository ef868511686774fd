"""Which early number predicts how a network will generalize?

    tfcomp study prediction predict --workers=2

trains the networks of a design, every combination of the values of --grid
with several seeds, to one ID error (--target); measures them at 0, 5, 10, 25
and 100 % of their training; and judges which measures order them by their OOD
error at the end. Half of the design is held back until --confirm. Networks
that are trained survive an interruption: the same command goes on.

    tfcomp study prediction --runs=docs/predict_evidence --output=prediction

trains nothing: it judges the networks of a finished study again, from its
folder or from packed evidence, and needs no TensorFlow.
"""

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from absl import flags

from tfcomp.config import run_flags
from tfcomp.config.errors import ConfigError
from tfcomp.config.run_config import RunConfig, make_config, split_names
from tfcomp.models.config_checks import list_announcements
from tfcomp.storage.files import read_csv, write_csv
from tfcomp.storage.output_folders import check_folder
from tfcomp.storage.run_search import find_folders
from tfcomp.studies import Study
from tfcomp.studies.claims.packed_evidence import PREDICTION_FLAGS, unpack
from tfcomp.studies.prediction import design
from tfcomp.studies.prediction.design import HALVES, Cell, Found
from tfcomp.studies.records import Records
from tfcomp.sweeps.grid import GRID, parse_grid
from tfcomp.sweeps.scheduler_options import SchedulerOptions, is_here
from tfcomp.sweeps.workload import Workload, run_as_asked

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


@dataclass(frozen=True)
class PredictionStudy(Workload):
    """All networks of a study, as docs/predict.md describes its folder."""

    kind = "prediction study"
    noun = "settings"
    flags_name = "predict.flags"

    items: Sequence[Cell]
    settings: design.PredictSettings
    hyperparameters: Sequence[tuple[str, ...]]

    @property
    def records(self) -> Records:
        """Its networks."""
        return design.open_records(self.folder, self.settings.target)

    @property
    def found(self) -> list[Found]:
        """Those that are recorded."""
        records = self.records
        return [
            Found(cell, run.training.seed, record, records.locate(run).stem)
            for cell in self.items
            for run in cell.make_configs()
            if (record := records.read(run)) is not None
        ]

    def is_finished(self, cell: Cell) -> bool:
        """Whether all networks of a setting are recorded."""
        read = self.records.read
        return all(read(config) is not None for config in cell.make_configs())

    def make_command(self, cell: Cell) -> list[str]:
        """The process of a setting (`one_cell`)."""
        command = [sys.executable, "-m", "tfcomp.studies.prediction.one_cell"]
        command += run_flags.list_flag_lines(cell.config)
        return command + run_flags.list_flag_lines(self.settings)

    def get_config(self, cell: Cell) -> RunConfig:
        """A run like its networks."""
        return cell.config

    def write_tables(self, failures: Mapping[str, str]) -> None:
        """Writes the table of networks."""
        names = "reached steps id_relative_mse ood_relative_mse".split()
        rows = [
            {
                "half": found.cell.half,
                **found.cell.setting,
                "seed": found.seed,
                **{name: found.record.get(name) for name in names},
                "record": found.name,
            }
            for found in self.found
        ]
        if rows:
            write_csv(self.folder / "networks.csv", rows)

    def write_reports(self) -> None:
        """Judges the measures; writes tables and figures."""
        # Imported here: bad flags must be answered without SciPy.
        from tfcomp.studies.prediction.predict_report import write_report

        write_report(self.folder, self.found, self.hyperparameters)


def predict(values: dict[str, Any]) -> int:
    """Trains what is missing, judges, prints what predicts."""
    if values["runs"]:
        return judge_recorded(values)
    if values["fresh"]:
        raise ConfigError("fresh", "goes with --runs", values["fresh"])
    study, failures = run_as_asked(make_study, values)
    found, target = study.found, study.settings.target
    reached = sum(each.record["reached"] for each in found)
    print(f"\n{len(found)} networks, {reached} reached {target:g}")
    print("\n".join(describe_answer(study.folder, study.settings.confirm)))
    print(f"tables   {study.folder}")
    for line in study.describe_failures(failures):
        print(f"failed   {line}", file=sys.stderr)
    return 1 if failures else 0


def judge_recorded(values: dict[str, Any]) -> int:
    """Judges the recorded networks of one study; prints what predicts.

    Raises ConfigError without such a study, or a folder to write.
    """
    output = Path(values["output"])
    check_folder("output", str(output))
    axes, found = read_study("runs", values["runs"])
    fresh = []
    if values["fresh"]:
        others, fresh = read_study("fresh", values["fresh"])
        if others != axes:
            rule = "must vary the hyperparameters of --runs, in their order"
            raise ConfigError("fresh", rule, values["fresh"])
    # Imported here: bad flags must be answered without SciPy.
    from tfcomp.studies.prediction.forecast_report import describe_forecasts
    from tfcomp.studies.prediction.predict_report import write_report

    output.mkdir(parents=True, exist_ok=True)
    write_report(output, found, axes, fresh)
    is_confirmed = (output / f"{HALVES[1]}.csv").exists()
    reached = sum(each.record["reached"] for each in found)
    print(f"{len(found)} networks, {reached} reached the target")
    print("\n".join(describe_answer(output, is_confirmed)))
    print("\n".join([*describe_forecasts(output), f"tables   {output}"]))
    return 0


def read_study(
    flag: str, place: str
) -> tuple[list[tuple[str, ...]], list[Found]]:
    """The hyperparameters and the networks of the one study of a place.

    Raises ConfigError if there is none, or several.
    """
    with unpack(split_names(place)) as places:
        folders = find_folders(places, lambda names: PREDICTION_FLAGS in names)
        if len(folders) != 1:
            rule = f"must match one prediction study, not {len(folders)}"
            raise ConfigError(flag, rule, place)
        return design.read_found(folders[0])


def define_flags() -> flags.FlagValues:
    """The flags of a run, those of a study, and where its networks train."""
    values = run_flags.make_flags(GRID | RECORDED, run_flags.define_run_flags())
    values.set_default("run_name", "predict")
    run_flags.define_settings(design.PredictSettings.list_settings(), values)
    run_flags.define_settings(SchedulerOptions.list_settings(), values)
    return values


def make_study(values: dict[str, Any]) -> PredictionStudy:
    """The study that the flags describe; writes nothing.

    Raises ConfigError if a flag or a combination breaks a rule.
    """
    settings = design.PredictSettings.from_flags(values)
    base = make_config(values)
    axes, seeds = (
        design.list_hyperparameters(values["grid"]),
        settings.all_seeds,
    )
    cells, notes, here = [], {}, is_here(values)
    for varied in parse_grid(values["grid"], len(seeds), base.plugins):
        config = make_config({**values, **varied, "seed": seeds[0]})
        if config.data.region == "none":
            raise ConfigError("region", "must hold out combinations", "none")
        notes |= dict.fromkeys(list_announcements(config, here))
        cells.append(Cell(varied, config, seeds))
    for note in notes:
        print(note)
    if not settings.confirm:
        cells = [cell for cell in cells if cell.half == HALVES[0]]
    lines = [f"--grid={spec}" for spec in values["grid"]]
    lines += [*run_flags.list_flag_lines(settings), ""]
    text = run_flags.format_flags(base) + "\n".join(lines)
    return PredictionStudy(Path(base.run_dir), cells, text, settings, axes)


def describe_answer(folder: Path, confirm: bool) -> list[str]:
    """What predicts, or without `confirm` is proposed, in a line each."""
    column = "predicts" if confirm else "passes"
    word = "predicts" if confirm else "is proposed"
    file = folder / f"{HALVES[confirm]}.csv"
    chosen = [
        f"{row['measure']} at {float(row['time']):.0%} {word}: tau "
        f"{float(row['tau']):.2f} [{float(row['tau_low']):.2f}, "
        f"{float(row['tau_high']):.2f}]"
        for row in (read_csv(file) if file.exists() else ())
        if row[column] == "True"
    ]
    return chosen or ["no measure passes the rules"]


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
