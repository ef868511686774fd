"""Compares finished runs over seeds.

    tfcomp compare tensorboard_logs/low_rank*

groups runs that differ in nothing but their seed and prints mean and standard
deviation of their scores; --output also writes them as CSV (with 95 %
intervals) and Markdown.
"""

from __future__ import annotations

import glob
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tfcomp.config.command import exit_on_user_error, run_command
from tfcomp.config.errors import ConfigError, RunError
from tfcomp.config.run_flags import make_flags
from tfcomp.evaluation.measure_files import read_measures
from tfcomp.statistics.measure import OWN_MEASURES, adopt_measures, find_measure
from tfcomp.statistics.seed_statistics import get_score
from tfcomp.statistics.setting_table import (
    FinishedRun,
    format_markdown,
    tabulate_settings,
)
from tfcomp.storage.files import DamagedFileError, write_table, write_text
from tfcomp.storage.run_folder import check_run, read_metrics
from tfcomp.storage.run_search import split_patterns

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
        "measures.json begin with measures/. With list, what there is; by "
        "default the main ones that the runs have.",
    ),
    "output": ("", "Path without ending, for .csv and .md."),
}


def main(argv: list[str]) -> int:
    """The command; returns its exit status."""
    return run_command(argv, __doc__, make_flags(FLAGS), compare_runs)


def compare_runs(settings: dict[str, Any]) -> int:
    """Prints the table; needs no TensorFlow."""
    output = settings["output"]
    if output and os.path.basename(output) in ("", ".", ".."):
        raise ConfigError("output", "must end with a name", output)
    scores = [s.strip() for s in settings["scores"].split(",") if s.strip()]
    runs = read_runs(settings["runs"])
    if scores == ["list"]:
        print("\n".join(list_scores([metrics for _, metrics in runs])))
        return 0
    there = {
        score
        for score in {*scores, *MAIN_SCORES}
        if any(get_score(metrics, score) is not None for _, metrics in runs)
    }
    scores = scores or [score for score in MAIN_SCORES if score in there]
    for score in scores:
        if score not in there:
            rule = (
                "must name scores of the runs, each of them a number "
                "(--scores=list prints them)"
            )
            raise ConfigError("scores", rule, score)
    table = tabulate_settings(runs, scores)
    text = format_markdown(table, scores)
    print(text, end="")
    if output:
        write_output(output, table, text)
    return 0


def list_scores(runs: Sequence[Mapping[str, Any]]) -> list[str]:
    """What can be compared, a line each: path, what it is, range, unit."""
    paths = dict.fromkeys(path for metrics in runs for path in _walk(metrics))
    width = max(map(len, paths))
    return [
        f"{path:{width}}  {describe_score(path)}".rstrip() for path in paths
    ]


def describe_score(path: str) -> str:
    """The label of a score, its unit and its range, as far as declared."""
    measure = find_measure(path)
    if measure is None:
        return ""
    unit = f" ({measure.unit})" if measure.unit else ""
    return f"{measure.label}{unit}, {measure.limits}"


def _walk(numbers: Mapping[str, Any], above: str = "") -> Iterator[str]:
    for name, value in numbers.items():
        if isinstance(value, Mapping) and name != OWN_MEASURES:
            yield from _walk(value, f"{above}{name}/")
        elif isinstance(value, int | float) and not isinstance(value, bool):
            yield f"{above}{name}"


def read_runs(pattern: str) -> list[FinishedRun]:
    """Flags and metrics of the finished runs among the folders.

    With the content of `measures.json`, where there is one, as `measures`. The
    pattern may be several, separated by commas.

    A run with damaged metrics is left out, which is said.

    Raises:
        ConfigError: If there is none.
    """
    runs = []
    patterns = map(os.path.expanduser, split_patterns(pattern))
    for folder in sorted({f for p in patterns for f in glob.glob(p)}):
        try:
            config = check_run(folder)
            metrics = read_metrics(Path(folder))
            adopt_measures(metrics.get(OWN_MEASURES, {}))
            if measures := read_measures(Path(folder)):
                metrics = metrics | {"measures": measures}
        except DamagedFileError as error:
            print(f"left out: {error}", file=sys.stderr)
        except RunError:
            continue  # something else, or not finished
        else:
            runs.append((config.identity(), metrics))
    if not runs:
        rule = "must match at least one finished run"
        raise ConfigError("runs", rule, pattern)
    return runs


def write_output(path: str, table: pd.DataFrame, text: str) -> None:
    """Writes `<path>.csv` and `<path>.md`; the path may contain dots.

    Raises:
        RunError: If the folder cannot be written.
    """
    try:
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        write_table(Path(f"{path}.csv"), table)
        write_text(Path(f"{path}.md"), text)
    except OSError as error:
        raise RunError(f"--output must be writable: {error}") from error


if __name__ == "__main__":
    exit_on_user_error(main)
