"""Compares finished runs over seeds.

    tfcomp compare tensorboard_logs/low_rank*

groups runs that differ in nothing but their seed and prints mean and standard
deviation of their scores; --output also writes them as CSV (with 95 %
intervals) and Markdown. `--tables=FOLDER` writes every flag and number of the
runs instead, as runs.csv and numbers.csv (see `tfcomp.tables`); packed evidence
and sweeps may be named there.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import tfcomp
from tfcomp.config.command import Command
from tfcomp.config.errors import ConfigError, suggest
from tfcomp.config.run_config import split_names
from tfcomp.metrics.registry import adopt_metrics, find_limits
from tfcomp.statistics import seed_statistics
from tfcomp.storage.files import make_folder, write_table, write_text
from tfcomp.storage.output_folders import check_folder
from tfcomp.tables.flatten import NO_FLAGS
from tfcomp.tables.read import read_finished

if TYPE_CHECKING:
    import pandas as pd

MAIN_SCORES = (
    "id/mse id/relative_mse ood/mse ood/relative_mse ood/hit_rate "
    "ood/position_accuracy"
).split()
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
    """Prints the table; needs no TensorFlow."""
    output = settings["output"].removesuffix(".csv").removesuffix(".md")
    if settings["tables"]:
        return _write_tables(settings["runs"], settings["tables"])
    results = read_finished(split_names(settings["runs"]), history=False)
    adopt_metrics(results.own_metrics)
    numbers = results.scores.dropna(axis=1, how="all")
    scores = split_names(settings["scores"])
    for score in scores:
        if score not in numbers:
            known = list(numbers.columns)
            rule = f"must name scores of the runs{suggest(score, known)}"
            raise ConfigError("scores", rule, score)
    scores = scores or [score for score in MAIN_SCORES if score in numbers]
    table = tabulate_settings(results.runs, numbers, scores)
    text = _format_markdown(table, scores)
    print(text, end="")
    if output:
        make_folder(Path(output).parent)
        write_table(Path(f"{output}.csv"), table)
        write_text(Path(f"{output}.md"), text)
    return 0


def tabulate_settings(
    runs: pd.DataFrame, numbers: pd.DataFrame, scores: Sequence[str]
) -> pd.DataFrame:
    """Returns a row for each setting: flags that vary, seeds, statistics."""
    import pandas as pd

    flags = [name for name in runs if name not in NO_FLAGS]
    varied = [name for name in flags if runs[name].nunique(dropna=False) > 1]
    rows = []
    groups = runs.groupby(varied or ["setting"], dropna=False)
    for setting, group in groups:
        row = dict(zip(varied, setting, strict=False)) | {"seeds": len(group)}
        for score in scores:
            limits = find_limits(score)
            values = numbers.loc[group["run"], score].tolist()
            found = seed_statistics.compute_statistics(values, limits)
            columns = (f"{score} {n}" for n in ("mean", "sd", "low", "high"))
            known = seed_statistics.list_numbers(found)
            row |= zip(columns, known, strict=True)
        rows.append(row)
    return pd.DataFrame(rows, dtype=object)


def _format_markdown(table: pd.DataFrame, scores: Sequence[str]) -> str:
    """Formats a table in Markdown, mean ± standard deviation."""
    names = list(table.columns[: len(table.columns) - 4 * len(scores)])
    rows = [
        [row[name] for name in names]
        + [_format(row[f"{s} mean"], row[f"{s} sd"]) for s in scores]
        for row in table.to_dict("records")
    ]
    return seed_statistics.format_rows([[*names, *scores], *rows])


def _format(mean: float | None, spread: float | None) -> str:
    if mean is None:
        return "–"
    return f"{mean:.3g}" + ("" if spread is None else f" ± {spread:.2g}")


def _write_tables(pattern: str, output: str) -> int:
    check_folder("tables", output)
    tables = tfcomp.read_runs(*split_names(pattern))
    folder = make_folder(Path(output))
    for name, table in zip(("runs", "numbers"), tables, strict=True):
        write_table(folder / f"{name}.csv", table)
        print(f"{len(table):9,} {name:8} {folder / name}.csv")
    return 0


main = Command(__doc__, FLAGS, compare_runs)
