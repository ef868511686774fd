"""Measures: what the claims need of a finished run beyond `metrics.json`.

A function that declares them (`tfcomp.statistics.metric`) maps a study to
numbers by name, or lists with one per stage; to nothing where it does not
apply. `start` has those before training: what it shows, training has not made.
"""

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tfcomp.analysis.features import finite_or_none
from tfcomp.evaluation import measure_files
from tfcomp.evaluation.evaluator import Evaluator
from tfcomp.evaluation.loading import LoadedRun, load_run
from tfcomp.evaluation.measure_files import Measures
from tfcomp.evaluation.metrics import list_metrics
from tfcomp.evaluation.run_analysis import RunAnalysis
from tfcomp.models.initial_model import make_model
from tfcomp.statistics.metric import Metric


def measure_run(
    path: str | Path, evaluators: Sequence[Evaluator] = ()
) -> Measures:
    """Measures a finished run and adds `measures` to its `metrics.json`.

    A run that this version of the code has measured is only read. Evaluators of
    the same architecture and grid are used again.

    Raises:
        RunError: If the folder is no finished run, is damaged, or cannot be
            written.
    """
    path = Path(path)
    if not measure_files.is_measured(path):
        run = load_run(path)
        found = measure_study(make_study(run, evaluators))
        found["start"] = measure_start(run, evaluators)
        measure_files.write_measures(path, found)
    return measure_files.read_measures(path)


def make_study(run: LoadedRun, evaluators: Sequence[Evaluator]) -> RunAnalysis:
    """A study of a run, by an evaluator of such a model if there is one."""
    for evaluator in evaluators:
        if evaluator.is_compatible(run.model, run.dataset):
            evaluator.model.set_weights(run.model.get_weights())
            run = dataclasses.replace(run, model=evaluator.model)
            return RunAnalysis(run, evaluator)
    return RunAnalysis(run)


def measure_study(study: RunAnalysis) -> Measures:
    """All measures that apply to a run, and the names of its stages."""
    found = _compute(study, list_metrics("stages", "run"))
    return {"stages": study.stages, **found}


def tabulate_stages(
    study: RunAnalysis, names: Sequence[str]
) -> dict[str, dict[str, float | None]]:
    """Some measures of every stage, None where it has none."""
    summary = study.layers.summary
    known = {name for numbers in summary.values() for name in numbers}
    measures = list_metrics("stages")
    wanted = set(names) - known
    columns = _compute(study, [m for m in measures if m.name in wanted])
    rows = {}
    for place, stage in enumerate(study.stages):
        numbers = {name: columns[name][place] for name in wanted & set(columns)}
        numbers |= summary.get(stage, {})
        rows[stage] = {name: numbers.get(name) for name in names}
    return rows


def _compute(study: RunAnalysis, measures: Sequence[Metric]) -> Measures:
    found: Measures = {}
    for function in dict.fromkeys(measure.function for measure in measures):
        found |= {k: _to_plain(v) for k, v in function(study).items()}
    return found


def _to_plain(value: Any) -> Any:
    if isinstance(value, list):
        return [finite_or_none(item) for item in value]
    return finite_or_none(value)


def measure_start(
    run: LoadedRun, evaluators: Sequence[Evaluator] = ()
) -> Measures:
    """All measures of a run as they were before its first step."""
    training = run.config.training
    # Of a run that started again, that of the training which was kept.
    seed = run.metrics.get("train", {}).get("seed", training.seed)
    training = dataclasses.replace(training, seed=seed)
    config = dataclasses.replace(run.config, training=training)
    model = make_model(config, run.dataset, "float32")
    start = dataclasses.replace(run, model=model)
    measures = measure_study(make_study(start, evaluators))
    del measures["stages"]  # those of the run
    return measures
