"""Statistics over the seeds of a sweep, for its tables, figures and page."""

import math
from collections.abc import Iterator, Mapping, Sequence
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
    """Computes all statistics of the finished trials of a sweep."""
    flags = list(trials[0].setting)
    results = [(trial, read_result(trial, history=True)) for trial in trials]
    results = [(trial, result) for trial, result in results if result]
    known: dict[str, dict[str, float]] = {}  # scores that a seed has, as NaN
    for trial, result in results:
        scores = known.setdefault(str(trial.setting), {})
        scores |= dict.fromkeys(list_scores(result), math.nan)
    rows = [
        (*trial.setting.values(), *number)
        for trial, result in results
        for number in _list_numbers(trial, result, known[str(trial.setting)])
    ]
    columns = [*flags, "axis", "name", "place", "value"]
    table = pd.DataFrame(rows, columns=columns)
    seeds, layers, curves = (
        table[table["axis"] == axis]
        .drop(columns="axis")
        .rename(columns={"place": axis, "name": name})
        for axis, name in (
            ("seed", "score"),
            ("stage", "quantity"),
            ("epoch", "quantity"),
        )
    )
    by_stage = seed_statistics.summarize(
        layers, [*flags, "quantity", "stage"], find_limits
    )
    varied = seed_statistics.choose_flags([trial.setting for trial in trials])
    return SweepNumbers(
        title,
        varied,
        seeds,
        seed_statistics.summarize(seeds, [*flags, "score"], find_limits),
        seed_statistics.summarize(
            _thin(curves), [*flags, "quantity", "epoch"], find_limits
        ),
        by_stage[by_stage["n"] > 0],  # a code may have no such number
        seed_statistics.compare_settings(seeds, flags, settings.pairs),
        [seed_statistics.make_label(t.setting, varied) for t in trials],
        [
            read_scored(
                seed_statistics.make_label(trial.setting, varied),
                trial.seed,
                read_metrics(trial.path),
                f"trials/{trial.name}/",
            )
            for trial, _ in results
        ],
        describe_common([trial.config.identity() for trial in trials]),
    )


def _list_numbers(
    trial: Trial, rows: Sequence[Row], scores: Mapping[str, float]
) -> Iterator[tuple[str, str, int, float]]:
    """Yields axis (seed, stage or epoch), name, place on it, and value."""
    stages: dict[str, int] = {}
    leading = list_leading("stage", "stages")
    for when, subset, stage, name, value in rows:
        path = name if subset == ALL else f"{subset}/{name}"
        word, _, epoch = when.partition(" ")
        if word == "epoch" and path in QUANTITIES:
            yield "epoch", path, int(epoch), value
        elif when == END and stage:
            place = stages.setdefault(stage, len(stages))
            if name in leading:
                yield "stage", name, place, value
    for score, value in {**scores, **list_scores(rows)}.items():
        yield "seed", score, trial.seed, value


def _thin(curves: pd.DataFrame) -> pd.DataFrame:
    """Returns the rows of some epochs, with the first and the last."""
    epochs = np.unique(curves["epoch"].to_numpy(int))
    count = min(len(epochs), MAX_EPOCHS)
    chosen = np.linspace(0, len(epochs) - 1, count).round().astype(int)
    return curves[curves["epoch"].isin(epochs[chosen])]
