"""Computes the metrics of a finished run that `tfcomp measure` adds."""

import dataclasses
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from tfcomp.metrics.features import finite_or_none
from tfcomp.metrics.metric import Metric
from tfcomp.metrics.registry import (
    is_measured,
    list_metrics,
    write_run_metrics,
)
from tfcomp.metrics.run_analysis import RunAnalysis, reset
from tfcomp.metrics.traced_model import TracedModel
from tfcomp.models.loading import LoadedRun, load_run


def measure_run(path: str | Path, traced: Sequence[TracedModel] = ()) -> None:
    """Adds the metrics of a finished run to its `metrics.json`, if old."""
    path = Path(path)
    if is_measured(path):
        return
    run = load_run(path)
    metrics = compute_metrics(make_analysis(run, traced))
    start = compute_metrics(make_analysis(reset(run), traced))
    del start["stages"]
    write_run_metrics(path, metrics | {"start": start})


def make_analysis(run: LoadedRun, traced: Sequence[TracedModel]) -> RunAnalysis:
    """Returns the analysis of a run, by a compatible traced model if any."""
    seed = run.config.training.seed
    for known in traced:
        if known.is_compatible(run.model, run.dataset.space):
            known.model.set_weights(run.model.get_weights())
            run = dataclasses.replace(run, model=known.model)
            return RunAnalysis(known, run.dataset, seed=seed, run=run)
    return RunAnalysis.of_run(run)


def compute_metrics(analysis: RunAnalysis) -> dict[str, Any]:
    """Computes all metrics that apply to a run, and the names of its stages."""
    numbers: dict[str, Any] = {"stages": analysis.stages}
    for function in _list_functions(list_metrics("run")):
        for name, value in function(analysis).items():
            is_list = isinstance(value, list)
            plain = map(finite_or_none, value if is_list else [value])
            numbers[name] = [*plain] if is_list else next(plain)
    rows = _compute_stages(analysis, list_metrics("stages")).values()
    for name in dict.fromkeys(name for row in rows for name in row):
        numbers[name] = [finite_or_none(row.get(name)) for row in rows]
    return numbers


def tabulate_stages(
    analysis: RunAnalysis, names: Sequence[str]
) -> dict[str, dict[str, float | None]]:
    """Returns some metrics of every stage, None where it has none."""
    summary = analysis.layers.summary
    missing = set(names).difference(*summary.values())
    metrics = [m for m in list_metrics("stages") if m.name in missing]
    return {
        stage: {n: finite_or_none((row | summary[stage]).get(n)) for n in names}
        for stage, row in _compute_stages(analysis, metrics).items()
    }


def _compute_stages(
    analysis: RunAnalysis, metrics: Sequence[Metric]
) -> dict[str, dict[str, float | None]]:
    rows: dict[str, dict[str, float | None]] = {s: {} for s in analysis.stages}
    for function in _list_functions(metrics):
        for stage, row in function(analysis).items():
            rows[stage] |= row
    return rows


def _list_functions(metrics: Sequence[Metric]) -> list[Callable[..., Any]]:
    return [*dict.fromkeys(m.function for m in metrics if m.function)]
