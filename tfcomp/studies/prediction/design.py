"""The design of a study, settings, half of them held back; what is recorded.

Records hold no times: a study that was killed ends in the same bytes.
"""

import dataclasses
import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from tfcomp.config.errors import ConfigError
from tfcomp.config.run_config import RunConfig
from tfcomp.config.settings import setting
from tfcomp.storage.files import read_csv, read_json, read_text
from tfcomp.studies.records import Record, Records
from tfcomp.sweeps.grid import SeedSettings, parse_grid

DECODER = "model"
HALVES = ("explore", "confirm")
# When networks are measured, as shares of the steps to the target.
TIMES = (0.0, 0.05, 0.1, 0.25, 1.0)
# Before the name of a number: does it look at held-out combinations?
ID_ONLY, ALL_POINTS = "id.", "all."
# What trains a network and measures it, beside what decides a run.
MODULES = (
    "tfcomp.studies.prediction.network_training",
    "tfcomp.studies.prediction.design",
)


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
class Cell:
    """The networks of one setting, which one process trains."""

    setting: dict[str, Any]  # the flags that the study varies
    config: RunConfig | None  # of the first seed; None without a training
    seeds: Sequence[int]

    @property
    def name(self) -> str:
        """A hash of the setting."""
        text = json.dumps(self.setting, sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    @property
    def half(self) -> str:
        """Which half of the design it is in, by its hash."""
        return HALVES[int(self.name, 16) % 2]

    def describe(self) -> str:
        """The setting in one line."""
        return " ".join(f"{name}={v}" for name, v in self.setting.items())

    def make_configs(self) -> list[RunConfig]:
        """The runs of its networks."""
        replace, training = dataclasses.replace, self.config.training
        trainings = [replace(training, seed=seed) for seed in self.seeds]
        return [replace(self.config, training=each) for each in trainings]


def list_hyperparameters(specs: Sequence[str]) -> list[tuple[str, ...]]:
    """The hyperparameters of a grid; flags that vary together are one.

    Raises ConfigError if none of them is the decoder.
    """
    axes = [
        tuple(name.strip() for name in spec.partition("=")[0].split("/"))
        for spec in specs
    ]
    if not any(DECODER in axis for axis in axes):
        rule = f"must vary {DECODER}: measures are judged across decoders"
        raise ConfigError("grid", rule, list(specs))
    return axes


class Found(NamedTuple):
    """A network that is recorded, and the name of its file."""

    cell: Cell
    seed: int
    record: Record
    name: str


def open_records(folder: Path, target: float) -> Records:
    """The networks of a study that are trained to a target."""
    return Records(folder / "networks", MODULES, target)


def read_found(folder: Path) -> tuple[list[tuple[str, ...]], list[Found]]:
    """The hyperparameters and networks of a finished study of any version.

    Raises DamagedFileError or OSError if a file is damaged or missing.
    """
    lines = read_text(folder / "predict.flags").splitlines()
    grid = [ln.removeprefix("--grid=") for ln in lines if "--grid=" in ln]
    axes = list_hyperparameters(grid)
    names = [name for axis in axes for name in axis]
    cells = {
        tuple(str(setting[name]) for name in names): Cell(setting, None, ())
        for setting in parse_grid(grid)
    }
    found = []
    for row in read_csv(folder / "networks.csv"):
        cell = cells[tuple(row[name] for name in names)]
        record = read_json(folder / "networks" / f"{row['record']}.json")
        found.append(Found(cell, int(row["seed"]), record, row["record"]))
    return axes, found
