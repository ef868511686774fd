"""The process that writes a PyTorch program:

KERAS_BACKEND=torch python -m tfcomp.contrib.formats.torch_process IN OUT
"""

import importlib
import sys


def write_torch(source: str, path: str, *plugins: str) -> None:
    """Converts a Keras file to a PyTorch program (`.pt2`).

    Args:
        source: The Keras file.
        path: The file to write.
        *plugins: Modules with layers of the model.
    """
    import keras
    import torch

    importlib.import_module("tfcomp.models.loading").import_layers()
    for module in plugins:
        importlib.import_module(module)
    stages = importlib.import_module("tfcomp.models.stages")
    model = keras.models.load_model(source, compile=False)
    sizes = {0: torch.export.Dim("n", min=1)}
    stages.make_stage_model(model).export(
        path, format="torch", verbose=False, dynamic_shapes=sizes
    )


if __name__ == "__main__":
    write_torch(*sys.argv[1:])
