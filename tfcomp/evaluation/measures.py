"""Measures: what the claims need of a finished run beyond `metrics.json`.

A function that declares them (`tfcomp.statistics.measure`) maps a study to
numbers by name: a number, or a list with one number per stage, in the order of
`stages` (per distance or per angle where it says so). One that does not apply
to a run returns nothing, so that any finished run can be measured. The sections
of the analysis report show the same numbers.

Under `start` are the same measures of the network before training, whose
weights are a function of the seed: what it shows already, training has not
made.
"""

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tfcomp.analysis.features import finite_or_none
from tfcomp.evaluation.evaluator import Evaluator
from tfcomp.evaluation.loading import LoadedRun, load_run
from tfcomp.evaluation.measure_files import (
    Measures,
    is_measured,
    read_measures,
    write_measures,
)
from tfcomp.evaluation.study import Study
from tfcomp.models.initial_model import make_model
from tfcomp.statistics.measure import list_measures


def measure_run(
    path: str | Path, evaluators: Sequence[Evaluator] = ()
) -> Measures:
    """Measures a finished run and writes `measures.json` into its folder.

    A run that this version of the code has measured is only read. One of the
    evaluators is used if it is of such a model: it need not be traced again.
    Returns the content of the file.

    Raises:
        RunError: If the folder is no finished run, is damaged, or cannot be
            written.
    """
    path = Path(path)
    if not is_measured(path):
        run = load_run(path)
        study = make_study(run, evaluators)
        found = measure_study(study)
        start = {"start": measure_start(run, evaluators)}
        write_measures(path, found | start)
    return read_measures(path)


def make_study(run: LoadedRun, evaluators: Sequence[Evaluator]) -> Study:
    """A study of a run, by an evaluator of such a model if there is one."""
    for evaluator in evaluators:
        if evaluator.fits(run.model, run.dataset):
            evaluator.model.set_weights(run.model.get_weights())
            run = dataclasses.replace(run, model=evaluator.model)
            return Study(run, evaluator)
    return Study(run)


def measure_study(study: Study) -> Measures:
    """All measures that apply to a run, and the names of its stages."""
    measures: Measures = {"stages": study.stages}
    functions = [measure.function for measure in list_measures(of="study")]
    for function in dict.fromkeys(functions):
        measures |= {k: _to_plain(v) for k, v in function(study).items()}
    return measures


def tabulate_stages(
    study: Study, names: Sequence[str]
) -> dict[str, dict[str, float | None]]:
    """Some measures of every stage, None where it has none."""
    found = study.layers.summary
    known = {name for numbers in found.values() for name in numbers}
    functions = [
        measure.function
        for measure in list_measures("stage", "study")
        if measure.name in names and measure.name not in known
    ]
    columns: Measures = {}
    for function in dict.fromkeys(functions):
        columns |= {k: _to_plain(v) for k, v in function(study).items()}
    return {
        stage: {
            name: found.get(stage, {}).get(name)
            if name in known
            else columns[name][row]
            if name in columns
            else None
            for name in names
        }
        for row, stage in enumerate(study.stages)
    }


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


def _to_plain(value: Any) -> Any:
    if isinstance(value, list):
        return [finite_or_none(item) for item in value]
    return finite_or_none(value)
