"""UMAP in a process of its own, without TensorFlow.

    python -m tfcomp.analysis.umap_process

reads arrays [n, k] in NumPy's format from stdin, and writes their embedding
[n, 2] to stdout, one after the other until there are no more. UMAP compiles
with a copy of LLVM, and where TensorFlow has loaded another one the process
can be ended by it, with everything that it has computed. Compiling takes some
ten seconds, so one process serves all stages.
"""

import atexit
import contextlib
import functools
import io
import os
import subprocess
import sys
import tempfile
import warnings
from typing import IO

import numpy as np

# Settings of UMAP, as in the published notebook.
NUM_NEIGHBORS = 15
MIN_DISTANCE = 0.1
SEED = 42
_MODULE = "tfcomp.analysis.umap_process"


def embed_elsewhere(features: np.ndarray) -> np.ndarray:
    """The embedding [n, 2], float32, of points [n, k] that differ.

    Raises:
        OSError: If the process has ended, as when UMAP cannot be imported.
    """
    process, log = _start()
    assert process.stdin and process.stdout
    try:
        _write(process.stdin, features)
        return _read(process.stdout)
    except (OSError, ValueError, EOFError) as error:
        process.kill()
        process.wait()
        log.seek(0)
        lines = log.read().decode(errors="replace").strip().splitlines()
        reason = lines[-1] if lines else f"status {process.returncode}"
        stop()
        raise OSError(f"its process has ended: {reason}") from error


def stop() -> None:
    """Ends the process, if there is one; the next call starts another."""
    if not _start.cache_info().currsize:
        return
    process, log = _start()
    _start.cache_clear()
    process.kill()
    process.wait()
    for stream in (process.stdin, process.stdout, log):
        with contextlib.suppress(OSError):  # the rest of a broken request
            stream.close()


@functools.cache
def _start() -> tuple[subprocess.Popen[bytes], IO[bytes]]:
    """The process, which ends when its stdin is closed, and what it prints."""
    log = tempfile.TemporaryFile()
    places = os.pathsep.join(filter(None, sys.path))
    process = subprocess.Popen(
        [sys.executable, "-P", "-m", _MODULE],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=log,
        env=os.environ | {"PYTHONPATH": places},
    )
    atexit.register(stop)
    return process, log


def _write(stream: IO[bytes], array: np.ndarray) -> None:
    """Writes the number of bytes in a line, and the array."""
    content = io.BytesIO()
    np.save(content, array, allow_pickle=False)
    stream.write(b"%d\n" % content.tell() + content.getvalue())
    stream.flush()


def _read(stream: IO[bytes]) -> np.ndarray:
    """Reads what `_write` has written; EOFError at the end."""
    line = stream.readline()
    if not line:
        raise EOFError
    return np.load(io.BytesIO(stream.read(int(line))), allow_pickle=False)


def _embed(features: np.ndarray) -> np.ndarray:
    import umap

    reducer = umap.UMAP(
        n_neighbors=min(NUM_NEIGHBORS, len(features) - 1),
        min_dist=MIN_DISTANCE,
        random_state=SEED,
        n_jobs=1,  # what a seed implies; unsaid, it is a warning
    )
    return reducer.fit_transform(features)


def main() -> None:
    """Answers until stdin ends; libraries print to stderr."""
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    # On its use of other libraries and on manifolds in several pieces.
    warnings.simplefilter("ignore")
    # UMAP takes TensorFlow if it can, for a class that is not used here.
    sys.modules.update(dict.fromkeys(["tensorflow"]))  # its import fails
    with contextlib.suppress(EOFError):
        while True:
            _write(answers, _embed(_read(sys.stdin.buffer)))


if __name__ == "__main__":
    main()
