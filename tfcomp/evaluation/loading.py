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
from tfcomp.evaluation.loading_limits import limit_weights
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
    description: str  # what the model and its data are, in words

    @property
    def name(self) -> str:
        """The name of the run."""
        return self.config.run_name


def load_run(path: str | Path) -> LoadedRun:
    """Loads a finished run; RunError as of `check_run`, or if a file is damaged
    or would run code, or if plugins that the run asks for are not imported;
    OSError if the system has no room for temporary files."""
    path = Path(path)
    config = run_folder.check_run(path)
    model_file = path / run_folder.MODEL_FILE
    importlib.import_module("tfcomp.models.keras_objects")
    admit_plugins(path, config.plugins)
    try:
        metrics = run_folder.read_metrics(path)
        run_folder.check_model(model_file)
        with limit_weights(model_file):
            model = keras.models.load_model(model_file)
    except Exception as error:  # whatever a damaged file leads to
        if is_exhausted(error):
            raise
        if "safe_mode" in str(error):  # of Keras; nothing here writes such
            rule = "has a model that would run code (Lambda), which is refused"
            raise RunError(f"--run={path} {rule}") from error
        if not isinstance(error, DamagedFileError):
            error = DamagedFileError(model_file, error)
        command = run_folder.describe_resume(path)
        rule = f"is damaged: {error}: repair it with {command}"
        raise RunError(f"--run={path} {rule}") from error
    dataset = make_dataset(config)
    dataset.prepare()
    text = run_folder.read_flags_text(path)
    return LoadedRun(path, config, dataset, model, metrics, text)
