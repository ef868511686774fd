"""The commands as functions of Python, for scripts and notebooks."""

from __future__ import annotations

import csv
import io
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, Any

import tfcomp
from tfcomp import sweep, train
from tfcomp.config.errors import ConfigError, RunError
from tfcomp.config.run_config import RunConfig
from tfcomp.config.run_flags import parse_config, parse_flags

if TYPE_CHECKING:
    from tfcomp.report.model_report import ModelReport


def describe_run(*flagfiles: str, **settings: Any) -> RunConfig:
    """Describes a run by flags of `tfcomp train`.

    Args:
        *flagfiles: As `--flagfile`: paths, or names of shipped ones (`donut`).
        **settings: Flags that override them, as `depth=2`.

    Raises:
        ConfigError: A value breaks its rule.
        RunError: A flag or a file does not exist.

    Example:
        >>> config = tfcomp.describe_run("donut", depth=2, run_name="shallow")
        >>> config.model.depth, config.data.region
        (2, 'square:6-22')
    """
    return parse_config(_format_arguments(flagfiles, settings))


def train_run(
    config: RunConfig | str, *flagfiles: str, **settings: Any
) -> ModelReport:
    """Trains a decoder, or loads the run if it is finished already.

    Args:
        config: The result of `describe_run`, or the name or path of a
            flagfile, as in `tfcomp.train_run("smoke", depth=2)`.
        **settings: Flags that override them.

    Raises:
        ConfigError: Settings contradict each other or exceed this machine.
        RunError: The run folder cannot be used, or training diverges.
    """
    if not isinstance(config, RunConfig):
        config = describe_run(config, *flagfiles, **settings)
    elif flagfiles or settings:
        rule = "must be given to describe_run"
        raise ConfigError("settings", rule, [*flagfiles, *settings])
    train.train_run(config)
    return tfcomp.load_run(config.run_dir)


def run_sweep(
    *flagfiles: str,
    grid: Mapping[str, Sequence[Any]] | None = None,
    **settings: Any,
) -> Path:
    """Trains every combination of some settings, as `tfcomp sweep`.

    Args:
        *flagfiles: As in `describe_run`.
        grid: Flags to values, as `{"depth": [2, 3]}`. Flags joined by a slash
            vary together: `{"encoding/epochs": ["bump/50", "ramp/100"]}`.
        **settings: Flags of runs and of sweeps, as `seeds=3`, `workers=2`,
            `shard="1/3"`.

    Returns:
        The folder with `summary.csv` and the other tables; `trials.csv` has
        the reason of a trial that failed.
    """
    arguments = _format_arguments(flagfiles, settings)
    for names, values in (grid or {}).items():
        row = io.StringIO()
        csv.writer(row, quoting=csv.QUOTE_ALL, lineterminator="").writerow(
            values
        )
        arguments.append(f"--grid={names}={row.getvalue()}")

    flags = parse_flags(arguments, sweep.define_flags())
    with redirect_stdout(io.StringIO()):  # the process prints it again
        folder = sweep.make_sweep(flags).folder
    # In its own process, so that workers import nothing of this program.
    line = ""
    with subprocess.Popen(
        [sys.executable, "-m", "tfcomp.sweep", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as process:
        try:
            for line in process.stdout or ():
                print(line, end="", flush=True)
        except BaseException:
            process.send_signal(signal.SIGINT)
            raise

    # 1: some trials have failed, which the tables say.
    if process.returncode not in (0, 1):
        raise RunError(line.strip().removeprefix("error: ") or "tfcomp.sweep")
    return folder


def _format_arguments(
    flagfiles: Sequence[str], settings: Mapping[str, Any]
) -> list[str]:
    arguments = [f"--flagfile={name}" for name in flagfiles]
    for name, value in settings.items():
        arguments.append(f"--{name}={value}")
    return arguments
