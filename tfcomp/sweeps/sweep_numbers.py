"""Statistics over the seeds of a sweep, for its tables, figures and page."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from tfcomp.metrics.registry import find_limits, list_leading
from tfcomp.report.score_table import ScoredRun, read_scored
from tfcomp.report.verbalize import describe_common
from tfcomp.statistics import seed_statistics
from tfcomp.storage.run_folder import read_metrics
from tfcomp.sweeps.grid import SweepSettings, Trial, list_scores, read_result
from tfcomp.tables.flatten import ALL, END, Row

QUANTITIES = {
    "train/loss": "training loss",
    "id/relative_mse": "ID error (relative MSE)",
    "ood/relative_mse": "OOD error (relative MSE)",
}
MAX_EPOCHS = 200  # of a curve


@dataclass(frozen=True)
class SweepNumbers:
    """The numbers of a sweep, seed by seed and over seeds."""

    title: str
    flags: Sequence[str]  # that tell the settings apart
    seeds: pd.DataFrame  # a row for each setting, seed and score
    scores: pd.DataFrame  # for each setting and score: mean, sd, low, high, n
    curves: pd.DataFrame  # the same by `quantity` and `epoch`
    layers: pd.DataFrame  # the same by `quantity` and `stage`, a position
    paired: pd.DataFrame  # pairs of settings at equal seeds
    planned: Sequence[str]  # settings of all trials
    runs: Sequence[ScoredRun] = ()  # errors of finished trials
    common: str = ""  # data and model that all trials share, in a sentence


def compute_numbers(
    title: str, trials: Sequence[Trial], settings: SweepSettings
) -> SweepNumbers:
    """Computes all statistics of the finished trials of a sweep.

    Args:
        title: The name of the sweep.
        trials: All trials, finished or not, in the order of the grid.
        settings: Which settings are compared.
    """
    results = []
    for trial in trials:
        if rows := read_result(trial, history=True):
            results.append((trial, rows))

    flags = list(trials[0].setting)
    table = _tabulate(results, flags)
    seeds = _select_axis(table, "seed", "score")
    layers = _select_axis(table, "stage", "quantity")
    curves = _thin(_select_axis(table, "epoch", "quantity"))

    def summarize(rows: pd.DataFrame, *names: str) -> pd.DataFrame:
        keys = [*flags, *names]
        return seed_statistics.summarize(rows, keys, find_limits)

    by_stage = summarize(layers, "quantity", "stage")
    varied = seed_statistics.choose_flags([trial.setting for trial in trials])
    return SweepNumbers(
        title=title,
        flags=varied,
        seeds=seeds,
        scores=summarize(seeds, "score"),
        curves=summarize(curves, "quantity", "epoch"),
        layers=by_stage[by_stage["n"] > 0],  # a code may have no such number
        paired=seed_statistics.compare_settings(seeds, flags, settings.pairs),
        planned=[_label(trial, varied) for trial in trials],
        runs=[_read_scored(trial, varied) for trial, _ in results],
        common=describe_common([trial.config.identity() for trial in trials]),
    )


def _tabulate(
    results: Sequence[tuple[Trial, Sequence[Row]]], flags: Sequence[str]
) -> pd.DataFrame:
    """Makes a row for each number of each trial, with its place on an axis."""
    # What one seed of a setting has is NaN for a seed that lacks it.
    expected: dict[str, dict[str, float]] = {}
    for trial, numbers in results:
        scores = expected.setdefault(str(trial.setting), {})
        scores |= dict.fromkeys(list_scores(numbers), math.nan)

    rows = []
    for trial, numbers in results:
        setting = tuple(trial.setting.values())
        scores = expected[str(trial.setting)] | list_scores(numbers)
        for score, value in scores.items():
            rows.append((*setting, "seed", score, trial.seed, value))
        for number in _list_numbers(numbers):
            rows.append((*setting, *number))
    columns = [*flags, "axis", "name", "place", "value"]
    return pd.DataFrame(rows, columns=columns)


def _list_numbers(
    rows: Sequence[Row],
) -> Iterator[tuple[str, str, int, float]]:
    """Yields axis (stage or epoch), name, place on it, and value."""
    stages: dict[str, int] = {}
    leading = list_leading("stage", "stages")
    for when, subset, stage, name, value in rows:
        path = name
        if subset != ALL:
            path = f"{subset}/{name}"
        word, _, epoch = when.partition(" ")
        if word == "epoch" and path in QUANTITIES:
            yield "epoch", path, int(epoch), value
        elif when == END and stage:
            place = stages.setdefault(stage, len(stages))
            if name in leading:
                yield "stage", name, place, value


def _select_axis(table: pd.DataFrame, axis: str, name: str) -> pd.DataFrame:
    """Selects the numbers along an axis, and names their columns."""
    rows = table[table["axis"] == axis].drop(columns="axis")
    return rows.rename(columns={"place": axis, "name": name})


def _label(trial: Trial, flags: Sequence[str]) -> str:
    return seed_statistics.make_label(trial.setting, flags)


def _read_scored(trial: Trial, flags: Sequence[str]) -> ScoredRun:
    return read_scored(
        _label(trial, flags),
        trial.seed,
        read_metrics(trial.path),
        f"trials/{trial.name}/",
    )


def _thin(curves: pd.DataFrame) -> pd.DataFrame:
    """Keeps the rows of some epochs, with the first and the last."""
    epochs = np.unique(curves["epoch"].to_numpy(int))
    count = min(len(epochs), MAX_EPOCHS)
    places = np.linspace(0, len(epochs) - 1, count).round().astype(int)
    return curves[curves["epoch"].isin(epochs[places])]
