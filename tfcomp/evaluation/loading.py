"""Loading a finished run for analysis."""

import importlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import keras

from tfcomp.config.errors import RunError, is_exhausted
from tfcomp.config.plugins import admit_plugins
from tfcomp.config.run_config import RunConfig
from tfcomp.datasets import Dataset, make_dataset
from tfcomp.storage.files import DamagedFileError
from tfcomp.storage.run_folder import (
    FLAGS_FILE,
    MODEL_FILE,
    check_model,
    check_run,
    describe_resume,
    read_metrics,
)


@dataclass(frozen=True)
class LoadedRun:
    """A finished run.

    Attributes:
        path: Its folder; None for a model that was trained elsewhere.
        metrics: The content of `metrics.json`.
        description: What the model and its data are, in words.
    """

    path: Path | None
    config: RunConfig
    dataset: Dataset
    model: keras.Model
    metrics: dict[str, Any]
    description: str

    @property
    def name(self) -> str:
        """The name of the run."""
        return self.config.run_name


def load_run(path: str | Path) -> LoadedRun:
    """Loads a finished run.

    Raises:
        RunError: As `check_run`, or if a file is damaged or would run code,
            or if the run asks for plugins that are not imported.
        OSError: If the system has no room for temporary files.
    """
    path = Path(path)
    config = check_run(path)
    importlib.import_module("tfcomp.models.keras_objects")
    admit_plugins(path, config.plugins)
    try:
        metrics = read_metrics(path)
        check_model(path / MODEL_FILE)
        model = keras.models.load_model(path / MODEL_FILE)
    except Exception as error:  # whatever a damaged file leads to
        if is_exhausted(error):
            raise
        if "safe_mode" in str(error):  # of Keras; nothing here writes such
            rule = "has a model that would run code (Lambda), which is refused"
            raise RunError(f"--run={path} {rule}") from error
        if not isinstance(error, DamagedFileError):
            error = DamagedFileError(path / MODEL_FILE, error)
        rule = f"is damaged: {error}: repair it with {describe_resume(path)}"
        raise RunError(f"--run={path} {rule}") from error
    dataset = make_dataset(config)
    dataset.prepare()
    text = (path / FLAGS_FILE).read_text("utf-8")
    return LoadedRun(path, config, dataset, model, metrics, text)
