"""Loads finished runs, within limits on their files."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import keras

from tfcomp.config.errors import RunError, is_exhausted
from tfcomp.config.plugins import CONTRIB, admit_plugins, import_modules
from tfcomp.config.run_config import RunConfig
from tfcomp.datasets import Dataset, make_dataset
from tfcomp.storage import run_folder
from tfcomp.storage.files import DamagedFileError

Row = dict[str, Any]


@dataclass(frozen=True)
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


def load_run(path: str | Path) -> LoadedRun:
    """Loads a finished run.

    Args:
        path: Its folder. Its plugins must be imported already.

    Raises:
        RunError: A file is missing, damaged, or of a stranger's code.
    """
    path = Path(path)
    config = run_folder.check_run(path)
    model_file = path / run_folder.MODEL_FILE
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
    return LoadedRun(
        path=path,
        config=config,
        dataset=dataset,
        model=model,
        metrics=metrics,
        description=text,
    )


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
