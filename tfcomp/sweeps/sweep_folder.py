"""The folder of one sweep: what is in it, and who works in it.

sweep.flags     every resolved flag; `--flagfile` of it repeats the sweep
trials/<hash>/  run folders
logs/<hash>.log output of the trials
trials.csv      one row for each trial (see `sweep_tables`)
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
    """Paths of a sweep or a threshold search; `claim` is the first to write.

    Args:
        config: A run whose name is that of the sweep.
        flags_name: Name of the file with the flags of the command.

    Attributes:
        path: The folder.
        flags_file: The flags that repeat the command.
        logs: Folder of what the processes print.
    """

    def __init__(
        self, config: RunConfig, flags_name: str = "sweep.flags"
    ) -> None:
        self.path = Path(config.run_dir)
        self.flags_file = self.path / flags_name
        self.logs = self.path / "logs"

    def log(self, name: str) -> Path:
        """Path of the output of a trial."""
        return self.logs / f"{name}.log"

    def check(self) -> None:
        """Checks that a sweep may work here.

        Raises:
            RunError: If the name belongs to a single run.
        """
        if (self.path / FLAGS_FILE).exists():
            raise RunError(
                f"--run_name must name a sweep, {self.path} is a single run"
            )

    @contextmanager
    def claim(self) -> Iterator[None]:
        """Creates the folder and keeps other commands out of it.

        Raises:
            RunError: If another one is at work, the name is that of a run,
                or nothing can be written.
        """
        self.check()
        try:
            self.logs.mkdir(parents=True, exist_ok=True)
            lock = lock_folder(self.path)
        except OSError as error:
            raise RunError(f"--log_dir must be writable: {error}") from error
        with lock:
            yield
