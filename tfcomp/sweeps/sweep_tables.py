"""What came out of the trials, one row a trial.

trials.csv   settings, seeds, scores; what failed, and why
layers.csv   one row a trial and stage of its network
timings.csv  how long trainings took

Times differ from one run to the next, so that they have a file of their own.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tfcomp.evaluation.metric_files import OLD_FILE, read_run_metrics
from tfcomp.evaluation.metrics import USER_METRICS, adopt_metrics
from tfcomp.storage.files import write_table
from tfcomp.storage.run_folder import METRICS_FILE, find_metrics, select_scores
from tfcomp.sweeps.grid import Trial

if TYPE_CHECKING:
    import pandas as pd

TIMES = ("epochs", "seconds", "examples_per_second")
Results = Mapping[str, dict[str, Any]]  # of finished trials, by their names


def read_result(trial: Trial) -> dict[str, Any] | None:
    """The metrics and `measures` of a trial; None if unfinished or damaged."""
    metrics = find_metrics(trial.path)
    if metrics is None:
        return None
    adopt_metrics(metrics.get(USER_METRICS, {}))
    return metrics | {"measures": read_run_metrics(trial.path) or {}}


def stamp_result(trial: Trial) -> tuple[Any, ...]:
    """What differs when the files that `read_result` reads have changed."""
    stamps = []
    for name in (METRICS_FILE, OLD_FILE):
        with contextlib.suppress(OSError):
            found = os.stat(trial.path / name)
            stamps.append((name, found.st_mtime_ns, found.st_ino))
    return tuple(stamps)


def list_scores(result: Mapping[str, Any]) -> dict[str, float | None]:
    """Scores such as `ood_mse`, and other metrics that are single numbers."""
    scores = {
        f"{subset}_{name}": value
        for subset, values in select_scores(result).items()
        for name, value in values.items()
    }
    measures = {
        name: value
        for name, value in result["measures"].items()
        if value is None or isinstance(value, int | float)
    }
    return scores | measures


def tabulate_scores(trials: Sequence[Trial], results: Results) -> pd.DataFrame:
    """One row a trial and score (see `seed_statistics`), of finished trials."""
    from tfcomp.statistics.seed_statistics import stack_scores

    keys = [*trials[0].setting, "seed"]
    rows = [
        {**trial.setting, "seed": trial.seed} | list_scores(results[trial.name])
        for trial in trials
        if trial.name in results
    ]
    table = _make_table(rows, keys)
    return stack_scores(table, keys, table.columns[len(keys) :])


def tabulate_layers(trials: Sequence[Trial], results: Results) -> pd.DataFrame:
    """The numbers of every stage; `position` counts stages from the input."""
    return _make_table(
        {**_name(trial), "stage": stage, "position": position, **numbers}
        for trial in trials
        if trial.name in results
        for position, (stage, numbers) in enumerate(
            results[trial.name]["layers"].items()
        )
    )


def write_tables(
    folder: Path,
    trials: Sequence[Trial],
    results: Results,
    failures: Mapping[str, str],
) -> None:
    """Writes the tables, each in one step; those without a row vanish."""
    rows, timings = [], []
    for trial in trials:
        result = results.get(trial.name)
        status = "finished" if result else "missing"
        row = {
            "trial": trial.name,
            "status": "failed" if trial.name in failures else status,
            "reason": failures.get(trial.name, ""),
            **_name(trial),
        }
        rows.append(row | (list_scores(result) if result else {}))
        times = (result or {}).get("train", {})
        timings.append(_name(trial) | {name: times.get(name) for name in TIMES})
    update_table(folder / "trials.csv", _make_table(rows))
    update_table(folder / "layers.csv", tabulate_layers(trials, results))
    update_table(folder / "timings.csv", _make_table(timings))


def update_table(path: Path, table: pd.DataFrame) -> None:
    """Writes a table as CSV; an empty one removes what was written before."""
    if table.empty:
        path.unlink(missing_ok=True)
    else:
        write_table(path, table)


def _make_table(
    rows: Iterable[dict[str, Any]], columns: Sequence[str] | None = None
) -> pd.DataFrame:
    """A table of rows that may differ in what they have."""
    # A mistake in the flags should not wait for it.
    import pandas as pd

    # As objects, integers stay integers in a column with gaps.
    table = pd.DataFrame(list(rows), dtype=object)
    return table if len(table) else pd.DataFrame(columns=columns)


def _name(trial: Trial) -> dict[str, Any]:
    """The columns that every table begins with."""
    return {"trial": trial.name, **trial.setting, "seed": trial.seed}
