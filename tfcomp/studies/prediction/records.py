"""What is known of every network.

Its record holds no times, so that a study that was killed ends in the same
bytes.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from tfcomp.storage.files import read_csv, read_json, read_text
from tfcomp.studies.prediction.design import Cell, list_hyperparameters
from tfcomp.studies.records import Record, Records
from tfcomp.sweeps.grid import parse_grid

# What trains a network and measures it, beside what decides a run.
MODULES = (
    "tfcomp.studies.prediction.network_training",
    "tfcomp.studies.prediction.design",
)


class Found(NamedTuple):
    """A network that is recorded, and the name of its file."""

    cell: Cell
    seed: int
    record: Record
    name: str


def open_records(folder: Path, target: float) -> Records:
    """The networks of a study that are trained to a target."""
    return Records(folder / "networks", MODULES, target)


def collect(cells: Sequence[Cell], records: Records) -> list[Found]:
    """The networks that are recorded."""
    return [
        Found(cell, config.training.seed, record, records.locate(config).stem)
        for cell in cells
        for config in cell.make_configs()
        if (record := records.read(config)) is not None
    ]


def read_found(folder: Path) -> tuple[list[str], list[Found]]:
    """The grid of a finished study and its networks, by any version's code.

    Raises:
        DamagedFileError: If a file is damaged.
        OSError: If one is missing.
    """
    lines = read_text(folder / "predict.flags").splitlines()
    grid = [ln.removeprefix("--grid=") for ln in lines if "--grid=" in ln]
    names = [name for axis in list_hyperparameters(grid) for name in axis]
    cells = {
        tuple(str(setting[name]) for name in names): Cell(setting, None, ())
        for setting in parse_grid(grid)
    }
    found = []
    for row in read_csv(folder / "networks.csv"):
        cell = cells[tuple(row[name] for name in names)]
        record = read_json(folder / "networks" / f"{row['record']}.json")
        found.append(Found(cell, int(row["seed"]), record, row["record"]))
    return grid, found
