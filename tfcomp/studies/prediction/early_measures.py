"""The measures of a network as numbers, those of ID points apart.

Everything in `measures.json` (`tfcomp.evaluation.measures`) is taken twice:
over all points, which looks at held-out combinations, and over a grid that
has the ID points alone, which cannot. A list with a number per stage becomes
its mean over hidden stages and its last hidden number.
"""

import dataclasses
from typing import Any

import numpy as np

from tfcomp.config.run_config import RunConfig
from tfcomp.datasets.dataset import Dataset
from tfcomp.evaluation.evaluator import Evaluator
from tfcomp.evaluation.loading import LoadedRun
from tfcomp.evaluation.measures import measure_study
from tfcomp.evaluation.study import Study
from tfcomp.studies.prediction.predict_settings import ALL_POINTS, ID_ONLY


def measure_network(
    config: RunConfig, dataset: Dataset, evaluator: Evaluator
) -> dict[str, float]:
    """All numbers of a network by name, `id.` or `all.` first.

    The evaluator's functions are traced once for all networks alike; to draw
    a few hundred points takes less time than to trace.
    """
    views = {ID_ONLY: forget_held_out(dataset), ALL_POINTS: dataset}
    return {
        prefix + name: value
        for prefix, view in views.items()
        for name, value in _measure(config, view, evaluator).items()
    }


def forget_held_out(dataset: Dataset) -> Dataset:
    """The data as if held-out combinations did not exist."""
    splits = dataset.splits
    splits = dataclasses.replace(
        splits,
        points=splits.points[splits.is_id],
        is_complete=False,
        existing=None,
        is_streamed=False,
    )
    return dataclasses.replace(dataset, splits=splits)


def _measure(
    config: RunConfig, dataset: Dataset, evaluator: Evaluator
) -> dict[str, float]:
    run = LoadedRun(None, config, dataset, evaluator.model, {}, "")
    measures = measure_study(Study(run, evaluator, is_repeated=True))
    stages = measures.pop("stages")
    numbers: dict[str, float] = {}
    for name, value in measures.items():
        # Where there are ID points alone, those of ID points are all.
        is_double = name.removesuffix("_id") in measures.keys() - {name}
        if dataset.splits.is_ood.any() or not is_double:
            numbers |= _flatten(name, value, stages)
    return numbers


def _flatten(name: str, value: Any, stages: list[str]) -> dict[str, float]:
    if isinstance(value, int | float):
        return {name: round_number(value)}
    if not isinstance(value, list) or len(value) != len(stages):
        return {}
    pairs = zip(stages, value, strict=True)
    hidden = [v for s, v in pairs if s.startswith("stage_") and v is not None]
    if not hidden:
        return {}
    return {
        f"{name}.mean": round_number(np.mean(hidden)),
        f"{name}.last": round_number(hidden[-1]),
    }


def round_number(value: float) -> float:
    """Six digits, which is what a file of a thousand networks has room for."""
    return float(f"{value:.6g}")
