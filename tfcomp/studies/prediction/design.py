"""The design of a study: settings, half of them held back."""

import dataclasses
import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tfcomp.config.errors import ConfigError
from tfcomp.config.run_config import RunConfig, make_config
from tfcomp.config.settings import setting
from tfcomp.models.config_checks import list_announcements
from tfcomp.sweeps.grid import parse_grid
from tfcomp.sweeps.scheduler_options import is_here
from tfcomp.sweeps.sweep_settings import SeedSettings

DECODER = "model"
HALVES = ("explore", "confirm")
# When networks are measured, as shares of the steps to the target.
TIMES = (0.0, 0.05, 0.1, 0.25, 1.0)
# Before the name of a number: does it look at held-out combinations?
ID_ONLY, ALL_POINTS = "id.", "all."


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
    """The networks of one setting, which one process trains.

    Attributes:
        setting: The flags that the study varies.
        config: A run with this setting and the first seed; None if nothing
            is to be trained.
    """

    setting: dict[str, Any]
    config: RunConfig | None
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
        training = self.config.training
        return [
            dataclasses.replace(
                self.config, training=dataclasses.replace(training, seed=seed)
            )
            for seed in self.seeds
        ]


def list_hyperparameters(specs: Sequence[str]) -> list[tuple[str, ...]]:
    """The hyperparameters of a grid; flags that vary together are one.

    Raises:
        ConfigError: If none of them is the decoder.
    """
    axes = [
        tuple(name.strip() for name in spec.partition("=")[0].split("/"))
        for spec in specs
    ]
    if not any(DECODER in axis for axis in axes):
        rule = f"must vary {DECODER}: measures are judged across decoders"
        raise ConfigError("grid", rule, list(specs))
    return axes


def list_cells(
    flags: Mapping[str, Any], seeds: Sequence[int]
) -> tuple[list[Cell], list[str]]:
    """All settings of a study, checked, and lines that a user should know.

    Raises:
        ConfigError: If a flag or a combination breaks a rule.
    """
    base = make_config(dict(flags))
    list_hyperparameters(flags["grid"])
    cells, notes = [], {}
    for varied in parse_grid(flags["grid"], len(seeds), base.plugins):
        config = make_config({**flags, **varied, "seed": seeds[0]})
        if config.data.region == "none":
            raise ConfigError("region", "must hold out combinations", "none")
        here = is_here(flags)
        notes |= dict.fromkeys(list_announcements(config, here))
        cells.append(Cell(varied, config, seeds))
    return cells, list(notes)
