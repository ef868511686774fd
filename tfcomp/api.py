"""The commands as functions of Python, for scripts and notebooks.

config = tfcomp.describe_run("donut", depth=2, run_name="shallow")
metrics = tfcomp.train_run(config)
run = tfcomp.load_run(config.run_dir)
run.write_report("report")

They are what the commands call, with the same rules and the same files.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from tfcomp import sweep
from tfcomp.config.run_config import RunConfig
from tfcomp.config.run_flags import parse_config, parse_flags

if TYPE_CHECKING:
    from tfcomp.studies.claims.claim import ClaimResult


def describe_run(*flagfiles: str, **settings: Any) -> RunConfig:
    """Describes a run, as the flags of `tfcomp train` do.

    Args:
        *flagfiles: As `--flagfile`: paths, or names of shipped ones (`donut`).
        **settings: Flags that override them, as `depth=2`.

    Raises:
        ConfigError: If a value breaks its rule.
        RunError: If there is no such flag, or no such file.
    """
    return parse_config(_format_arguments(flagfiles, settings))


def run_sweep(
    *flagfiles: str,
    grid: Mapping[str, Sequence[Any]] | None = None,
    **settings: Any,
) -> Path:
    """Trains every combination of some settings, as `tfcomp sweep`.

    A script calls it below `if __name__ == "__main__":`, since the processes
    of workers import the script.

    Args:
        *flagfiles: As in `describe_run`.
        grid: Flags to values, as `{"depth": [2, 3]}`. Flags joined by a slash
            vary together: `{"encoding/epochs": ["bump/50", "ramp/100"]}`.
        **settings: Flags of runs and of sweeps, as `seeds=3`, `workers=2`.

    Returns:
        The folder with `summary.csv` and the other tables; `trials.csv` has
        the reason of a trial that failed.

    Raises:
        ConfigError: If a value breaks its rule.
        RunError: If a flag is unknown, or the folder cannot be used.
    """
    arguments = _format_arguments(flagfiles, settings)
    for names, values in (grid or {}).items():
        cells = (str(value).replace('"', '""') for value in values)
        quoted = ",".join(f'"{cell}"' for cell in cells)
        arguments.append(f"--grid={names}={quoted}")
    found, _ = sweep.run_sweep(parse_flags(arguments, sweep.define_flags()))
    return found.folder


def judge_claims(
    *runs: str | Path, version: Literal[1, 2] = 2
) -> list[ClaimResult]:
    """Judges the claims of the paper on finished runs or packed evidence.

    Args:
        *runs: Folders, files of packed evidence, and patterns with *.
        version: Of the rules; 2 judges seeds from 100 on alone.

    Returns:
        A result for each claim, with its verdict, the reason, and the parts.

    Raises:
        ConfigError: If there is nothing to judge.
    """
    from tfcomp.studies.claims import judge, judge_fresh, read_some_evidence

    evidence = read_some_evidence(",".join(map(str, runs)))
    return (judge if version == 1 else judge_fresh)(evidence)


def _format_arguments(
    flagfiles: Sequence[str], settings: Mapping[str, Any]
) -> list[str]:
    files = [f"--flagfile={name}" for name in flagfiles]
    return files + [f"--{name}={value}" for name, value in settings.items()]
