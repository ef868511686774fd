"""The numbers of trials, and `trials.csv`, which has them while a sweep runs.

All numbers are rows of the table of `tfcomp.tables`.
"""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from tfcomp.config.errors import RunError
from tfcomp.evaluation.metrics import adopt_metrics
from tfcomp.storage.files import write_csv
from tfcomp.sweeps.grid import Trial
from tfcomp.tables.flatten import ALL, END, Row
from tfcomp.tables.read import read_run

# Numbers of finished trials, by their names.
Results = Mapping[str, Sequence[Row]]


def read_result(trial: Trial, history: bool = False) -> list[Row]:
    """Reads the numbers of a trial; none if it is unfinished or damaged."""
    try:
        run = read_run(trial.path, history)
    except (OSError, ValueError, RunError):
        return []
    adopt_metrics(run.own_metrics)
    return run.numbers


def list_scores(rows: Iterable[Row]) -> dict[str, float]:
    """Returns scores such as `ood_mse`, and measures that are one number."""
    return {
        name if subset == ALL else f"{subset}_{name}": value
        for when, subset, stage, name, value in rows
        if when == END and not stage and (subset != ALL or "/" not in name)
    }


def write_trials(
    folder: Path,
    trials: Sequence[Trial],
    results: Results,
    failures: Mapping[str, str],
) -> None:
    """Writes `trials.csv`: settings, seeds, scores; reasons of failures."""
    rows: list[dict[str, Any]] = []
    for trial in trials:
        result = results.get(trial.name, ())
        status = "finished" if result else "missing"
        row = {
            "trial": trial.name,
            "status": "failed" if trial.name in failures else status,
            "reason": failures.get(trial.name, ""),
            **trial.setting,
            "seed": trial.seed,
        }
        scores = list_scores(result).items()
        rows.append(row | {name: x for name, x in scores if x == x})  # no NaN
    names = dict.fromkeys(name for row in rows for name in row)
    table = [{name: row.get(name, "") for name in names} for row in rows]
    write_csv(folder / "trials.csv", table)
