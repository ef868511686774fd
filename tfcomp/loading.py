"""Loading a finished run for analysis."""

from __future__ import annotations

import dataclasses
import importlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import keras

from tfcomp.config import RunConfig
from tfcomp.config import make_config
from tfcomp.datasets import Dataset
from tfcomp.datasets import make_dataset
from tfcomp.errors import ConfigError
from tfcomp.errors import RunError
from tfcomp.registry import import_plugins
from tfcomp.run_flags import define_run_flags
from tfcomp.run_flags import parse_flags
from tfcomp.run_folder import FLAGS_FILE
from tfcomp.run_folder import METRICS_FILE
from tfcomp.run_folder import MODEL_FILE


@dataclass(frozen=True)
class LoadedRun:
    """A finished run.

    Attributes:
        path: Its folder.
        config: Its settings.
        dataset: Its data, made again from the settings.
        model: The trained model, float32.
        metrics: The content of `metrics.json`.
    """

    path: Path
    config: RunConfig
    dataset: Dataset
    model: keras.Model
    metrics: dict[str, Any]

    @property
    def name(self) -> str:
        """The name of the run."""
        return self.config.run_name


def check_run(path: str | Path) -> RunConfig:
    """Reads the settings of a finished run, without TensorFlow.

    Raises:
        RunError: If the folder is not a run, is of another version, or the
            run is not finished; one line.
    """
    path = Path(path)
    if not path.is_dir():
        raise RunError(f"--run must be a run folder, {path} does not exist")
    if not (path / FLAGS_FILE).exists():
        raise RunError(f"--run must be a run folder, {path} has no run.flags")
    flags = [f"--flagfile={(path / FLAGS_FILE).resolve()}"]
    try:
        config = make_config(parse_flags(flags, define_run_flags()))
    except (ConfigError, RunError) as error:
        raise RunError(
            f"--run={path} is of another version of tfcomp ({error})"
        ) from error
    for name in (METRICS_FILE, MODEL_FILE):
        if not (path / name).exists():
            raise RunError(
                f"--run={path} is not finished, it has no {name}: go on with "
                f"python -m tfcomp.train --flagfile={path / FLAGS_FILE} "
                "--resume"
            )
    return dataclasses.replace(config, log_dir=str(path.parent))


def load_run(path: str | Path) -> LoadedRun:
    """Loads a finished run.

    Raises:
        RunError: As `check_run`, or if a file is damaged.
    """
    path = Path(path)
    config = check_run(path)
    importlib.import_module("tfcomp.keras_objects")
    import_plugins(config.plugins)
    try:
        model = keras.models.load_model(path / MODEL_FILE)
        metrics = json.loads((path / METRICS_FILE).read_text())
    except Exception as error:  # whatever a damaged file leads to
        reason = str(error).splitlines()[0]
        raise RunError(f"--run={path} is damaged: {reason}") from error
    return LoadedRun(path, config, make_dataset(config), model, metrics)
