"""Computes the metrics of a finished run that `tfcomp measure` adds."""

import dataclasses
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from tfcomp.metrics.evaluator import Evaluator
from tfcomp.metrics.features import finite_or_none
from tfcomp.metrics.metric import Metric
from tfcomp.metrics.registry import (
    is_measured,
    list_metrics,
    write_run_metrics,
)
from tfcomp.metrics.run_analysis import RunAnalysis, reset
from tfcomp.models.loading import LoadedRun, load_run


def measure_run(path: str | Path, evaluators: Sequence[Evaluator] = ()) -> None:
    """Adds the metrics of a finished run to its `metrics.json`, if old."""
    path = Path(path)
    if is_measured(path):
        return
    run = load_run(path)
    metrics = compute_metrics(make_analysis(run, evaluators))
    start = compute_metrics(make_analysis(reset(run), evaluators))
    del start["stages"]
    write_run_metrics(path, metrics | {"start": start})


def make_analysis(
    run: LoadedRun, evaluators: Sequence[Evaluator]
) -> RunAnalysis:
    """Returns the analysis of a run, by a compatible evaluator if any."""
    for evaluator in evaluators:
        if evaluator.is_compatible(run.model, run.dataset):
            evaluator.model.set_weights(run.model.get_weights())
            run = dataclasses.replace(run, model=evaluator.model)
            return RunAnalysis(run, evaluator)
    return RunAnalysis(run)


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
