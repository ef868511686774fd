"""UMAP in a process of its own: `python -m tfcomp.analysis.umap_process`.

It takes arrays [n, k] in NumPy's format and answers with their embedding [n, 2]
(`HelperProcess`). UMAP compiles with a copy of LLVM, which can end a process
where TensorFlow has loaded another one, and for some ten seconds: one process
serves all stages.
"""

import atexit
import functools
import io
import sys
import warnings

import numpy as np

from tfcomp.config.helper_process import HelperProcess, serve_requests


def embed_elsewhere(features: np.ndarray) -> np.ndarray:
    """The embedding [n, 2], float32, of points [n, k] that differ.

    Raises OSError if the process has ended, as when UMAP cannot be imported.
    """
    try:
        return _unpack(_start().ask(_pack(features)))
    except OSError:
        _start.cache_clear()  # the next call starts another one
        raise


def stop() -> None:
    """Ends the process, if there is one; the next call starts another."""
    if _start.cache_info().currsize:
        _start().stop()
        _start.cache_clear()


@functools.cache
def _start() -> HelperProcess:
    atexit.register(stop)
    return HelperProcess("tfcomp.analysis.umap_process")


def _pack(array: np.ndarray) -> bytes:
    content = io.BytesIO()
    np.save(content, array, allow_pickle=False)
    return content.getvalue()


def _unpack(content: bytes) -> np.ndarray:
    return np.load(io.BytesIO(content), allow_pickle=False)


def _embed(features: np.ndarray) -> np.ndarray:
    import umap

    reducer = umap.UMAP(  # as in the published notebook
        n_neighbors=min(15, len(features) - 1),
        min_dist=0.1,
        random_state=42,
        n_jobs=1,  # what a seed implies; unsaid, it is a warning
    )
    return reducer.fit_transform(features)


def main() -> None:
    """Answers until stdin ends; libraries print to stderr."""
    # On its use of other libraries and on manifolds in several pieces.
    warnings.simplefilter("ignore")
    # UMAP takes TensorFlow if it can, for a class that is not used here.
    sys.modules.update(dict.fromkeys(["tensorflow"]))  # its import fails
    serve_requests(lambda request: _pack(_embed(_unpack(request))))


if __name__ == "__main__":
    main()
