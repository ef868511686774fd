"""Loads runs, scores any model, and compares models in a report."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from tfcomp.config.errors import ConfigError
from tfcomp.config.run_config import DataConfig, RunConfig
from tfcomp.datasets.dataset import Dataset
from tfcomp.datasets.factor_table import FactorTable
from tfcomp.datasets.regions import Region
from tfcomp.datasets.tables import make_listed_region, make_table_dataset
from tfcomp.metrics.point_scores import evaluate_images, try_metrics
from tfcomp.models import loading
from tfcomp.models.adapters import check_outputs, wrap_model
from tfcomp.report.model_report import ModelReport, Scores
from tfcomp.report.report_build import build_report
from tfcomp.report.run_exhibits import find_analysis
from tfcomp.representations.readers import Reader, list_readings
from tfcomp.storage.published_models import find_published


def load_run(path: str | Path) -> ModelReport:
    """Loads a finished run from its folder.

    Raises:
        RunError: If it is none, or damaged, or asks for plugins that are not
            imported.
    """
    return ModelReport(loading.load_run(path))


def load_published(name: str, source: str | Path = "") -> ModelReport:
    """Loads a published model, as `load_run` loads a run.

    Args:
        name: As `sprites/acting/montero_range`; `tfcomp.list_published()` has
            the names.
        source: A folder of such models. The default is `saved_models/published`
            of the working directory, else of the clone that tfcomp runs from.

    Raises:
        RunError: If there is no such model, or a file is damaged.

    Example:
        >>> run = tfcomp.load_published("bumps/additive/corner_9")
        >>> run.draw(x=3, y=4).shape
        (16, 16, 1)
    """
    return load_run(find_published(name, source))


def evaluate(
    model: Any,
    data: FactorTable | Dataset,
    region: str | Callable | Sequence[int] | np.ndarray = "",
    *,
    name: str = "model",
    stages: str | Sequence[str] = (),
    inputs: str = "values",
    eval_points: int = 4096,
    samples: int = 1,
    reader: Reader | None = None,
) -> ModelReport:
    """Scores a model that may come from anywhere.

    Args:
        model: A Keras model, a module of PyTorch, the path of a SavedModel, a
            Keras file or a run, or any function from factors [n, F], float32,
            to images [n, H, W, C] (or [n, C, H, W], [n, H, W], flat), or to a
            dictionary with `image` and named stages.
        data: Images and factors.
        region: What was held out from the training of the model, as in
            `--region`, or a function from factor values [n, F] to a bool for
            each row, or a bool for every image of a table, or the indices of
            held-out images. The default is the region of a `Dataset`, or
            nothing.
        name: Name of the model in reports.
        stages: The layers, or entries of the dictionary, whose geometry is
            measured; a model of tfcomp has its own.
        inputs: What the model takes: `values` of the factors, `classes`
            (from 0), or `unit` (every factor scaled to 0..1).
        eval_points: The largest number of combinations, sampled at random,
            half of them held out; 0 scores all.
        samples: How often a stochastic model is evaluated: `scores` are means
            and `score_sds` standard deviations.
        reader: A result of `train_reader`, which finds the factors in images
            of the model: `tables["readings"]`.

    Raises:
        ConfigError: For an impossible region or name, or a reader that does
            not fit the data or fails on true images.
        ValueError: If the model does not draw such images (see
            `tfcomp.models.open_models`), or has no such stage.

    Example:
        A model that draws the mean of two bars scores the held-out pair:

        >>> bars = np.zeros((9, 3, 6), np.float32)
        >>> classes = np.argwhere(np.ones((3, 3)))
        >>> for bar, (row, column) in zip(bars, classes):
        ...     bar[row, :3] = bar[column, 3:] = 1
        >>> table = tfcomp.FactorTable(bars, classes, names=["left", "right"])
        >>> result = tfcomp.evaluate(table.draw, table, region="left:2,right:2")
        >>> held_out = result.scores["ood"]
        >>> held_out["relative_mse"]
        0.0
    """
    if not isinstance(data, FactorTable | Dataset):
        rule = "must be a tfcomp.FactorTable (images and their factors)"
        raise ValueError(f"data {rule}, got {type(data).__name__}")
    stages = [stages] if isinstance(stages, str) else stages
    if samples < 1:
        raise ValueError(f"samples must be at least 1, got {samples}")
    config, listed = make_config(data, region, name, eval_points)
    if isinstance(data, FactorTable):
        data = make_table_dataset(config, data, listed)
    elif region not in ("", data.region.spec):
        raise ConfigError(
            "region", f"must be {data.region.spec}, as in the dataset", region
        )
    if reader is not None:
        reader.check_truth(data)
    try_metrics(data)
    wrapped = wrap_model(model, data, stages, inputs)
    data, outputs = check_outputs(data, wrapped, samples)
    text = f"Model: {model!r}\nInputs: {inputs}\n{describe_points(data)}"
    run = loading.LoadedRun(None, config, data, wrapped, {}, text, reader)
    if reader is not None:
        run.tables["readings"] = list_readings(
            reader, data, wrapped, outputs, samples
        )
    if samples == 1:
        return ModelReport(run, outputs)
    return ModelReport(run, outputs, _sample_scores(run, outputs, samples))


def describe_points(data: Dataset) -> str:
    """Describes region, scored combinations, and notes, a line each."""
    count = f"{len(data.splits.scored):,} of {len(data.splits.all):,}"
    lines = [f"Region: {data.region.spec}", f"Points: {count}"]
    lines += [f"Note: {note}" for note in data.notes]
    return "".join(f"{line}\n" for line in lines)


def _sample_scores(
    run: loading.LoadedRun, outputs: np.ndarray, samples: int
) -> tuple[Scores, Scores]:
    def draw(factors: Any) -> dict[str, Any]:
        return {"image": run.model(factors)}

    images = [outputs, *[None] * (samples - 1)]
    sampled = [evaluate_images(run.dataset, draw, i).scores for i in images]
    frames = [pd.DataFrame(scores, dtype=float) for scores in sampled]

    def to_scores(values: np.ndarray) -> Scores:
        first = frames[0]
        table = pd.DataFrame(values, first.index, first.columns, dtype=object)
        scores: Any = table.where(table.notna(), None).to_dict()
        return scores

    values = np.stack(frames)
    return to_scores(values.mean(axis=0)), to_scores(values.std(0, ddof=1))


def make_config(
    data: FactorTable | Dataset,
    region: str | Callable[..., Any] | Sequence[int] | np.ndarray,
    name: str,
    eval_points: int,
) -> tuple[RunConfig, Region | None]:
    """Returns the configuration of an evaluation, and a region of a list."""
    listed = None
    if not isinstance(region, str):
        if not isinstance(data, FactorTable):
            rule = "must be text for a Dataset, which has its own region"
            raise ConfigError("region", rule, type(region).__name__)
        listed = make_listed_region(data, region)
        region = listed.spec
    try:
        config = RunConfig(
            run_name=name,
            eval_points=eval_points,
            data=DataConfig(dataset="table", region=region or "none"),
        )
    except ConfigError as error:
        renamed = "name" if error.name == "run_name" else error.name
        raise ConfigError(renamed, error.rule, name) from None
    return config, listed


def write_report(
    models: Sequence[ModelReport | str | Path],
    folder: str | Path,
    sections: Sequence[str] = (),
    between: int = 0,
) -> Path:
    """Writes one report that compares models and finished runs.

    Args:
        models: `ModelReport`s, or folders of finished runs.
        folder: Where pictures, tables and the page `report.html` are written.
        sections: Names of sections, as listed by `tfcomp analyze
            --sections=list`. The default is all but the slow ones.
        between: Values of each ordered factor at which errors are shown as
            well, between grid values (`ModelReport.refine`); 0 for none.

    Returns:
        The path of the page.

    Raises:
        ConfigError: If the folder cannot be written, names are not unique, or
            there is no such section.
        RunError: If a run cannot be loaded.
    """
    analyses = [*map(find_analysis, models)]
    return build_report(analyses, Path(folder), sections, between)[0]
