"""What came out of the trials: `trials.csv` and `timings.csv`.

Times differ from one run to the next; they have a file of their own, so that
`trials.csv` depends on nothing but the sweep.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tfcomp.files import write_csv
from tfcomp.run_folder import METRICS_FILE
from tfcomp.sweeps.trials import Trial

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
        failed = "failed" if trial.name in failures else "missing"
        row = {
            "trial": trial.name,
            "status": "finished" if trial.name in results else failed,
            "reason": failures.get(trial.name, ""),
            **trial.setting,
            "seed": trial.seed,
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
        row = {"trial": trial.name, **trial.setting, "seed": trial.seed}
        rows.append(row | {name: times.get(name) for name in TIMES})
    return rows


def write_tables(
    folder: Path,
    trials: Sequence[Trial],
    results: Mapping[str, dict[str, Any]],
    failures: Mapping[str, str],
) -> None:
    """Writes `trials.csv` and `timings.csv`, each in one step."""
    write_csv(folder / "trials.csv", make_rows(trials, results, failures))
    write_csv(folder / "timings.csv", make_timings(trials, results))


def _read_json(path: Path) -> dict[str, Any] | None:
    return json.loads(path.read_text("utf-8")) if path.exists() else None
