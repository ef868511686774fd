"""The formats of other programs: how each is written, read back and asked.

Whatever the format, a file takes `factors` [n, F], float32 and any n, and has
one output for each stage by its name; that of the last stage, `image`, is the
image [n, H, W, C]. A SavedModel also has `geometry`, and PyTorch differentiates
its program (docs/formats.md); the other formats have no operations for
derivatives, and their converters refuse it.
"""

from __future__ import annotations

import importlib.util
import tomllib
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from tfcomp.config.errors import ConfigError

if TYPE_CHECKING:
    from tfcomp.evaluation.loading import LoadedRun

Arrays = dict[str, np.ndarray]
Ask = Callable[[np.ndarray], Arrays]


@dataclass(frozen=True)
class Format:
    """How a format is written and asked.

    Attributes:
        write: Writes a run's model to a path.
        read: Opens what was written, as a function from factors to outputs.
        file: Name of the file in the folder of the format; empty if the
            folder is what is loaded.
        call: How to call it in Python, for the model's card.
        packages: Needed packages: names to import, and what pip calls them.
    """

    write: Callable[[LoadedRun, Path], None]
    read: Callable[[Path], Ask]
    file: str
    call: str
    packages: dict[str, str] = field(default_factory=dict)


def check_formats(names: Sequence[str]) -> None:
    """Refuses formats that are not known or whose packages are missing.

    Raises:
        ConfigError: In one line, with what to install.
    """
    if not names:
        raise ConfigError("format", f"must name some of {_known()}", "")
    for name in names:
        if name not in FORMATS:
            raise ConfigError("format", f"must be among {_known()}", name)
        missing = [
            pip
            for module, pip in FORMATS[name].packages.items()
            if importlib.util.find_spec(module) is None
        ]
        if missing:
            rule = f"needs packages (pip install {' '.join(missing)})"
            raise ConfigError("format", rule, name)


def _known() -> str:
    return ", ".join(FORMATS)


def _write_saved_model(run: LoadedRun, path: Path) -> None:
    from tfcomp.evaluation.derivatives import choose_jacobian
    from tfcomp.training.export import write_archive

    jacobian_fn = choose_jacobian(run.model, run.dataset.space)
    write_archive(run.model, path, jacobian_fn)


def _read_saved_model(path: Path) -> Ask:
    import tensorflow as tf

    model = tf.saved_model.load(str(path))

    def ask(x: np.ndarray) -> Arrays:
        found = model.signatures["activations"](factors=tf.constant(x))
        return {name: value.numpy() for name, value in found.items()}

    return ask


def _read_keras(path: Path) -> Ask:
    import keras

    return ask_network(keras.models.load_model(path))


def ask_network(model: object) -> Ask:
    """The stages of a Keras model, as what a format is compared with."""
    import tensorflow as tf

    from tfcomp.models.stages import make_stage_model

    stages = tf.function(make_stage_model(model), reduce_retracing=True)
    return lambda x: {k: v.numpy() for k, v in stages(tf.constant(x)).items()}


def _export_stages(kind: str) -> Callable[[LoadedRun, Path], None]:
    def write(run: LoadedRun, path: Path) -> None:
        from tfcomp.models.stages import make_stage_model

        stages = make_stage_model(run.model)
        stages(run.dataset.splits.grid[:1])  # Keras exports what was called
        with warnings.catch_warnings(action="ignore"):  # of the converters
            stages.export(str(path), format=kind, verbose=False)

    return write


def _read_onnx(path: Path) -> Ask:
    import onnxruntime

    session = onnxruntime.InferenceSession(path)
    names = [output.name for output in session.get_outputs()]
    return lambda x: dict(
        zip(names, session.run(names, {"factors": x}), strict=True)
    )


def _read_openvino(path: Path) -> Ask:
    import openvino

    # Else it computes in bfloat16 where the processor can.
    exact = {"INFERENCE_PRECISION_HINT": "f32"}
    model = openvino.Core().compile_model(path, "CPU", exact)
    return lambda x: {
        port.any_name: value.copy() for port, value in model([x]).items()
    }


def _read_litert(path: Path) -> Ask:
    from ai_edge_litert.interpreter import Interpreter

    ask = Interpreter(str(path)).get_signature_runner("serving_default")
    return lambda x: ask(factors=x)


def _write_torch(run: LoadedRun, path: Path) -> None:
    from tfcomp.training.torch_file import write_torch

    write_torch(run, path)


def _read_torch(path: Path) -> Ask:
    import torch

    program = torch.export.load(path).module()

    def ask(x: np.ndarray) -> Arrays:
        with torch.no_grad():
            found = program(torch.from_numpy(x))
        return {name: value.numpy() for name, value in found.items()}

    return ask


# How each is written and read; the rest is in the table.
_TOOLS = {
    "saved_model": (_write_saved_model, _read_saved_model),
    "keras": (lambda run, path: run.model.save(path), _read_keras),
    "onnx": (_export_stages("onnx"), _read_onnx),
    "openvino": (_export_stages("openvino"), _read_openvino),
    "litert": (_export_stages("litert"), _read_litert),
    "torch": (_write_torch, _read_torch),
}
_TABLE = Path(__file__).with_name("templates") / "formats.toml"
FORMATS = {
    name: Format(*_TOOLS[name], **known)
    for name, known in tomllib.loads(_TABLE.read_text("utf-8")).items()
}
