"""What is known of every network: a file each, which makes a study resumable.

A file is named by a hash of what decides its content, the flags and the code,
and holds no times, so that a study that was killed ends in the same bytes.
"""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from tfcomp.config.run_config import RunConfig
from tfcomp.storage.code_version import compute_code_version, hash_modules
from tfcomp.storage.files import (
    DamagedFileError,
    read_csv,
    read_json,
    read_text,
    write_text,
)
from tfcomp.studies.prediction.design import Cell, list_hyperparameters
from tfcomp.sweeps.grid import parse_grid
from tfcomp.sweeps.trials import compute_hash

# What trains a network and measures it, beside what decides a run.
MODULES = (
    "tfcomp.studies.prediction.network_training",
    "tfcomp.studies.prediction.early_measures",
    "tfcomp.studies.prediction.predict_settings",
)
Record = dict[str, Any]


class Found(NamedTuple):
    """A network that is recorded, and the name of its file."""

    cell: Cell
    seed: int
    record: Record
    name: str


class Records:
    """The networks of a study, in a folder that need not exist."""

    def __init__(self, folder: Path, target: float) -> None:
        self.folder = folder
        self._target = target

    def read(self, config: RunConfig) -> Record | None:
        """What is known of a network; None if it is to be trained."""
        try:
            return read_json(self.locate(config))
        except (FileNotFoundError, DamagedFileError):
            return None

    def write(self, config: RunConfig, record: Record) -> None:
        """Records a network in one step."""
        self.folder.mkdir(parents=True, exist_ok=True)
        text = json.dumps(record, sort_keys=True, allow_nan=False) + "\n"
        write_text(self.locate(config), text)

    def locate(self, config: RunConfig) -> Path:
        """The file of a network."""
        version = compute_code_version(config.plugins) + hash_modules(MODULES)
        name = compute_hash(config, f"{version} {self._target!r}")
        return self.folder / f"{name}.json"


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
