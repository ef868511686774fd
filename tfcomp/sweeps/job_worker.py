"""Runs a Dask worker as a job of a cluster.

    python -m tfcomp.sweeps.job_worker SCHEDULER --name=NAME ...

dask-jobqueue writes this line into the script of a job. It is `dask worker`,
with temporary files in a private folder of the node: Dask would import modules
from a folder that any user may have made.
"""

import os
import sys
import tempfile
import time
from pathlib import Path

import dask
from distributed.cli.dask_worker import main as run_worker

from tfcomp.config.private_folder import use_private_folder
from tfcomp.sweeps.local_cluster import SETTINGS

KEY_SECONDS = 60  # a node may see a new file some time later


def main(argv: list[str]) -> int:
    """Works until the scheduler or a signal ends it."""
    if not wait_for_file(Path(argv[argv.index("--tls-key") + 1])):
        print("the command that has submitted this job has ended")
        return 0
    arguments = argv[1:]
    if "--local-directory" in arguments:
        place = arguments.index("--local-directory")
        os.environ["TMPDIR"] = arguments[place + 1]
        del arguments[place : place + 2]
    with use_private_folder():
        folder = tempfile.gettempdir()
        dask.config.set(SETTINGS | {"temporary-directory": folder})
        run_worker([*arguments, "--local-directory", folder])
    return 0


def wait_for_file(path: Path) -> bool:
    """True once a file is there, False if it does not appear in time."""
    end = time.monotonic() + KEY_SECONDS
    while not path.exists() and time.monotonic() < end:
        time.sleep(1)
    return path.exists()


if __name__ == "__main__":
    sys.exit(main(sys.argv))
