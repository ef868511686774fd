"""Numbers over seeds against the epoch of training, or the stage."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from collections.abc import Sequence
from typing import Any

import numpy as np

from tfcomp.statistics.seed_statistics import compute_interval
from tfcomp.sweeps.event_files import read_scalars
from tfcomp.sweeps.trials import Trial

# What TensorBoard calls it, and what a figure does.
QUANTITIES = {
    "train/loss": "training loss",
    "id/relative_mse": "ID error (relative MSE)",
    "ood/relative_mse": "OOD error (relative MSE)",
}
_MAX_POINTS = 200

Curves = dict[str, dict[int, list[float]]]


def read_curves(trials: Sequence[Trial]) -> dict[tuple, Curves]:
    """Reads all curves of finished trials, together for each setting.

    Returns:
        Values of a setting's flags -> tag -> epoch -> numbers of its seeds.
    """
    settings: dict[tuple, Curves] = {}
    for trial in trials:
        curves = settings.setdefault(tuple(trial.setting.values()), {})
        for tag, curve in read_scalars(trial.path, QUANTITIES).items():
            epochs = curves.setdefault(tag, {})
            for epoch, value in curve.items():
                epochs.setdefault(epoch, []).append(value)
    return settings


def tabulate_curves(
    names: Sequence[str], settings: Mapping[tuple, Curves]
) -> list[dict[str, Any]]:
    """One row a setting, quantity and epoch: mean, low, high (95 %), n.

    Args:
        names: The flags that the settings give values of.
        settings: What `read_curves` gives. Of a long curve at most 200
            epochs are taken, evenly, with the first and the last.
    """
    rows = []
    for values, curves in settings.items():
        setting = dict(zip(names, values, strict=True))
        for tag in QUANTITIES:
            for epoch in choose_epochs(sorted(curves.get(tag, ()))):
                row = {**setting, "quantity": tag, "epoch": epoch}
                rows.append(row | _summarize(curves[tag][epoch]))
    return rows


def tabulate_layers(
    names: Sequence[str],
    quantities: Sequence[str],
    rows: Sequence[Mapping[str, Any]],
) -> list[dict[str, Any]]:
    """One row a setting, quantity and stage: mean, low, high (95 %), n.

    Args:
        names: The flags that tell the settings.
        quantities: Columns of the rows to take.
        rows: One row a trial and stage, as `tables.make_layers` gives them.
    """
    groups: dict[tuple, list[float]] = {}
    for row, quantity in itertools.product(rows, quantities):
        if row.get(quantity) is not None:
            setting = tuple((name, row[name]) for name in names)
            key = (*setting, ("quantity", quantity), ("stage", row["position"]))
            groups.setdefault(key, []).append(row[quantity])
    return [dict(key) | _summarize(found) for key, found in groups.items()]


def choose_epochs(epochs: Sequence[int]) -> list[int]:
    """At most 200 of the epochs, evenly, with the first and the last."""
    if len(epochs) <= _MAX_POINTS:
        return list(epochs)
    chosen = np.linspace(0, len(epochs) - 1, _MAX_POINTS).round().astype(int)
    return [epochs[index] for index in chosen]


def _summarize(values: Sequence[float]) -> dict[str, Any]:
    low, high = compute_interval(values) or (None, None)
    mean = float(np.mean(values))
    return {"mean": mean, "low": low, "high": high, "n": len(values)}
