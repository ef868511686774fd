"""Compares finished runs over seeds.

    tfcomp compare tensorboard_logs/low_rank*

groups runs that differ in nothing but their seed and prints mean and standard
deviation of their scores; --output also writes them as CSV (with 95 %
intervals) and Markdown. `--tables=FOLDER` writes every flag and number of the
runs instead, as runs.csv and numbers.csv (see `tfcomp.tables`); packed evidence
and sweeps may be named there.
"""

from __future__ import annotations

import glob
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import tfcomp
from tfcomp.config.command import exit_on_user_error, run_command
from tfcomp.config.errors import ConfigError, RunError
from tfcomp.config.run_config import split_names
from tfcomp.config.run_flags import make_flags
from tfcomp.evaluation.metric_files import read_run_metrics
from tfcomp.evaluation.metrics import (
    USER_METRICS,
    adopt_metrics,
    find_limits,
    find_metric,
)
from tfcomp.statistics import setting_table
from tfcomp.statistics.seed_statistics import get_score
from tfcomp.storage.files import (
    DamagedFileError,
    make_folder,
    write_table,
    write_text,
)
from tfcomp.storage.output_folders import check_folder
from tfcomp.storage.run_folder import check_run, read_metrics

if TYPE_CHECKING:
    import pandas as pd

MAIN_SCORES = (
    "id/mse ood/mse ood/relative_mse ood/hit_rate ood/position_accuracy"
).split()
FLAGS = {
    "runs": ("", "Run folders, patterns with *, separated by commas."),
    "scores": (
        "",
        "Scores by their path in metrics.json, separated by commas; those of "
        "tfcomp measure begin with measures/. With list, what there is; by "
        "default the main ones that the runs have.",
    ),
    "output": ("", "Path without ending, for .csv and .md."),
    "tables": ("", "A folder for runs.csv and numbers.csv."),
}


def main(argv: list[str]) -> int:
    """Runs the command and returns its exit status."""
    return run_command(argv, __doc__, make_flags(FLAGS), compare_runs)


def compare_runs(settings: dict[str, Any]) -> int:
    """Prints the table; needs no TensorFlow."""
    output = settings["output"]
    if output and os.path.basename(output) in ("", ".", ".."):
        raise ConfigError("output", "must end with a name", output)
    if settings["tables"]:
        return write_tables(settings["runs"], settings["tables"])
    scores = split_names(settings["scores"])
    runs = read_runs(settings["runs"])
    if scores == ["list"]:
        print("\n".join(list_scores([metrics for _, metrics in runs])))
        return 0

    def is_there(score: str) -> bool:
        return any(get_score(found, score) is not None for _, found in runs)

    for score in scores:
        if not is_there(score):
            rule = "must name scores of the runs, each of them a number"
            hint = "(--scores=list prints them)"
            raise ConfigError("scores", f"{rule} {hint}", score)
    scores = scores or list(filter(is_there, MAIN_SCORES))
    table = setting_table.tabulate_settings(runs, scores, find_limits)
    text = setting_table.format_markdown(table, scores)
    print(text, end="")
    if output:
        write_output(output, table, text)
    return 0


def list_scores(runs: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """What can be compared, a line each: path; label, unit, range if known."""
    paths = dict.fromkeys(path for metrics in runs for path in _walk(metrics))
    width = max(map(len, paths))
    for path in paths:
        if measure := find_metric(path):
            yield f"{path:{width}}  {measure.axis}, {measure.limits}"
        else:
            yield path


def _walk(numbers: Mapping[str, Any], above: str = "") -> Iterator[str]:
    for name, value in numbers.items():
        if isinstance(value, Mapping) and name != USER_METRICS:
            yield from _walk(value, f"{above}{name}/")
        elif isinstance(value, int | float) and not isinstance(value, bool):
            yield f"{above}{name}"


def read_runs(pattern: str) -> list[setting_table.FinishedRun]:
    """Flags and metrics of the finished runs among the folders.

    A run with damaged metrics is left out, which is said; a ConfigError if no
    run is left.
    """
    runs, damaged = [], []
    patterns = map(os.path.expanduser, split_names(pattern))
    for folder in sorted({f for p in patterns for f in glob.glob(p)}):
        try:
            config = check_run(folder)
            metrics = read_metrics(Path(folder))
            adopt_metrics(metrics.get(USER_METRICS, {}))
            if measures := read_run_metrics(Path(folder)):
                metrics = metrics | {"measures": measures}
        except DamagedFileError as error:
            damaged.append(str(error))
        except RunError:
            continue  # something else, or not finished
        else:
            runs.append((config.identity(), metrics))
    if not runs:
        why = f" ({damaged[0]})" if damaged else ""
        rule = f"must match at least one finished run{why}"
        raise ConfigError("runs", rule, pattern)
    for line in damaged:
        print(f"left out: {line}", file=sys.stderr)
    return runs


def write_output(path: str, table: pd.DataFrame, text: str) -> None:
    """Writes `<path>.csv` and `<path>.md`, or raises a RunError; the path may
    contain dots."""
    try:
        make_folder(Path(path).parent)
        write_table(Path(f"{path}.csv"), table)
        write_text(Path(f"{path}.md"), text)
    except OSError as error:
        raise RunError(f"--output must be writable: {error}") from error


def write_tables(pattern: str, output: str) -> int:
    """Writes the runs and their numbers, and prints how many there are."""
    check_folder("tables", output)
    tables = tfcomp.read_runs(*split_names(pattern))
    folder = Path(os.path.expanduser(output))
    try:
        make_folder(folder)
        for name, table in zip(("runs", "numbers"), tables, strict=True):
            write_table(folder / f"{name}.csv", table)
            print(f"{len(table):9,} {name:8} {folder / name}.csv")
    except OSError as error:
        raise RunError(f"--tables must be writable: {error}") from error
    return 0


if __name__ == "__main__":
    exit_on_user_error(main)
