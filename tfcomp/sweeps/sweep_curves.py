"""Numbers over seeds against the epoch of training, or the stage."""

from collections.abc import Sequence

import numpy as np
import pandas as pd

from tfcomp.statistics.seed_statistics import stack_scores, summarize
from tfcomp.storage.run_folder import HISTORY_FILE
from tfcomp.sweeps.trials import Trial
from tfcomp.training.history import read_history

# What TensorBoard calls it, and what a figure does.
QUANTITIES = {
    "train/loss": "training loss",
    "id/relative_mse": "ID error (relative MSE)",
    "ood/relative_mse": "OOD error (relative MSE)",
}
_MAX_POINTS = 200


def summarize_curves(trials: Sequence[Trial]) -> pd.DataFrame:
    """One row a setting, quantity and epoch: mean, low, high (95 %), n.

    A trial that was trained before runs wrote their history has no curves.
    """
    curves = [
        curve.assign(**trial.setting)
        for trial in trials
        for curve in read_curves(trial)
    ]
    if not curves:
        return pd.DataFrame()
    keys = [*trials[0].setting, "quantity", "epoch"]
    return summarize(pd.concat(curves), keys).drop(columns="sd")


def read_curves(trial: Trial) -> list[pd.DataFrame]:
    """The curves of a trial: its quantities, each with `epoch` and `value`."""
    history = read_history(trial.path / HISTORY_FILE)
    curves = []
    for tag in QUANTITIES:
        points = [(e, row[tag]) for e, row in history.items() if tag in row]
        if points:
            curve = pd.DataFrame(points, columns=["epoch", "value"])
            curve = curve.iloc[choose_points(len(curve))]
            curves.append(curve.assign(quantity=tag))
    return curves


def summarize_layers(
    table: pd.DataFrame, flags: Sequence[str], quantities: Sequence[str]
) -> pd.DataFrame:
    """One row a setting, quantity and stage: mean, low, high (95 %), n.

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
    return summarize(numbers, keys).drop(columns="sd")


def choose_points(count: int) -> np.ndarray:
    """At most 200 of so many points, evenly, with the first and the last."""
    chosen = np.linspace(0, count - 1, min(count, _MAX_POINTS))
    return chosen.round().astype(int)
