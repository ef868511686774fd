"""What came out of the trials, one row a trial.

trials.csv   settings, seeds, scores; what failed, and why
layers.csv   one row a trial and stage of its network
timings.csv  how long trainings took

Times differ from one run to the next; they have a file of their own, so that
the others depend on nothing but the sweep.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING
from typing import Any

from tfcomp.storage.files import write_csv
from tfcomp.storage.run_folder import METRICS_FILE
from tfcomp.sweeps.trials import Trial

if TYPE_CHECKING:
    from tfcomp.statistics.seed_statistics import Setting

MEASURES_FILE = "measures.json"
TIMES = ("epochs", "seconds", "examples_per_second")


def read_result(trial: Trial) -> dict[str, Any] | None:
    """The numbers of a finished trial; None before it is finished.

    Returns:
        `metrics.json`, with the content of `measures.json` under `measures`.
    """
    metrics = _read_json(trial.path / METRICS_FILE)
    if metrics is None:
        return None
    return metrics | {"measures": _read_json(trial.path / MEASURES_FILE) or {}}


def list_scores(result: Mapping[str, Any]) -> dict[str, float | None]:
    """Scores such as `ood_mse`, and measures that are single numbers."""
    scores = {
        f"{subset}_{name}": value
        for subset, values in result.items()
        if subset.startswith(("id", "ood"))
        for name, value in values.items()
    }
    measures = {
        name: value
        for name, value in result["measures"].items()
        if value is None or isinstance(value, int | float)
    }
    return scores | measures


def make_rows(
    trials: Sequence[Trial],
    results: Mapping[str, dict[str, Any]],
    failures: Mapping[str, str],
) -> list[dict[str, Any]]:
    """One row a trial, in the order of the grid.

    Args:
        trials: The trials.
        results: What `read_result` gives, by name of the finished trials.
        failures: Reasons, by name of the trials that failed.
    """
    scores = {name: list_scores(result) for name, result in results.items()}
    # Trials may differ in what they have; the order is that of the grid.
    columns: dict[str, None] = {}
    for trial in trials:
        columns |= dict.fromkeys(scores.get(trial.name, ()))
    rows = []
    for trial in trials:
        status = "finished" if trial.name in results else "missing"
        row = {
            "trial": trial.name,
            "status": "failed" if trial.name in failures else status,
            "reason": failures.get(trial.name, ""),
            **_name(trial),
        }
        found = scores.get(trial.name, {})
        rows.append(row | {name: found.get(name) for name in columns})
    return rows


def make_timings(
    trials: Sequence[Trial], results: Mapping[str, dict[str, Any]]
) -> list[dict[str, Any]]:
    """How long the training of each trial took, in seconds."""
    rows = []
    for trial in trials:
        times = results.get(trial.name, {}).get("train", {})
        rows.append(_name(trial) | {name: times.get(name) for name in TIMES})
    return rows


def make_layers(
    trials: Sequence[Trial], results: Mapping[str, dict[str, Any]]
) -> list[dict[str, Any]]:
    """The numbers of every stage; `position` counts stages from the input."""
    rows = [
        {**_name(trial), "stage": stage, "position": position, **numbers}
        for trial in trials
        if trial.name in results
        for position, (stage, numbers) in enumerate(
            results[trial.name]["layers"].items()
        )
    ]
    columns = dict.fromkeys(name for row in rows for name in row)
    return [dict.fromkeys(columns) | row for row in rows]


def write_tables(
    folder: Path,
    trials: Sequence[Trial],
    results: Mapping[str, dict[str, Any]],
    failures: Mapping[str, str],
) -> None:
    """Writes the tables, each in one step; those without a row vanish."""
    write_table(folder / "trials.csv", make_rows(trials, results, failures))
    write_table(folder / "layers.csv", make_layers(trials, results))
    write_table(folder / "timings.csv", make_timings(trials, results))


def write_table(path: Path, rows: Sequence[dict[str, Any]]) -> None:
    """Writes rows as CSV; without any, removes what an earlier start wrote."""
    if rows:
        write_csv(path, rows)
    else:
        path.unlink(missing_ok=True)


def group_trials(
    trials: Sequence[Trial], results: Mapping[str, dict[str, Any]]
) -> list[Setting]:
    """The scores of finished trials by setting, in the order of the grid."""
    # It brings SciPy, which a mistake in the flags should not wait for.
    from tfcomp.statistics.seed_statistics import Setting

    groups: dict[tuple, Setting] = {}
    for trial in trials:
        if trial.name in results:
            key = tuple(trial.setting.values())
            group = groups.setdefault(key, Setting(trial.setting, [], []))
            group.seeds.append(trial.seed)
            group.metrics.append(list_scores(results[trial.name]))
    return list(groups.values())


def list_columns(settings: Sequence[Setting]) -> list[str]:
    """All scores that any of the settings has."""
    scores = (metrics for setting in settings for metrics in setting.metrics)
    return list(dict.fromkeys(name for metrics in scores for name in metrics))


def _name(trial: Trial) -> dict[str, Any]:
    """The columns that every table begins with."""
    return {"trial": trial.name, **trial.setting, "seed": trial.seed}


def _read_json(path: Path) -> dict[str, Any] | None:
    return json.loads(path.read_text("utf-8")) if path.exists() else None
