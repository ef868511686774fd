"""Computes the metrics of a finished run for `tfcomp analyze --measure`."""

import dataclasses
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from tfcomp.metrics.features import Scores, finite_or_none
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
    """Adds the metrics of a finished run to its `metrics.json`, if old.

    Args:
        path: The run folder.
        traced: Models of other runs, whose traced functions are used if they
            are compatible.
    """
    path = Path(path)
    if is_measured(path):
        return

    run = load_run(path)
    metrics = compute_metrics(make_analysis(run, traced))
    start = compute_metrics(make_analysis(reset(run), traced))
    del start["stages"]
    metrics["start"] = start
    write_run_metrics(path, metrics)


def make_analysis(run: LoadedRun, traced: Sequence[TracedModel]) -> RunAnalysis:
    """Makes the analysis of a run, by a compatible traced model if any.

    Args:
        run: The run.
        traced: Models, whose weights are replaced.
    """
    for model in traced:
        if model.is_compatible(run.model, run.dataset.space):
            model.model.set_weights(run.model.get_weights())
            run = dataclasses.replace(run, model=model.model)
            return RunAnalysis(
                model,
                run.dataset,
                seed=run.config.training.seed,
                run=run,
            )
    return RunAnalysis.of_run(run)


def compute_metrics(analysis: RunAnalysis) -> dict[str, Any]:
    """Computes all metrics that apply to a run, and the names of its stages.

    Returns:
        Numbers by name; of stages, lists in the order of `stages`. None for a
        number that is not finite.
    """
    numbers: dict[str, Any] = {"stages": analysis.stages}
    for function in _list_functions(list_metrics("run")):
        for name, value in function(analysis).items():
            if isinstance(value, list):
                numbers[name] = [finite_or_none(number) for number in value]
            else:
                numbers[name] = finite_or_none(value)

    rows = _compute_stages(analysis, list_metrics("stages")).values()
    names = dict.fromkeys(name for row in rows for name in row)
    for name in names:
        numbers[name] = [finite_or_none(row.get(name)) for row in rows]
    return numbers


def tabulate_stages(
    analysis: RunAnalysis, names: Sequence[str]
) -> dict[str, Scores]:
    """Computes some metrics of every stage, None where it has none.

    Args:
        analysis: Of a run, or of a model.
        names: Of metrics of stages.
    """
    summary = analysis.layers.summary
    missing = set(names).difference(*summary.values())
    metrics = [m for m in list_metrics("stages") if m.name in missing]
    table = {}
    for stage, row in _compute_stages(analysis, metrics).items():
        scores = row | summary[stage]
        table[stage] = {n: finite_or_none(scores.get(n)) for n in names}
    return table


def _compute_stages(
    analysis: RunAnalysis, metrics: Sequence[Metric]
) -> dict[str, Scores]:
    """Computes metrics by stage, with all that their functions return."""
    rows: dict[str, Scores] = {stage: {} for stage in analysis.stages}
    for function in _list_functions(metrics):
        for stage, row in function(analysis).items():
            rows[stage] |= row
    return rows


def _list_functions(metrics: Sequence[Metric]) -> list[Callable[..., Any]]:
    """Lists the functions of metrics, each once."""
    return list(dict.fromkeys(m.function for m in metrics if m.function))
