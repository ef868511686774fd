"""Computes the metrics of a finished run that `tfcomp measure` adds.

A decorated function (`tfcomp.statistics.metric`) takes an analysis and returns
numbers by name, or lists with one number per stage; nothing where it does not
apply. `start` has the same metrics before training.
"""

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tfcomp.analysis.features import finite_or_none
from tfcomp.evaluation import metric_files
from tfcomp.evaluation.evaluator import Evaluator
from tfcomp.evaluation.loading import LoadedRun, load_run
from tfcomp.evaluation.metric_files import RunMetrics
from tfcomp.evaluation.metrics import list_metrics
from tfcomp.evaluation.run_analysis import RunAnalysis
from tfcomp.models.initial_model import make_model
from tfcomp.statistics.metric import Metric


def measure_run(path: str | Path, evaluators: Sequence[Evaluator] = ()) -> None:
    """Adds the metrics of a finished run to its `metrics.json`.

    A run that this version of the code has measured stays as it is. Evaluators
    of the same architecture and grid are reused.

    Raises:
        RunError: If the folder is no finished run, is damaged, or cannot be
            written.
    """
    path = Path(path)
    if metric_files.is_measured(path):
        return
    run = load_run(path)
    metrics = compute_metrics(make_analysis(run, evaluators))
    start = compute_metrics(make_analysis(_reset(run), evaluators))
    del start["stages"]
    metric_files.write_run_metrics(path, metrics | {"start": start})


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


def compute_metrics(analysis: RunAnalysis) -> RunMetrics:
    """Computes all metrics that apply to a run, and the names of its stages."""
    numbers = _compute(analysis, list_metrics("stages", "run"))
    return {"stages": analysis.stages, **numbers}


def tabulate_stages(
    analysis: RunAnalysis, names: Sequence[str]
) -> dict[str, dict[str, float | None]]:
    """Returns some metrics of every stage, None where it has none."""
    summary = analysis.layers.summary
    missing = set(names).difference(*summary.values())
    metrics = [m for m in list_metrics("stages") if m.name in missing]
    columns = _compute(analysis, metrics)
    rows = {}
    for place, stage in enumerate(analysis.stages):
        row = {n: columns[n][place] for n in missing & columns.keys()}
        row |= summary.get(stage, {})
        rows[stage] = {name: row.get(name) for name in names}
    return rows


def _compute(analysis: RunAnalysis, metrics: Sequence[Metric]) -> RunMetrics:
    numbers: RunMetrics = {}
    for function in dict.fromkeys(metric.function for metric in metrics):
        assert function is not None
        values = function(analysis).items()
        numbers |= {name: _to_plain(value) for name, value in values}
    return numbers


def _to_plain(value: Any) -> Any:
    if isinstance(value, list):
        return [finite_or_none(item) for item in value]
    return finite_or_none(value)


def _reset(run: LoadedRun) -> LoadedRun:
    """Returns a run with its weights before the first step."""
    # A run that was restarted has the seed of the training that was kept.
    seed = run.metrics.get("train", {}).get("seed", run.config.training.seed)
    training = dataclasses.replace(run.config.training, seed=seed)
    config = dataclasses.replace(run.config, training=training)
    model = make_model(config, run.dataset, "float32")
    return dataclasses.replace(run, model=model)
