"""Writes and reads a model in the formats of other programs.

In every format a file takes `factors` [n, F], float32 and any n, and has one
output per stage, by its name; the last one is `image` [n, H, W, C].
"""

from __future__ import annotations

import functools
import tomllib
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tfcomp.config.errors import ConfigError

if TYPE_CHECKING:
    import keras

    from tfcomp.evaluation.loading import LoadedRun

Arrays = dict[str, np.ndarray]
Predict = Callable[[np.ndarray], Arrays]


@dataclass(frozen=True)
class Format:
    """A format; `templates/formats.toml` explains `file` and the rest."""

    write: Callable[[LoadedRun, Path], None]
    read: Callable[[Path], Predict]
    file: str
    call: str
    packages: dict[str, str] = field(default_factory=dict)


def check_formats(names: Sequence[str]) -> None:
    """Raises a ConfigError for unknown formats, or for missing packages."""
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


def predict_keras(model: keras.Model) -> Predict:
    """Returns a function that computes all stages of a Keras model."""
    import tensorflow as tf

    from tfcomp.models.stages import make_stage_model

    stages = tf.function(make_stage_model(model), reduce_retracing=True)
    return lambda x: _fetch(stages(tf.constant(x)))


def _fetch(tensors: Mapping[str, Any]) -> Arrays:
    return {name: tensor.numpy() for name, tensor in tensors.items()}


def _write(kind: str, run: LoadedRun, path: Path) -> None:
    from tfcomp.evaluation.derivatives import choose_jacobian
    from tfcomp.models.stages import make_stage_model
    from tfcomp.training import export, torch_file

    if kind == "saved_model":
        jacobian_fn = choose_jacobian(run.model, run.dataset.space)
        export.write_archive(run.model, path, jacobian_fn)
    elif kind == "keras":
        run.model.save(path)
    elif kind == "torch":
        torch_file.write_torch(run, path)
    else:
        stages = make_stage_model(run.model)
        stages(run.dataset.splits.grid[:1])  # Keras exports what was called
        with warnings.catch_warnings(action="ignore"):  # of the converters
            stages.export(str(path), format=kind, verbose=False)


def _read_saved_model(path: Path) -> Predict:
    import tensorflow as tf

    model = tf.saved_model.load(str(path))
    return lambda x: _fetch(
        model.signatures["activations"](factors=tf.constant(x))
    )


def _read_keras(path: Path) -> Predict:
    import keras

    return predict_keras(keras.models.load_model(path))


def _read_onnx(path: Path) -> Predict:
    import onnxruntime

    session = onnxruntime.InferenceSession(path)
    names = [output.name for output in session.get_outputs()]
    return lambda x: dict(
        zip(names, session.run(names, {"factors": x}), strict=True)
    )


def _read_openvino(path: Path) -> Predict:
    import openvino

    # Else it computes in bfloat16 where the processor can.
    exact = {"INFERENCE_PRECISION_HINT": "f32"}
    model = openvino.Core().compile_model(path, "CPU", exact)
    return lambda x: {
        port.any_name: value.copy() for port, value in model([x]).items()
    }


def _read_litert(path: Path) -> Predict:
    from ai_edge_litert.interpreter import Interpreter

    predict = Interpreter(str(path)).get_signature_runner("serving_default")
    return lambda x: predict(factors=x)


def _read_torch(path: Path) -> Predict:
    import torch

    program = torch.export.load(path).module()

    def predict(x: np.ndarray) -> Arrays:
        with torch.no_grad():
            return _fetch(program(torch.from_numpy(x)))

    return predict


_READERS = {
    "saved_model": _read_saved_model,
    "keras": _read_keras,
    "onnx": _read_onnx,
    "openvino": _read_openvino,
    "litert": _read_litert,
    "torch": _read_torch,
}
_TABLE = Path(__file__).with_name("templates") / "formats.toml"
FORMATS = {
    name: Format(functools.partial(_write, name), _READERS[name], **known)
    for name, known in tomllib.loads(_TABLE.read_text("utf-8")).items()
}
