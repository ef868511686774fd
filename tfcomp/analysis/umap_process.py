"""Runs UMAP in another process: `python -m tfcomp.analysis.umap_process`.

UMAP compiles with its own copy of LLVM, which can crash a process in which
TensorFlow has loaded another one. Compiling takes some ten seconds, so that one
process embeds all stages. It reads the arrays [n, k] of one `.npz` file, and
writes their embeddings [n, 2] to another.
"""

import os
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Sequence
from pathlib import Path

import numpy as np


def embed_elsewhere(features: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Returns the embeddings [n, 2], float32, of points [n, k] that differ.

    Raises:
        OSError: If the process fails, as when UMAP cannot be imported.
    """
    with tempfile.TemporaryDirectory() as folder:
        files = [str(Path(folder, name)) for name in ("in.npz", "out.npz")]
        np.savez(files[0], *features)
        path = os.pathsep.join(filter(None, sys.path))
        process = subprocess.run(
            [sys.executable, "-P", "-m", __name__, *files],
            capture_output=True,
            env=os.environ | {"PYTHONPATH": path},
        )
        if process.returncode:
            lines = process.stderr.decode(errors="replace").split("\n")
            reason = [line for line in lines if line.strip()][-1:]
            status = f"status {process.returncode}"
            raise OSError(f"its process has ended: {(*reason, status)[0]}")
        return _read(files[1])


def _read(path: str) -> list[np.ndarray]:
    with np.load(path, allow_pickle=False) as arrays:
        return [arrays[name] for name in arrays.files]


def _embed(features: np.ndarray) -> np.ndarray:
    import umap  # type: ignore[import-untyped]

    reducer = umap.UMAP(  # as in the published notebook
        n_neighbors=min(15, len(features) - 1),
        min_dist=0.1,
        random_state=42,
        n_jobs=1,  # implied by a seed, with a warning if it is not given
    )
    return np.asarray(reducer.fit_transform(features))


if __name__ == "__main__":
    # UMAP warns of its other libraries, and of manifolds in several pieces.
    warnings.simplefilter("ignore")
    # UMAP imports TensorFlow for a class that is not used here.
    sys.modules["tensorflow"] = None  # type: ignore[assignment]
    np.savez(sys.argv[2], *map(_embed, _read(sys.argv[1])))
