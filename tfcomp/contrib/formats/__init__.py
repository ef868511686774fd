"""Models in the formats of other programs, by `keras.Model.export`."""

from __future__ import annotations

import functools
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

TORCH_PROCESS = "tfcomp.contrib.formats.torch_process"


def export_stages(run: LoadedRun, path: Path, name: str) -> None:
    """Writes a model with all stages as outputs in a format of Keras."""
    from tfcomp.models.stages import make_stage_model

    stages = make_stage_model(run.model)
    stages(run.dataset.splits.grid[:1])  # Keras exports called models
    try:
        with warnings.catch_warnings(action="ignore"):
            stages.export(str(path), format=name, verbose=False)
    except Exception as error:  # converters have errors of all kinds
        raise make_error(name, first_line(error)) from error


def export_torch(run: LoadedRun, path: Path) -> None:
    """Writes a PyTorch program, by a process of its own.

    Keras has one backend per process, which is TensorFlow in this one.
    """
    # "" is the current folder, in which plugins are looked for last.
    places = os.pathsep.join(place or os.getcwd() for place in sys.path)
    environment = {"PYTHONPATH": places, "KERAS_BACKEND": "torch"}
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder, "model.keras")
        run.model.save(source)
        plugins = split_names(run.config.plugins)
        command = [sys.executable, "-P", "-m", TORCH_PROCESS]
        process = subprocess.run(
            [*command, str(source), str(path), *plugins],
            env=os.environ | environment,
            capture_output=True,
            text=True,
        )
    if process.returncode:
        lines = process.stderr.strip().splitlines() or ["no reason given"]
        raise make_error("torch", lines[-1])


def make_error(name: str, reason: str) -> RunError:
    """Returns the error of a format that Keras cannot write."""
    return RunError(f"--format={name}: Keras cannot write it ({reason[:150]})")


ONNX_CALL = """
import onnxruntime

session = onnxruntime.InferenceSession("onnx/model.onnx")
(image,) = session.run(["image"], {"factors": factors})"""

OPENVINO_CALL = """
import openvino

exact = {"INFERENCE_PRECISION_HINT": "f32"}
model = openvino.Core().compile_model("openvino/model.xml", "CPU", exact)
image = model([factors])[model.output("image")]"""

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
        packages={"tf2onnx": "tf2onnx", "onnxruntime": "onnxruntime"},
    ),
)
FORMATS.register(
    "openvino",
    Format(
        write=functools.partial(export_stages, name="openvino"),
        call=OPENVINO_CALL,
        file="model.xml",
        packages={"openvino": "openvino"},
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
