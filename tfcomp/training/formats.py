"""Writes a model in the formats of other programs, by `keras.Model.export`.

A file takes `factors` [n, F], float32 and any n, and has one output per stage,
by its name; the last one is `image` [n, H, W, C]. Keras has one backend per
process, and tfcomp uses TensorFlow, so PyTorch has a process of its own:

    KERAS_BACKEND=torch python -m tfcomp.training.formats IN.keras OUT.pt2
"""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
import tempfile
import tomllib
import warnings
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from tfcomp.config.errors import ConfigError, RunError, first_line
from tfcomp.config.run_config import split_names
from tfcomp.storage.files import replace_folder

if TYPE_CHECKING:
    from tfcomp.models.loading import LoadedRun


def check_formats(names: Sequence[str]) -> None:
    """Raises a ConfigError for unknown formats and for missing packages."""
    known = ", ".join(FORMATS)
    if not names:
        raise ConfigError("format", f"must name some of {known}", "")
    for name in names:
        if name not in FORMATS:
            raise ConfigError("format", f"must be among {known}", name)
        packages = FORMATS[name].get("packages", {})
        missing = [packages[p] for p in packages if not find_spec(p)]
        if missing:
            rule = f"needs packages (pip install {' '.join(missing)})"
            raise ConfigError("format", rule, name)


def write_format(run: LoadedRun, name: str, folder: Path) -> Path:
    """Writes `folder / name`, and returns the file; RunError if Keras fails."""
    from tfcomp.metrics.jacobians import choose_jacobian
    from tfcomp.models.stages import make_stage_model
    from tfcomp.training.export import write_archive

    file = FORMATS[name]["file"]
    with replace_folder(folder, name) as partial:
        path = partial / file
        if name == "saved_model":
            jacobian_fn = choose_jacobian(run.model, run.dataset)
            write_archive(run.model, path, jacobian_fn)
        elif name == "keras":
            run.model.save(path)
        elif name == "torch":
            _start_torch(run, path)
        else:
            stages = make_stage_model(run.model)
            stages(run.dataset.splits.grid[:1])  # Keras exports called models
            try:
                with warnings.catch_warnings(action="ignore"):
                    stages.export(str(path), format=name, verbose=False)
            except Exception as error:  # converters have errors of all kinds
                raise _make_error(name, first_line(error)) from error
    return folder / name / file


def _make_error(name: str, reason: str) -> RunError:
    return RunError(f"--format={name}: Keras cannot write it ({reason[:150]})")


def _start_torch(run: LoadedRun, path: Path) -> None:
    """Starts the process that writes a PyTorch program."""
    # "" is the current folder, in which plugins are looked for last.
    places = os.pathsep.join(place or os.getcwd() for place in sys.path)
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder, "model.keras")
        run.model.save(source)
        process = subprocess.run(
            [sys.executable, "-P", "-m", "tfcomp.training.formats"]
            + [source, path, *split_names(run.config.plugins)],
            env=os.environ | {"PYTHONPATH": places, "KERAS_BACKEND": "torch"},
            capture_output=True,
            text=True,
        )
    if process.returncode:
        lines = process.stderr.strip().splitlines() or ["no reason given"]
        raise _make_error("torch", lines[-1])


def write_torch(source: str, path: str, *plugins: str) -> None:
    """Converts a Keras file to a PyTorch program (`.pt2`)."""
    import keras
    import torch

    for module in ("tfcomp.models.keras_objects", *plugins):
        importlib.import_module(module)
    stages = importlib.import_module("tfcomp.models.stages")
    model = keras.models.load_model(source, compile=False)
    sizes = {0: torch.export.Dim("n", min=1)}
    stages.make_stage_model(model).export(
        path, format="torch", verbose=False, dynamic_shapes=sizes
    )


_TABLE = Path(__file__).with_name("templates") / "formats.toml"
FORMATS = tomllib.loads(_TABLE.read_text("utf-8"))  # file, call, packages
if __name__ == "__main__":
    write_torch(*sys.argv[1:])
