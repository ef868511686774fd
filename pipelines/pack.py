"""Packs the evidence of finished sweeps, small enough to be committed.

    python -m pipelines.pack --runs='tensorboard_logs/*' --output=docs/evidence

Every sweep becomes one file with the flags, scores, measures and versions of
its finished runs, and no weights; a prediction study one with its tables and
what it recorded of every network. `python -m pipelines.reproduce
--runs=docs/evidence` recomputes every verdict from such files, in seconds and
without TensorFlow. To check a number, train one run again with the flags that
its file holds, and compare.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tfcomp.config.command import exit_on_user_error, run_command
from tfcomp.config.errors import RunError
from tfcomp.config.run_flags import make_flags
from tfcomp.storage.output_folders import check_folder
from tfcomp.storage.run_search import split_patterns

FLAGS = {
    "runs": (
        "",
        "Sweeps, or folders that contain them: patterns with *, separated by "
        "commas.",
    ),
    "output": ("docs/evidence", "The folder for the packed files."),
}


def main(argv: list[str]) -> int:
    """The command; returns its exit status."""
    return run_command(argv, __doc__, make_flags(FLAGS), pack)


def pack(settings: dict[str, Any]) -> int:
    """Packs what the flags name, and prints what was written.

    Raises:
        ConfigError: If there is no folder to write, or nothing to read.
        RunError: If a file cannot be read or written.
    """
    check_folder("output", settings["output"])
    from tfcomp.studies.claims.packed_evidence import ENDING, pack_evidence

    output = Path(settings["output"])
    try:
        written = pack_evidence(split_patterns(settings["runs"]), output)
    except OSError as error:
        raise RunError(f"--output must be writable: {error}") from error
    for path in written:
        print(f"{path.stat().st_size / 1e3:8.0f} kB  {path}")
    total = sum(path.stat().st_size for path in output.glob(f"*{ENDING}"))
    print(f"{total / 1e3:8.0f} kB  in {output}")
    return 0


if __name__ == "__main__":
    exit_on_user_error(main)
