"""Compares finished runs over seeds.

    python -m tfcomp.compare --runs='tensorboard_logs/low_rank*'

groups runs that differ in nothing but their seed and prints mean and standard
deviation of their scores; --output also writes them as CSV (with 95 %
intervals) and Markdown.
"""

from __future__ import annotations

import glob
import json
from pathlib import Path
from typing import Any

from tfcomp.config.command import exit_on_user_error
from tfcomp.config.command import run_command
from tfcomp.config.errors import ConfigError
from tfcomp.config.errors import RunError
from tfcomp.config.run_flags import make_flags
from tfcomp.statistics.seed_statistics import Setting
from tfcomp.statistics.seed_statistics import format_markdown
from tfcomp.statistics.seed_statistics import get_score
from tfcomp.statistics.seed_statistics import group_by_setting
from tfcomp.statistics.seed_statistics import tabulate
from tfcomp.storage.files import write_csv
from tfcomp.storage.files import write_text
from tfcomp.storage.run_folder import METRICS_FILE
from tfcomp.storage.run_folder import check_run

FLAGS = {
    "runs": ("", "Run folders, a pattern with *."),
    "scores": (
        "id/mse,ood/mse,ood/relative_mse,ood/position_accuracy",
        "Scores by their path in metrics.json, separated by commas.",
    ),
    "output": ("", "Path without ending, for .csv and .md."),
}


def main(argv: list[str]) -> int:
    """The command; returns its exit status."""
    return run_command(argv, __doc__, make_flags(FLAGS), compare_runs)


def compare_runs(settings: dict[str, Any]) -> int:
    """Prints the table; needs no TensorFlow."""
    scores = [s.strip() for s in settings["scores"].split(",") if s.strip()]
    runs = read_runs(settings["runs"])
    for score in scores:
        if all(get_score(metrics, score) is None for _, metrics in runs):
            raise ConfigError("scores", "must name scores of the runs", score)
    settings_found = sorted(group_by_setting(runs), key=_order)
    rows = tabulate(settings_found, scores)
    text = format_markdown(rows, scores)
    print(text, end="")
    if settings["output"]:
        write_table(Path(settings["output"]), rows, text)
    return 0


def read_runs(pattern: str) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    """Flags and metrics of the finished runs among the folders.

    Raises:
        ConfigError: If there is none.
    """
    runs = []
    for folder in sorted(glob.glob(pattern)):
        try:
            config = check_run(folder)
        except RunError:
            continue  # something else, or not finished
        metrics = json.loads((Path(folder) / METRICS_FILE).read_text())
        runs.append((config.identity(), metrics))
    if not runs:
        rule = "must match at least one finished run"
        raise ConfigError("runs", rule, pattern)
    return runs


def _order(setting: Setting) -> list[tuple[bool, Any]]:
    # Numbers by size, then texts; not as folders happen to be named.
    return [(isinstance(v, str), v) for v in setting.flags.values()]


def write_table(path: Path, rows: list[dict[str, Any]], text: str) -> None:
    """Writes `<path>.csv` and `<path>.md`.

    Raises:
        RunError: If the folder cannot be written.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_csv(path.with_suffix(".csv"), rows)
        write_text(path.with_suffix(".md"), text)
    except OSError as error:
        raise RunError(f"--output must be writable: {error}") from error


if __name__ == "__main__":
    exit_on_user_error(main)
