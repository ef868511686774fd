"""The folder of one sweep: who works in it, what is in it.

sweep.flags     every resolved flag; `--flagfile` of it goes on
trials/<hash>/  run folders
logs/<hash>.log output of the trials
trials.csv      one row a trial (see `tables`)
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tfcomp.config.errors import RunError
from tfcomp.config.run_config import RunConfig
from tfcomp.storage.folder_lock import lock_folder
from tfcomp.storage.run_folder import FLAGS_FILE


class SweepFolder:
    """Paths of a sweep; nothing is read, or written before `claim`.

    Args:
        config: A run whose name is that of the sweep.
    """

    def __init__(self, config: RunConfig) -> None:
        self.path = Path(config.run_dir)

    def check(self) -> None:
        """Whether a sweep may work here.

        Raises:
            RunError: If the name belongs to a single run.
        """
        if (self.path / FLAGS_FILE).exists():
            raise RunError(
                f"--run_name must name a sweep, {self.path} is a single run"
            )

    @property
    def flags_file(self) -> Path:
        """Path of the flags that repeat the command."""
        return self.path / "sweep.flags"

    def log(self, name: str) -> Path:
        """Path of the output of a trial."""
        return self.path / "logs" / f"{name}.log"

    @contextmanager
    def claim(self) -> Iterator[None]:
        """Keeps other sweeps out of the folder.

        Raises:
            RunError: If another one is at work, the name is that of a run,
                or nothing can be written.
        """
        self.check()
        try:
            (self.path / "logs").mkdir(parents=True, exist_ok=True)
            lock = lock_folder(self.path)
        except OSError as error:
            raise RunError(f"--log_dir must be writable: {error}") from error
        with lock:
            yield
