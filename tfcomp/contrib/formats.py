"""Models in the formats of other programs, by `keras.Model.export`."""

from __future__ import annotations

import functools
import importlib
import os
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path
from typing import TYPE_CHECKING

from tfcomp.config.errors import RunError, first_line
from tfcomp.config.settings import split_names
from tfcomp.training.formats import FORMATS, Format

if TYPE_CHECKING:
    from tfcomp.models.loading import LoadedRun

TORCH_PROGRAM = """
import sys
from tfcomp.contrib.formats import write_torch
write_torch(*sys.argv[1:])
"""


def export_stages(run: LoadedRun, path: Path, name: str) -> None:
    """Writes a model with all stages as outputs in a format of Keras.

    Args:
        run: The run with the model.
        path: The file or folder to write.
        name: The format, as `keras.Model.export` calls it.

    Raises:
        RunError: If Keras cannot convert the model.
    """
    from tfcomp.models.registry import make_stage_model

    stages = make_stage_model(run.model)
    grid = run.dataset.splits.grid
    stages(grid[:1])  # Keras exports called models
    try:
        with warnings.catch_warnings(action="ignore"):
            stages.export(
                str(path),
                format=name,
                verbose=False,
            )
    except Exception as error:  # converters have errors of all kinds
        raise make_error(name, first_line(error)) from error


def export_torch(run: LoadedRun, path: Path) -> None:
    """Writes a PyTorch program, by a process of its own.

    Keras has one backend per process, which is TensorFlow in this one.

    Args:
        run: The run with the model.
        path: The file to write.

    Raises:
        RunError: If Keras cannot convert the model.
    """
    # "" is the current folder, in which plugins are looked for last.
    folders = [folder or os.getcwd() for folder in sys.path]
    environment = os.environ | {
        "PYTHONPATH": os.pathsep.join(folders),
        "KERAS_BACKEND": "torch",
    }

    with tempfile.TemporaryDirectory() as folder:
        source = os.path.join(folder, "model.keras")
        run.model.save(source)
        command = [sys.executable, "-P", "-c", TORCH_PROGRAM]
        command += [source, str(path)]
        command += split_names(run.config.plugins)
        process = subprocess.run(
            command,
            env=environment,
            capture_output=True,
            text=True,
        )

    if process.returncode:
        lines = process.stderr.strip().splitlines()
        reason = "no reason given"
        if lines:
            reason = lines[-1]
        raise make_error("torch", reason)


def write_torch(source: str, path: str, *plugins: str) -> None:
    """Converts a Keras file to a PyTorch program; Keras must use PyTorch.

    Args:
        source: The Keras file.
        path: The file to write (`.pt2`).
        *plugins: Modules with layers of the model.
    """
    import keras
    import torch

    from tfcomp.models.loading import import_layers
    from tfcomp.models.registry import make_stage_model

    import_layers()
    for module in plugins:
        importlib.import_module(module)

    model = keras.models.load_model(source, compile=False)
    stages = make_stage_model(model)
    any_count = torch.export.Dim("n", min=1)
    stages.export(
        path,
        format="torch",
        verbose=False,
        dynamic_shapes={0: any_count},
    )


def make_error(name: str, reason: str) -> RunError:
    """Makes the error of a format that Keras cannot write.

    Args:
        name: The format.
        reason: What its converter says; its start is shown.
    """
    start = reason[:150]
    return RunError(f"--format={name}: Keras cannot write it ({start})")


ONNX_CALL = """
import onnxruntime

session = onnxruntime.InferenceSession("onnx/model.onnx")
(image,) = session.run(["image"], {"factors": factors})"""

LITERT_CALL = """
from ai_edge_litert.interpreter import Interpreter

runner = Interpreter("litert/model.tflite").get_signature_runner()
image = runner(factors=factors)["image"]"""

TORCH_CALL = """
import torch

draw = torch.export.load("torch/model.pt2").module()
image = draw(torch.from_numpy(factors))["image"].detach().numpy()"""

FORMATS.register(
    "onnx",
    Format(
        write=functools.partial(export_stages, name="onnx"),
        call=ONNX_CALL,
        file="model.onnx",
        packages={
            "tf2onnx": "tf2onnx",
            "onnxruntime": "onnxruntime",
        },
    ),
)
FORMATS.register(
    "litert",
    Format(
        write=functools.partial(export_stages, name="litert"),
        call=LITERT_CALL,
        file="model.tflite",
        packages={"ai_edge_litert": "ai-edge-litert"},
    ),
)
FORMATS.register(
    "torch",
    Format(
        write=export_torch,
        call=TORCH_CALL,
        file="model.pt2",
        packages={"torch": "torch"},
    ),
)
