"""UMAP in a process of its own: `python -m tfcomp.analysis.umap_process`.

UMAP compiles with its own copy of LLVM, which can crash a process in which
TensorFlow has loaded another one. Compiling takes some ten seconds, so that
one process embeds all stages. It reads arrays [n, k] from stdin, in NumPy's
`.npz` format, and writes their embeddings [n, 2] to stdout.
"""

import io
import os
import subprocess
import sys
import warnings
from collections.abc import Sequence

import numpy as np


def embed_elsewhere(features: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Returns the embeddings [n, 2], float32, of points [n, k] that differ.

    Raises:
        OSError: If the process fails, as when UMAP cannot be imported.
    """
    found = subprocess.run(
        [sys.executable, "-P", "-m", "tfcomp.analysis.umap_process"],
        input=_pack(features),
        capture_output=True,
        env=os.environ
        | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
    )
    if found.returncode:
        lines = found.stderr.decode(errors="replace").strip().splitlines()
        reason = lines[-1] if lines else f"status {found.returncode}"
        raise OSError(f"its process has ended: {reason}")
    return _unpack(found.stdout)


def _pack(arrays: Sequence[np.ndarray]) -> bytes:
    content = io.BytesIO()
    np.savez(content, *arrays)
    return content.getvalue()


def _unpack(content: bytes) -> list[np.ndarray]:
    with np.load(io.BytesIO(content), allow_pickle=False) as arrays:
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


def main() -> None:
    """Embeds the arrays of stdin; what libraries print goes to stderr."""
    answer = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    # UMAP warns of its other libraries, and of manifolds in several pieces.
    warnings.simplefilter("ignore")
    # UMAP imports TensorFlow for a class that is not used here.
    sys.modules["tensorflow"] = None  # type: ignore[assignment]
    with answer:
        answer.write(_pack(list(map(_embed, _unpack(sys.stdin.buffer.read())))))


if __name__ == "__main__":
    main()
