"""The trials of a sweep: one run for each setting and seed."""

import dataclasses
import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tfcomp.config.run_config import RunConfig, make_config
from tfcomp.models.config_checks import list_announcements
from tfcomp.storage.code_version import compute_code_version
from tfcomp.sweeps.scheduler_options import is_here


@dataclass(frozen=True)
class Trial:
    """One run of a sweep.

    Attributes:
        setting: The flags that the sweep varies, without the seed.
        config: The run; its name is the hash of what it computes.
    """

    setting: dict[str, Any]
    config: RunConfig

    @property
    def name(self) -> str:
        """The hash that names the folders of the trial."""
        return self.config.run_name

    @property
    def seed(self) -> int:
        """Its seed."""
        return self.config.training.seed

    @property
    def path(self) -> Path:
        """Its run folder."""
        return Path(self.config.run_dir)

    def describe(self) -> str:
        """The trial in one line, as `depth=2 encoding=bump seed=0`."""
        named = {**self.setting, "seed": self.seed}
        return " ".join(f"{name}={value}" for name, value in named.items())


def make_trials(
    flags: Mapping[str, Any],
    settings: Sequence[dict[str, Any]],
    seeds: Sequence[int],
) -> tuple[list[Trial], list[str]]:
    """All trials, checked as far as that is possible without TensorFlow.

    Args:
        flags: The flags that all trials share; `run_name` is the sweep's.
        settings: The flags that differ, as `grid.parse_grid` gives them.
        seeds: Of every setting; its trials follow each other.

    Returns:
        The trials, and lines that a user should know.

    Raises:
        ConfigError: If a combination breaks a rule.
    """
    base = make_config(dict(flags))
    folder = Path(base.run_dir) / "trials"
    exports = os.path.join(base.export_dir, base.run_name)
    places = {"log_dir": str(folder), "export_dir": exports, "resume": True}
    trials, notes = [], {}
    for setting in settings:
        config = make_config({**flags, **setting, **places, "seed": seeds[0]})
        here = is_here(flags)
        notes |= dict.fromkeys(list_announcements(config, here))
        version = compute_code_version(config.plugins)
        trials += [
            Trial(setting, _place(config, seed, version)) for seed in seeds
        ]
    return trials, list(notes)


def compute_hash(config: RunConfig, code_version: str) -> str:
    """The name of a trial: 16 hex digits of what decides its numbers."""
    content = {"flags": config.identity(), "code": code_version}
    text = json.dumps(content, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _place(config: RunConfig, seed: int, version: str) -> RunConfig:
    training = dataclasses.replace(config.training, seed=seed)
    config = dataclasses.replace(config, training=training)
    return dataclasses.replace(config, run_name=compute_hash(config, version))
