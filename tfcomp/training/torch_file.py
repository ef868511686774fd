"""Converts a Keras file to a PyTorch program (`.pt2`), in its own process.

    KERAS_BACKEND=torch python -m tfcomp.training.torch_file IN.keras OUT.pt2

Keras has one backend per process, and tfcomp uses TensorFlow.
"""

import importlib
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from tfcomp.config.errors import RunError
from tfcomp.config.run_config import split_names
from tfcomp.evaluation.loading import LoadedRun


def write_torch(run: LoadedRun, path: Path) -> None:
    """Writes the stages of a run's model; a RunError if Keras cannot."""
    # "" is the current folder, in which plugins are looked for last.
    places = os.pathsep.join(place or os.getcwd() for place in sys.path)
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder, "model.keras")
        run.model.save(source)
        process = subprocess.run(
            [sys.executable, "-P", "-m", "tfcomp.training.torch_file"]
            + [source, path, *split_names(run.config.plugins)],
            env=os.environ | {"PYTHONPATH": places, "KERAS_BACKEND": "torch"},
            capture_output=True,
            text=True,
        )
    if process.returncode:
        lines = process.stderr.strip().splitlines() or ["no reason given"]
        rule = f"Keras cannot write it ({lines[-1][:150]})"
        raise RunError(f"--format=torch: {rule}")


def main(source: str, path: str, *plugins: str) -> None:
    """Loads a Keras file and writes the program."""
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


if __name__ == "__main__":
    main(*sys.argv[1:])
