"""Compares finished runs over seeds.

    tfcomp compare tensorboard_logs/low_rank*

groups runs that differ in nothing but their seed and prints mean and standard
deviation of their scores; --output also writes them as CSV (with 95 %
intervals) and Markdown. `--tables=FOLDER` writes every flag and number of the
runs instead, as runs.csv and numbers.csv (see `tfcomp.tables`); packed evidence
and sweeps may be named there.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import tfcomp
from tfcomp.config.errors import ConfigError, suggest
from tfcomp.config.run_flags import Command
from tfcomp.config.settings import split_names, split_paths
from tfcomp.metrics.registry import adopt_metrics, find_limits
from tfcomp.statistics import seed_statistics
from tfcomp.storage.files import (
    check_folder,
    make_folder,
    write_table,
    write_text,
)
from tfcomp.tables.read import find_varied, read_finished

if TYPE_CHECKING:
    import pandas as pd

MAIN_SCORES = (
    "id/mse id/relative_mse ood/mse ood/relative_mse ood/hit_rate "
    "ood/position_accuracy"
).split()
STATISTICS = ("mean", "sd", "low", "high")
FLAGS = {
    "runs": ("", "Run folders, patterns with *, separated by commas."),
    "scores": (
        "",
        "Scores, separated by commas, as ood/mse or "
        "layers/image/factorization; by default the main ones.",
    ),
    "output": ("", "Path for .csv and .md; an ending of these is dropped."),
    "tables": ("", "A folder for runs.csv and numbers.csv."),
}


def compare_runs(settings: dict[str, Any]) -> int:
    """Prints the table; needs no TensorFlow.

    Raises:
        ConfigError: The runs have no such score, or the path has no name.
    """
    patterns = split_paths(settings["runs"])
    if settings["tables"] and settings["output"]:
        rule = "must be left out beside --tables, which writes no other table"
        raise ConfigError("output", rule, settings["output"])
    if settings["tables"]:
        return _write_tables(patterns, settings["tables"])
    output = settings["output"].removesuffix(".csv").removesuffix(".md")
    if settings["output"] and not os.path.basename(output):
        # Else the tables would be hidden files, `.csv` and `.md`.
        rule = "must end with a name for .csv and .md, as tables/runs"
        raise ConfigError("output", rule, settings["output"])

    results = read_finished(patterns, history=False)
    adopt_metrics(results.own_metrics)
    numbers = results.scores.dropna(axis=1, how="all")
    scores = split_names(settings["scores"])
    for score in scores:
        if score not in numbers:
            hint = suggest(score, numbers.columns)
            rule = f"must name scores of the runs{hint}"
            raise ConfigError("scores", rule, score)
    if not scores:
        scores = [score for score in MAIN_SCORES if score in numbers]

    table = tabulate_settings(results.runs, numbers, scores)
    text = _format_markdown(table, scores)
    print(text, end="")
    if output:
        make_folder(Path(output).parent)
        write_table(Path(f"{output}.csv"), table)
        write_text(Path(f"{output}.md"), text)
    return 0


def tabulate_settings(
    runs: pd.DataFrame,
    numbers: pd.DataFrame,
    scores: Sequence[str],
) -> pd.DataFrame:
    """Computes statistics of scores over the seeds of each setting.

    Args:
        runs: The flags of runs, a row each, as `Results.runs`.
        numbers: Their scores, with the names of runs as the index.
        scores: Columns of `numbers`.

    Returns:
        A row for each setting: flags that vary, the number of seeds, and of
        each score the mean, standard deviation, and 95 % interval.
    """
    import pandas as pd

    varied = find_varied(runs)
    rows = []
    for setting, group in runs.groupby(varied or ["setting"], dropna=False):
        row = dict(zip(varied, setting, strict=False))
        row["seeds"] = len(group)
        for score in scores:
            values = numbers.loc[group["run"], score].tolist()
            limits = find_limits(score)
            statistics = seed_statistics.compute_statistics(values, limits)
            cells = seed_statistics.list_numbers(statistics)
            for name, number in zip(STATISTICS, cells, strict=True):
                row[f"{score} {name}"] = number
        rows.append(row)
    return pd.DataFrame(rows, dtype=object)


def _format_markdown(table: pd.DataFrame, scores: Sequence[str]) -> str:
    """Formats a table in Markdown, mean ± standard deviation."""
    columns = list(table.columns)
    num_flags = len(columns) - len(STATISTICS) * len(scores)
    flags = columns[:num_flags]
    lines = [[*flags, *scores]]
    for row in table.to_dict("records"):
        line = [row[name] for name in flags]
        for score in scores:
            mean = row[f"{score} mean"]
            deviation = row[f"{score} sd"]
            line.append(_format(mean, deviation))
        lines.append(line)
    return seed_statistics.format_rows(lines)


def _format(mean: float | None, deviation: float | None) -> str:
    if mean is None:
        return "–"
    if deviation is None:
        return f"{mean:.3g}"
    return f"{mean:.3g} ± {deviation:.2g}"


def _write_tables(patterns: Sequence[str], output: str) -> int:
    """Writes all flags and numbers of runs as CSV."""
    check_folder("tables", output)
    tables = tfcomp.read_runs(*patterns)
    folder = make_folder(Path(output))
    names = ("runs", "numbers")
    for name, table in zip(names, tables, strict=True):
        path = folder / f"{name}.csv"
        write_table(path, table)
        print(f"{len(table):9,} {name:8} {path}")
    return 0


main = Command(
    purpose=__doc__,
    table=FLAGS,
    action=compare_runs,
)
