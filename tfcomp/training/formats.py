"""Writes a model in the formats of other programs, by `keras.Model.export`.

A file takes `factors` [n, F], float32 and any n, and has one output per stage,
by its name; the last one is `image` [n, H, W, C].
"""

from __future__ import annotations

import tomllib
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from tfcomp.config.errors import ConfigError
from tfcomp.storage.files import replace_folder

if TYPE_CHECKING:
    from tfcomp.evaluation.loading import LoadedRun


@dataclass(frozen=True)
class Format:
    """A format, as `templates/formats.toml` explains it."""

    file: str
    call: str
    packages: dict[str, str] = field(default_factory=dict)


def check_formats(names: Sequence[str]) -> None:
    """Raises a ConfigError for unknown formats and for missing packages."""
    known = ", ".join(FORMATS)
    if not names:
        raise ConfigError("format", f"must name some of {known}", "")
    for name in names:
        if name not in FORMATS:
            raise ConfigError("format", f"must be among {known}", name)
        packages = FORMATS[name].packages
        missing = [packages[p] for p in packages if not find_spec(p)]
        if missing:
            rule = f"needs packages (pip install {' '.join(missing)})"
            raise ConfigError("format", rule, name)


def write_format(run: LoadedRun, name: str, folder: Path) -> Path:
    """Writes a run's model to `folder / name`; returns the path of the file.

    Raises:
        RunError: Keras cannot write the model in this format.
    """
    file = FORMATS[name].file
    with replace_folder(folder, name) as partial:
        _write(run, name, partial / file)
    return folder / name / file


def _write(run: LoadedRun, name: str, path: Path) -> None:
    from tfcomp.evaluation.derivatives import choose_jacobian
    from tfcomp.models.stages import make_stage_model
    from tfcomp.training import export, torch_file

    if name == "saved_model":
        jacobian_fn = choose_jacobian(run.model, run.dataset.space)
        export.write_archive(run.model, path, jacobian_fn)
    elif name == "keras":
        run.model.save(path)
    elif name == "torch":
        torch_file.write_torch(run, path)
    else:
        stages = make_stage_model(run.model)
        stages(run.dataset.splits.grid[:1])  # Keras exports what was called
        with warnings.catch_warnings(action="ignore"):  # of the converters
            stages.export(str(path), format=name, verbose=False)


_TABLE = Path(__file__).with_name("templates") / "formats.toml"
FORMATS = {
    name: Format(**row)
    for name, row in tomllib.loads(_TABLE.read_text("utf-8")).items()
}
