"""A folder for temporary files of a process, which only its user can enter.

Others can put no file where Python, Dask or TensorFlow look for theirs. The
folder is removed at the end. After a SIGKILL it stays, for the system to clear:
tfcomp never searches the temporary files for folders to remove.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

PREFIX = "tfcomp-"


@contextlib.contextmanager
def make_private_folder(parent: Path | None = None) -> Iterator[Path]:
    """Makes a folder, by default among temporary files, for one block.

    Raises:
        OSError: The folder cannot be made.
    """
    with tempfile.TemporaryDirectory(  # mode 0700
        prefix=PREFIX, dir=parent, ignore_cleanup_errors=True
    ) as folder:
        yield Path(folder)


@contextlib.contextmanager
def use_private_folder() -> Iterator[None]:
    """Puts temporary files of this process and its children into one folder."""
    with make_private_folder() as folder:
        before = os.environ.get("TMPDIR"), tempfile.tempdir
        os.environ["TMPDIR"] = tempfile.tempdir = str(folder)
        try:
            yield
        finally:
            tempfile.tempdir = before[1]
            if before[0] is None:
                del os.environ["TMPDIR"]
            else:
                os.environ["TMPDIR"] = before[0]
