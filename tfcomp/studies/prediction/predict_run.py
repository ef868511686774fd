"""A prediction study: how it runs, what is made of it.

The folder of a study has

predict.flags    every resolved flag; `--flagfile` of it repeats the study
networks/        a file for each network (see `records`)
logs/<cell>.log  what the processes print
networks.csv     settings, seeds and outcomes, also of those that missed the
                 target, and the names of their files
explore.csv      the statistics of every measure on the exploring half
confirm.csv      those of the proposed measures on the half held back
figures/         the two pictures, and the numbers that they show
"""

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tfcomp.config.run_config import RunConfig
from tfcomp.config.run_flags import list_flag_lines
from tfcomp.storage.files import read_csv, write_csv
from tfcomp.studies.prediction.design import HALVES, Cell
from tfcomp.studies.prediction.predict_settings import PredictSettings
from tfcomp.studies.prediction.records import Found, Records, collect
from tfcomp.sweeps.workload import Workload


@dataclass(frozen=True)
class PredictionStudy(Workload):
    """All networks of a study; an item is a setting with its seeds.

    Attributes:
        settings: How networks are trained and judged.
        hyperparameters: The axes of the design.
    """

    kind = "prediction study"
    noun = "settings"
    flags_name = "predict.flags"

    items: Sequence[Cell]
    settings: PredictSettings
    hyperparameters: Sequence[tuple[str, ...]]

    @property
    def records(self) -> Records:
        """Its networks."""
        return Records(self.folder / "networks", self.settings.target)

    def is_finished(self, cell: Cell) -> bool:
        """Whether all networks of a setting are recorded."""
        read = self.records.read
        return all(read(config) is not None for config in cell.make_configs())

    def make_command(self, cell: Cell) -> list[str]:
        """The process of a setting (`one_cell`)."""
        command = [sys.executable, "-m", "tfcomp.studies.prediction.one_cell"]
        lines = list_flag_lines(cell.config), list_flag_lines(self.settings)
        return [*command, *lines[0], *lines[1]]

    def get_config(self, cell: Cell) -> RunConfig:
        """A run like its networks."""
        return cell.config

    def write_tables(self, failures: Mapping[str, str]) -> None:
        """Writes the table of networks."""
        rows = list(map(_describe, collect(self.items, self.records)))
        if rows:
            write_csv(self.folder / "networks.csv", rows)

    def write_reports(self) -> None:
        """Judges the measures; writes tables and figures."""
        # Imported here: bad flags must be answered without SciPy.
        from tfcomp.studies.prediction.predict_report import write_report

        found = collect(self.items, self.records)
        write_report(self.folder, found, self.hyperparameters)

    def count_networks(self) -> tuple[int, int]:
        """How many networks are recorded, and how many met the target."""
        found = collect(self.items, self.records)
        return len(found), sum(each.record["reached"] for each in found)


def describe_answer(folder: Path, confirm: bool) -> list[str]:
    """What predicts, or without `confirm` is proposed, in a line each."""
    half, column, word = HALVES[0], "passes", "is proposed"
    if confirm:
        half, column, word = HALVES[1], "predicts", "predicts"
    file = folder / f"{half}.csv"
    chosen = [
        f"{row['measure']} at {float(row['time']):.0%} {word}: tau "
        f"{float(row['tau']):.2f} [{float(row['tau_low']):.2f}, "
        f"{float(row['tau_high']):.2f}]"
        for row in (read_csv(file) if file.exists() else ())
        if row[column] == "True"
    ]
    return chosen or ["no measure passes the rules"]


def _describe(found: Found) -> dict[str, Any]:
    names = "reached steps id_relative_mse ood_relative_mse".split()
    return {
        "half": found.cell.half,
        **found.cell.setting,
        "seed": found.seed,
        **{name: found.record.get(name) for name in names},
        "record": found.name,
    }
