"""Asks a question of many runs: judges it, trains for it, packs its evidence.

    tfcomp study
    tfcomp study claims --runs=docs/evidence --output=report
    tfcomp study claims --runs='tensorboard_logs/*' --pack=docs/evidence

The first line lists the studies. `--pack` makes one file of every sweep, with
the flags, scores, measures and versions of its finished runs, and no weights;
of a threshold or prediction study its tables and records. Verdicts follow from
such files in seconds and without TensorFlow. To check a number, train one run
again with the flags that its file holds, and compare.
"""

import ast
import importlib
import os
from pathlib import Path
from typing import Any

from tfcomp.config.command import (
    COMPLETES,
    HELP,
    exit_on_user_error,
    run_command,
)
from tfcomp.config.errors import RunError, suggest
from tfcomp.config.run_flags import make_flags
from tfcomp.storage.output_folders import check_folder
from tfcomp.storage.run_search import split_patterns

STUDIES = "claims decoders prediction thresholds paper".split()
PACK_FLAGS = {
    "runs": (
        "",
        "Sweeps and studies, or folders that contain them: patterns with *, "
        "separated by commas.",
    ),
    "pack": ("", "The folder for the packed files."),
}


def main(argv: list[str]) -> int:
    """Lists the studies, or does one; returns the exit status.

    Raises:
        RunError: If there is no such study.
    """
    name, rest = (argv[1], argv[2:]) if argv[1:] else ("--help", [])
    if COMPLETES in os.environ:
        raise RunError("the study must be named")
    if name in HELP:
        print(__doc__)
        print("\n".join(map(_describe, STUDIES)))
        return 0
    if name not in STUDIES:
        hint = suggest(name, STUDIES) or f" ({', '.join(STUDIES)})"
        raise RunError(f"{name!r} is not a study{hint}")
    program = [f"tfcomp study {name}", *rest]
    if any(a.lstrip("-").partition("=")[0] == "pack" for a in rest):
        return run_command(program, __doc__, make_flags(PACK_FLAGS), pack)
    command = importlib.import_module(f"tfcomp.studies.{name}.command")
    return command.main(program)


def pack(settings: dict[str, Any]) -> int:
    """Packs what the flags name, and prints what was written.

    Raises:
        ConfigError: If there is no folder to write, or nothing to read.
        RunError: If a file cannot be read or written.
    """
    check_folder("pack", settings["pack"])
    from tfcomp.studies.claims.packed_evidence import ENDING, pack_evidence

    output = Path(settings["pack"])
    try:
        written = pack_evidence(split_patterns(settings["runs"]), output)
    except OSError as error:
        raise RunError(f"--pack must be writable: {error}") from error
    for path in written:
        print(f"{path.stat().st_size / 1e3:8.0f} kB  {path}")
    total = sum(path.stat().st_size for path in output.glob(f"*{ENDING}"))
    print(f"{total / 1e3:8.0f} kB  in {output}")
    return 0


def _describe(name: str) -> str:
    # Read, not imported: a list of the studies takes a tenth of a second.
    path = Path(__file__).parent / "studies" / name / "command.py"
    purpose = ast.get_docstring(ast.parse(path.read_text("utf-8")))
    return f"tfcomp study {name:12}{purpose.splitlines()[0]}"


if __name__ == "__main__":
    exit_on_user_error(main)
