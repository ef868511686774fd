"""Loads finished runs, within limits on their files."""

import hashlib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import keras
import numpy as np

from tfcomp.config.errors import ConfigError, RunError, is_exhausted
from tfcomp.config.plugins import CONTRIB, admit_plugins, import_modules
from tfcomp.config.run_config import RunConfig
from tfcomp.datasets import Dataset, make_dataset
from tfcomp.storage import run_folder
from tfcomp.storage.files import DamagedFileError
from tfcomp.storage.run_folder import MODEL_FILE, WEIGHTS_HASH

Row = dict[str, Any]


@dataclass(frozen=True, repr=False)
class LoadedRun:
    """A finished run.

    Attributes:
        path: Its folder; None for a model trained elsewhere.
        config: Its settings.
        dataset: Its data.
        model: Its network.
        metrics: The content of `metrics.json`.
        description: The model and its data, in words.
        reader: A `Reader`, if one was given.
        tables: More results by name, each a list of rows.
    """

    path: Path | None
    config: RunConfig
    dataset: Dataset
    model: keras.Model
    metrics: dict[str, Any]
    description: str
    reader: Any = None
    tables: dict[str, list[Row]] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """The name of the run."""
        return self.config.run_name

    def __repr__(self) -> str:
        """Names the run, its model and its data, in three lines."""
        factors = []
        for factor in self.dataset.space:
            factors.append(f"{factor.name} ({factor.size})")
        place = self.path or "not of a run folder"
        count = self.model.count_params()
        return (
            f"LoadedRun {self.name} ({place})\n"
            f"model: {self.model.name}, {count:,} weights\n"
            f"data: {self.dataset.name} of {', '.join(factors)}; held out "
            f"{self.dataset.region.spec}"
        )


def load_run(path: str | Path) -> LoadedRun:
    """Loads a finished run.

    Args:
        path: Its folder. Its plugins must be imported already.

    Raises:
        RunError: A file is missing, damaged, of another run, or of a stranger's
            code.
    """
    path = Path(path)
    config = run_folder.check_run(path)
    model_file = path / MODEL_FILE
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
            rule = f"is damaged: {error}: {_describe_repair(path)}"
        raise RunError(f"--run={path} {rule}") from error
    _check_weights(path, model, metrics)
    dataset = _find_data(path, config)
    dataset.prepare()
    text = run_folder.read_flags_text(path)
    return LoadedRun(
        path=path,
        config=config,
        dataset=dataset,
        model=model,
        metrics=metrics,
        description=text,
    )


def _describe_repair(path: Path) -> str:
    command = run_folder.describe_resume(path)
    return f"remove this file, and repair the run with {command}"


def _check_weights(
    path: Path,
    model: keras.Model,
    metrics: dict[str, Any],
) -> None:
    """Refuses a model that does not belong to the scores of its run.

    Args:
        path: The run folder.
        model: The model in it.
        metrics: The content of `metrics.json`; runs of earlier versions have no
            hash of their weights.

    Raises:
        RunError: The weights are of another model, or not finite.
    """
    problem = ""
    file = path / MODEL_FILE
    digest = hash_weights(model)
    if metrics.get(WEIGHTS_HASH, digest) != digest:
        problem = "is not the model that metrics.json scores"
    for weight in model.trainable_weights:
        if not np.isfinite(weight).all():
            problem = "has weights that are not finite"
    if problem:
        raise RunError(f"--run: {file} {problem}: {_describe_repair(path)}")


def _find_data(path: Path, config: RunConfig) -> Dataset:
    """Makes the dataset of a run; says what to do if its file is elsewhere."""
    try:
        return make_dataset(config)
    except ConfigError as error:
        if error.name != "data":
            raise
        cure = "work in the folder where the run was trained, or correct"
        cure += f" the line --data in {path / run_folder.FLAGS_FILE}"
        raise RunError(f"--run={path}: {error}: {cure}") from error


def hash_weights(model: keras.Model) -> str:
    """Hashes all weights of a model, in any order, for `metrics.json`."""
    hashes = []
    for weight in model.get_weights():
        hashes.append(hashlib.sha256(weight.tobytes()).digest())
    # A user's layer may make its weights in another order when it is loaded.
    return hashlib.sha256(b"".join(sorted(hashes))).hexdigest()


def load_model(path: str | Path) -> keras.Model:
    """Loads a Keras file after checking its size.

    Args:
        path: The file, which may have layers of tfcomp.

    Raises:
        DamagedFileError: It would fill the memory.
    """
    run_folder.check_model(Path(path))
    import_layers()
    return keras.models.load_model(path)


def import_layers() -> None:
    """Imports all modules of models: saved ones have classes of any."""
    import_modules("tfcomp.models")
    import_modules(CONTRIB, nested=True)
