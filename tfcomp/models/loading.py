"""Loads finished runs, within limits on their files."""

import importlib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import keras

from tfcomp.config.errors import RunError, is_exhausted
from tfcomp.config.plugins import admit_plugins
from tfcomp.config.run_config import RunConfig
from tfcomp.datasets import Dataset, make_dataset
from tfcomp.storage import run_folder
from tfcomp.storage.files import DamagedFileError


@dataclass(frozen=True)
class LoadedRun:
    """A finished run."""

    path: Path | None  # its folder; None for a model trained elsewhere
    config: RunConfig
    dataset: Dataset
    model: keras.Model
    metrics: dict[str, Any]  # the content of `metrics.json`
    description: str  # of the model and its data, in words
    reader: Any = None  # a `Reader`, if one was given
    # More results by name, each a list of rows.
    tables: dict[str, list[dict[str, Any]]] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """The name of the run."""
        return self.config.run_name


def load_run(path: str | Path) -> LoadedRun:
    """Loads a finished run; RunError if a file is missing or damaged."""
    path = Path(path)
    config = run_folder.check_run(path)
    model_file = path / run_folder.MODEL_FILE
    importlib.import_module("tfcomp.models.keras_objects")
    admit_plugins(path, config.plugins)
    try:
        metrics = run_folder.read_metrics(path)
        model = load_model(model_file)
    except Exception as error:  # damaged files raise errors of many kinds
        if is_exhausted(error):
            raise
        rule = "has a model that would run code (Lambda), which is refused"
        if "safe_mode" not in str(error):  # of Keras
            if not isinstance(error, DamagedFileError):
                error = DamagedFileError(model_file, error)
            command = run_folder.describe_resume(path)
            rule = f"is damaged: {error}: repair it with {command}"
        raise RunError(f"--run={path} {rule}") from error
    dataset = make_dataset(config)
    dataset.prepare()
    text = run_folder.read_flags_text(path)
    return LoadedRun(path, config, dataset, model, metrics, text)


def load_model(path: Path) -> keras.Model:
    """Loads a Keras file after checking what it unpacks to."""
    run_folder.check_model(path)
    return keras.models.load_model(path)
