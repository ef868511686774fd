"""Formats in which `tfcomp export` writes a model: SavedModel and Keras.

A plugin registers more. A file takes `factors` [n, F], float32 and any n, and
has one output per stage, by its name; the last one is `image` [n, H, W, C].
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from tfcomp.config.errors import ConfigError
from tfcomp.config.plugins import Registry
from tfcomp.storage.files import replace_folder

if TYPE_CHECKING:
    from tfcomp.models.loading import LoadedRun

FORMATS = Registry("format")


@dataclass(frozen=True)
class Format:
    """A format of `tfcomp export`.

    Attributes:
        write: `write(run, path)` writes the model of a `LoadedRun`.
        call: Python code that draws `image` for `factors`, run in the folder
            that has a folder of each format; it goes into the model's card.
        file: The name of what is written; empty if that is the folder.
        packages: Modules that `write` and `call` import, and what pip calls
            them.
    """

    write: Callable[[LoadedRun, Path], None]
    call: str
    file: str = ""
    packages: Mapping[str, str] = field(default_factory=dict)


def check_formats(names: Sequence[str]) -> None:
    """Raises a ConfigError for unknown formats and for missing packages."""
    if not names:
        formats = ", ".join(FORMATS.names())
        raise ConfigError("format", f"must name some of {formats}", "")
    for name in names:
        model_format = FORMATS.get(name).load()
        packages = model_format.packages
        missing = []
        for module, package in packages.items():
            if not find_spec(module):
                missing.append(package)
        if missing:
            command = " ".join(missing)
            rule = f"needs packages (pip install {command})"
            raise ConfigError("format", rule, name)


def write_format(run: LoadedRun, name: str, folder: Path) -> Path:
    """Writes a model in a format.

    Args:
        run: The run with the model.
        name: The name of the format.
        folder: Where a folder of this name is replaced.

    Returns:
        The file.

    Raises:
        RunError: If the format cannot write the model.
    """
    model_format: Format = FORMATS.get(name).load()
    file = model_format.file
    with replace_folder(folder, name) as partial:
        model_format.write(run, partial / file)
    return folder / name / file


def write_saved_model(run: LoadedRun, path: Path) -> None:
    """Writes a SavedModel with its three signatures.

    Args:
        run: The run with the model.
        path: The folder to write.
    """
    from tfcomp.metrics.jacobians import choose_jacobian
    from tfcomp.training.export import write_archive

    jacobian_fn = choose_jacobian(run.model, run.dataset)
    write_archive(run.model, path, jacobian_fn)


def write_keras(run: LoadedRun, path: Path) -> None:
    """Writes a file of Keras.

    Args:
        run: The run with the model.
        path: The file to write.
    """
    run.model.save(path)


SAVED_MODEL_CALL = """
import tensorflow as tf

model = tf.saved_model.load("saved_model")
ask = model.signatures["serving_default"]
image = ask(factors=tf.constant(factors))["image"]"""

KERAS_CALL = """
from tfcomp.models.loading import load_model

image = load_model("keras/model.keras")(factors)"""

FORMATS.register(
    "saved_model",
    Format(
        write=write_saved_model,
        call=SAVED_MODEL_CALL,
    ),
)
FORMATS.register(
    "keras",
    Format(
        write=write_keras,
        call=KERAS_CALL,
        file="model.keras",
    ),
)
