"""Runs every combination of settings and seeds, several at the same time.

    tfcomp sweep donut --run_name=depth \\
        --grid=depth=2,3,4 --grid=encoding/epochs=bump/50,ramp/100 \\
        --seeds=5 --workers=2

Flags that are joined by a slash vary together. A value that contains a comma
is quoted, as in --grid='region="box:x:6-22,y:0-9",corner:14'. All other flags
of a run hold for every trial. Finished trials survive an interruption: the
same command runs missing trials, also after seeds or values were added. With
--shard=2/3 it runs a part of them, as one of several jobs.

    tfcomp sweep donut --coverage=random:.1,.2,.4,.6,.8 --seeds=5

trains with these shares of all combinations, and tells how much is enough.
"""

from __future__ import annotations

import io
import itertools
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

from tfcomp.config.errors import ConfigError, RunError
from tfcomp.config.process import exit_on_user_error
from tfcomp.config.run_flags import Command, parse_flags
from tfcomp.metrics.registry import label_number, list_leading
from tfcomp.storage.files import check_run_folders, list_versions, read_csv
from tfcomp.sweeps.grid import Trial
from tfcomp.sweeps.pool import SchedulerOptions
from tfcomp.sweeps.sweep_run import define_flags, make_sweep, run_missing
from tfcomp.train import format_arguments

WIDTH = 23  # of a column


def run_trials(values: dict[str, Any]) -> int:
    """Runs missing trials; prints scores and failures.

    Raises:
        ConfigError: A flag breaks its rule.
        RunError: Another command works in the folder, or no worker starts.
    """
    options = SchedulerOptions.from_flags(values)
    sweep = make_sweep(values)
    check_run_folders(values)
    try:
        failures = run_missing(sweep, options)
    except KeyboardInterrupt:
        raise KeyboardInterrupt("the same command goes on") from None

    print(f"\n{format_summary(sweep.folder)}tables  {sweep.folder}")
    for path in sorted(sweep.folder.glob("figures/coverage_*.csv")):
        answers = {row["line"]: row["answer"] for row in read_csv(path)}
        for line, answer in answers.items():
            print(f"{path.stem}  {line}: {answer}")
    page = sweep.folder / "report.html"
    if page.exists():
        print(f"report  {page}")
    if values["export"]:
        _report_models(options.select_shard(sweep.items))
    for line in failures:
        print(f"failed  {line}", file=sys.stderr)
    return 1 if failures else 0


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

    Raises:
        ConfigError: A combination of the grid breaks a rule.
        RunError: The sweep cannot begin, or was stopped.
    """
    arguments = format_arguments(flagfiles, settings)
    for names, values in (grid or {}).items():
        if isinstance(values, str) or not isinstance(values, Iterable):
            rule = f"must have a list of values for {names}, as [{values!r}]"
            raise ConfigError("grid", rule, values)
        quoted = ",".join(map('"{}"'.format, values))
        arguments.append(f"--grid={names}={quoted}")

    flags = parse_flags(arguments, define_flags())
    with redirect_stdout(io.StringIO()):  # the process prints it again
        folder = make_sweep(flags).folder
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


def _report_models(trials: Sequence[Trial]) -> None:
    """Names a command for trials without a SavedModel."""
    # They failed, or ended before `--export` was asked for.
    lost = []
    for trial in trials:
        if not list_versions(trial.config.export_path):
            lost.append(shlex.quote(str(trial.path)))
    if lost:
        print(f"no SavedModel of {len(lost)}: tfcomp export --run={lost[0]}")


def format_summary(folder: Path) -> str:
    """Formats the main scores, mean and deviation, a line for each setting."""
    path = folder / "summary.csv"
    if not path.exists():
        return ""
    import pandas as pd

    cells: dict[str, dict[str, str]] = {}  # by setting and score
    for row in read_csv(path):
        flags = itertools.takewhile(lambda name: name != "score", row)
        setting = " ".join(f"{name}={row[name]}" for name in flags)
        cell = "-"
        if row["mean"]:
            cell = f"{float(row['mean']):.3g}"
        if row["sd"]:
            cell += f" ± {float(row['sd']):.3g}"
        cells.setdefault(setting, {})[row["score"]] = cell

    labels = {}
    for score in list_leading("image"):  # as ood_relative_mse
        labels[score] = label_number(score.replace("_", "/", 1))
    table = pd.DataFrame.from_dict(cells, orient="index")
    table = table.reindex(columns=list(labels)).rename(columns=labels)
    widths = dict.fromkeys(table, WIDTH)
    text = table.to_string(na_rep="-", col_space=widths)
    if "±" in text:
        text += "\n± is the standard deviation over seeds"
    return f"{text}\n"


main = Command(
    purpose=__doc__,
    table=define_flags,
    action=run_trials,
    first="tfcomp sweep sweep_smoke --workers=2",
)

if __name__ == "__main__":
    exit_on_user_error(main)
