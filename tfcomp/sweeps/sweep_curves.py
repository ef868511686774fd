"""Numbers over seeds against the epoch of training, or the stage."""

from collections.abc import Iterator, Sequence

import numpy as np
import pandas as pd

from tfcomp.statistics.seed_statistics import stack_scores, summarize
from tfcomp.storage.run_folder import HISTORY_FILE
from tfcomp.sweeps.grid import Trial
from tfcomp.training.history import read_history

# What TensorBoard calls it, and what a figure does.
QUANTITIES = {
    "train/loss": "training loss",
    "id/relative_mse": "ID error (relative MSE)",
    "ood/relative_mse": "OOD error (relative MSE)",
}
# Points of a curve; those of all trials together take some 100 MB.
_MAX_POINTS, _MIN_POINTS, _MAX_ROWS = 200, 10, 10**5


def summarize_curves(trials: Sequence[Trial]) -> pd.DataFrame:
    """One row a setting, quantity and epoch: mean, sd, low, high (95 %), n.

    A trial that was trained before runs wrote their history has no curves.
    """
    most = min(_MAX_POINTS, max(_MIN_POINTS, _MAX_ROWS // len(trials)))
    rows = [
        (*trial.setting.values(), *point)
        for trial in trials
        for point in read_curves(trial, most)
    ]
    keys = [*trials[0].setting, "quantity", "epoch"]
    table = pd.DataFrame(rows, columns=[*keys, "value"])
    return summarize(table, keys) if rows else table


def read_curves(trial: Trial, most: int) -> Iterator[tuple[str, int, float]]:
    """The curves of a trial: quantity, epoch and value of the points."""
    history = read_history(trial.path / HISTORY_FILE)
    for tag in QUANTITIES:
        points = [(e, row[tag]) for e, row in history.items() if tag in row]
        for index in choose_points(len(points), most):
            yield tag, *points[index]


def summarize_layers(
    table: pd.DataFrame, flags: Sequence[str], quantities: Sequence[str]
) -> pd.DataFrame:
    """One row a setting, quantity and stage: mean, sd, low, high (95 %), n.

    Args:
        table: One row a trial and stage (`sweep_tables.tabulate_layers`).
        flags: The flags that tell the settings apart.
        quantities: Columns to take, where they exist.
    """
    if table.empty:
        return table
    found = [name for name in quantities if name in table]
    keys = [*flags, "position"]
    numbers = stack_scores(table, keys, found).dropna(subset="value")
    numbers = numbers.rename(columns={"score": "quantity", "position": "stage"})
    keys = [*flags, "quantity", "stage"]
    return summarize(numbers, keys)


def choose_points(count: int, most: int) -> np.ndarray:
    """At most `most` of the points, evenly, with the first and the last."""
    chosen = np.linspace(0, count - 1, min(count, most))
    return chosen.round().astype(int)
