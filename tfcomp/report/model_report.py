"""Models on data with held-out combinations: loads, scores, compares them.

`ModelReport` is what users of the Python interface get for a model.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from markupsafe import Markup

from tfcomp.config.errors import ConfigError, name_arguments
from tfcomp.config.run_config import DataConfig, RunConfig
from tfcomp.datasets import notes, solvable, views
from tfcomp.datasets.dataset import Dataset
from tfcomp.datasets.factor_table import FactorTable
from tfcomp.datasets.regions import Region
from tfcomp.datasets.tables import make_listed_region, make_table_dataset
from tfcomp.figures import pictures
from tfcomp.figures.exhibits import Plot, Width, figure_to_png, fit_width
from tfcomp.metrics.jacobians import choose_jacobian, compute_stage_metrics
from tfcomp.metrics.registry import SUBSET_WORDS, try_metrics
from tfcomp.metrics.run_analysis import RunAnalysis, compute_metrics
from tfcomp.metrics.scores import evaluate_images
from tfcomp.models import loading
from tfcomp.models.adapters import check_outputs, wrap_model
from tfcomp.models.registry import evaluate_in_batches, make_stage_model
from tfcomp.report.explorer import Explorer
from tfcomp.report.output_section import invert_run
from tfcomp.report.page import (
    TEMPLATES,
    keep_filled,
    list_points,
    render_template,
)
from tfcomp.report.report_build import build_report
from tfcomp.report.stage_section import make_charts
from tfcomp.report.verbalize import describe_model
from tfcomp.representations.readers import (
    Reader,
    list_readings,
    read_truth,
)
from tfcomp.representations.samples import list_samples
from tfcomp.storage.run_folder import find_published

# Numbers by subset (`id`, `ood`), then by name.
Scores = dict[str, dict[str, float | None]]
# How tables in texts and pages show numbers: with four digits.
NUMBERS: dict[str, Any] = {"float_format": "{:.4g}".format}


class ModelReport:
    """A model on data with held-out combinations; results are computed on use.

    `load_run`, `train_run` and `evaluate` return it. Methods take factors as
    values [n, F] or by name (`x=3, shape="heart"`, lists of values, a table
    with such columns); without factors they use all combinations that are
    scored.

    Attributes:
        name: The name of the run, or of the model.
        path: The folder of the run; None for a model from elsewhere.
        model: The model, from factors [n, F] to images [n, H, W, C].
        dataset: Factors, held-out combinations, and true images.
        analysis: All results that a report shows.
        score_sds: Standard deviations of `scores` over several evaluations of
            a stochastic model; empty for one evaluation.
    """

    def __init__(
        self,
        run: loading.LoadedRun,
        outputs: np.ndarray | None = None,
        sampled: tuple[Scores, Scores] = ({}, {}),
    ) -> None:
        """Wraps a run.

        Args:
            run: A model and its data.
            outputs: Its outputs for all combinations, if they are known.
            sampled: Means and standard deviations of its scores over several
                evaluations.
        """
        self.run = run
        self.name = run.name
        self.path = run.path
        self.model = run.model
        self.dataset = run.dataset
        self.analysis = RunAnalysis.of_run(run, outputs)
        means, deviations = sampled
        self._means = means
        self.score_sds = deviations

    def __repr__(self) -> str:
        texts = [describe_model(self.run)]
        # The scores, and the first of the other tables, if there is any.
        frames = [self._tabulate(), *self.tables.values()]
        for frame in frames[:2]:
            texts.append(frame.to_string(**NUMBERS, na_rep="-"))
        return "\n".join(texts)

    def _repr_html_(self) -> str:
        return render_template(
            TEMPLATES / "model_report.html",
            text=describe_model(self.run),
            table=Markup(self._tabulate().to_html(**NUMBERS, na_rep="–")),
            picture=figure_to_png(self.plot_samples()),
        )

    def _tabulate(self) -> pd.DataFrame:
        """Tabulates scores by name and subset, with their deviations."""
        deviations = pd.DataFrame(self.score_sds).add_suffix(" sd")
        return pd.DataFrame(self.scores).join(deviations)

    @property
    def stages(self) -> list[str]:
        """Names of the stages in the order of the data flow."""
        return self.analysis.stages

    @property
    def scores(self) -> Scores:
        """ID and OOD scores, as in `metrics.json`.

        Scores that no subset has are left out. Several evaluations of a
        stochastic model give their means.
        """
        scores = self._means or self.analysis.evaluation.scores
        filled = keep_filled(list(scores.values()))
        return dict(zip(scores, filled, strict=True))

    @property
    def tables(self) -> dict[str, pd.DataFrame]:
        """More results by name.

        Embeddings and encoders have `layers`, `parts` and `pairs`, encoders
        also `codes`; with a reader there are `readings` and `samples`.
        """
        tables = {}
        for name, rows in self.run.tables.items():
            tables[name] = pd.DataFrame(rows)
        return tables

    @cached_property
    def coverage(self) -> dict[str, float]:
        """Shares of combinations, values and pixels outside the region."""
        return solvable.measure_coverage(self.run.dataset)

    @cached_property
    def measures(self) -> dict[str, Any]:
        """The measures in `metrics.json`, without the start of training."""
        return compute_metrics(self.analysis)

    @name_arguments
    def refine(self, between: int) -> ModelReport:
        """Returns the model on a finer grid, also between trained values.

        Scores, `to_frame` and `plot_error` of the result are on this grid.

        Args:
            between: The number of values of each ordered factor, evenly spaced
                from its first value to its last one.

        Raises:
            ConfigError: If codes or images have no values between the grid's.
        """
        return ModelReport(self.analysis.refine(between).run)

    @name_arguments
    def draw(self, factors: Any = None, **by_name: Any) -> np.ndarray:
        """Returns images that the model draws, float32 [n, H, W, C].

        Args:
            factors: Values [n, F], or a table; by default all combinations.
            **by_name: Values or lists of values, by the names of factors.

        Raises:
            ConfigError: If a factor or level is missing or unknown.
        """
        points = self._read_points(factors, by_name)
        return evaluate_in_batches(lambda f: {"": self.model(f)}, points)[""]

    @name_arguments
    def activations(
        self, stage: str, factors: Any = None, **by_name: Any
    ) -> np.ndarray:
        """Returns activations of a stage, [n, ...].

        Args:
            stage: One of `stages`.
            factors: As for `draw`.
            **by_name: As for `draw`.

        Raises:
            ConfigError: As `draw`, or if there is no such stage.
        """
        stage_model = make_stage_model(self.model, [self._check_stage(stage)])
        points = self._read_points(factors, by_name)
        activations = evaluate_in_batches(
            lambda f: dict(stage_model(f)),
            points,
        )
        return activations[stage]

    @name_arguments
    def geometry(
        self, stage: str, factors: Any = None, **by_name: Any
    ) -> np.ndarray:
        """Returns metric tensors of a stage, [n, F, F] (paper section 3.4).

        They are in squared activations per unit of the ordered factors.

        Args:
            stage: One of `stages`.
            factors: As for `draw`.
            **by_name: As for `draw`.

        Raises:
            ConfigError: As `activations`.
        """
        stage_model = make_stage_model(self.model, [self._check_stage(stage)])
        if factors is None and not by_name:
            return self.analysis.metrics[stage]  # computed once
        jacobian = choose_jacobian(self.model, self.dataset)
        tensors = evaluate_in_batches(
            lambda f: compute_stage_metrics(stage_model, f, jacobian),
            self._read_points(factors, by_name),
        )
        return tensors[stage]

    def to_frame(self) -> pd.DataFrame:
        """Returns a table with a row for each combination that is scored.

        Its columns are

        - the factors, with names of levels for categories;
        - `is_ood`, whether the combination is held out;
        - `mse`, and `relative_mse`, the error divided by the error of the
          reference (`dataset.reference`) there;
        - `ssim_error`, 1 less the structural similarity, for images of
          11 x 11 pixels or more;
        - `reads_<factor>`, whether the reader finds the factor, with a reader.
        """
        analysis = self.analysis
        columns = {
            "mse": analysis.error,
            "relative_mse": analysis.error_ratio,
        }
        if analysis.ssim_error is not None:
            columns["ssim_error"] = analysis.ssim_error
        reader = self.run.reader
        if reader is not None:
            outputs = analysis.evaluation.images
            hits = reader.check(outputs, analysis.splits.grid)
            for number, name in enumerate(self.dataset.space.names):
                columns[f"reads_{name}"] = hits[:, number]
        return pd.DataFrame(list_points(analysis, columns))

    def invert(self, reader: Reader | None = None) -> pd.DataFrame:
        """Finds the factors of true images by what the model draws.

        The nearest output of the grid, then at most ten steps of Gauss and
        Newton where the model has derivatives (arXiv 2512.08854). Do not take
        it for a quality of images: faint ones in the right places are found.

        Args:
            reader: A reader that was trained on ID images alone, for
                comparison; by default one is trained, in half a minute.

        Returns:
            A row for each `source` (the model; the truth as a decoder; the
            nearest training image; the reader), `subset`, `level` and `factor`:
            shares of images in which the factor is `found` within half a step
            and `near` within one, the median `error` in steps, and the
            `condition` of the metric tensor at the answers.

        Raises:
            ConfigError: If the data are embeddings.

        Example:
            >>> table = tfcomp.load_published("paper/low_rank").invert()
        """
        if not self.dataset.is_pixels:
            raise ConfigError("data", "must be images", self.name)
        return pd.DataFrame(invert_run(self.analysis, reader).rows)

    def plot_samples(self, subset: str = "", *, width: Width = "") -> Plot:
        """Plots true images above outputs.

        `data` of the figure is a table of what it shows.

        Args:
            subset: `ood` or `id`. The default is `ood`, or `id` if nothing is
                held out.
            width: `column` (3.25 inches) or `page` (6.75) for print, or a
                number of inches; text is then 7 points, or as in your rcParams.

        Raises:
            ConfigError: If there is no such subset.
        """
        titles = dict(SUBSET_WORDS)
        if not self.analysis.splits.is_ood.any():
            del titles["ood"]
        subset = subset or list(titles)[-1]
        if subset not in titles:
            rule = f"must be among {', '.join(titles)}"
            raise ConfigError("subset", rule, subset)
        with fit_width(width):
            return pictures.picture_samples(
                self.dataset,
                self.analysis.evaluation,
                subset,
                title=f"{self.name}: {titles[subset]}",
            )

    def plot_error(self, *, width: Width = "") -> Plot:
        """Plots the error as a map, or as a curve over one ordered factor.

        Args:
            width: As for `plot_samples`.

        Raises:
            ConfigError: If combinations are missing, or no factor has an order.
        """
        analysis = self.analysis
        if not analysis.has_map and not analysis.curves:
            rule = "must have an ordered factor and all combinations"
            raise ConfigError("data", rule, self.name)
        with fit_width(width):
            if analysis.has_map:
                maps = analysis.for_maps
                errors = {"error landscape": maps.error_ratio}
                return pictures.picture_errors(maps.dataset, errors)
            return pictures.picture_error_curve(self.dataset, analysis.error)

    def plot_layers(self, *, width: Width = "") -> Plot:
        """Plots the factorization of every stage.

        Args:
            width: As for `plot_samples`.

        Raises:
            ConfigError: If no factor has an order.
        """
        if not self.dataset.space.ordered:
            raise ConfigError("data", "must have an ordered factor", self.name)
        with fit_width(width):
            charts = make_charts([self.analysis], "layers")
            # The first figure is the factorization, the others are not drawn.
            return next(c.figure for c in charts if isinstance(c.figure, Plot))

    def explore(self, *others: ModelReport | str | Path) -> Explorer:
        """Returns the explorer: outputs at the combination under the pointer.

        A notebook shows it; `.write("explorer.html")` makes it a file.

        Args:
            *others: Models, or folders of finished runs, to compare with.

        Raises:
            RunError: If a folder has no finished run.
        """
        return Explorer(list(map(_find_analysis, (self, *others))))

    def write_report(
        self, folder: str | Path, sections: str | Sequence[str] = ()
    ) -> Path:
        """Writes the report of this model alone; returns its page.

        Args:
            folder: As for `tfcomp.write_report`.
            sections: As for `tfcomp.write_report`.

        Raises:
            ConfigError: If the folder cannot be written, or there is no such
                section.
        """
        return build_report([self.analysis], Path(folder), sections)[0]

    def _read_points(self, factors: Any, by_name: dict[str, Any]) -> np.ndarray:
        """Returns factor values [n, F]; all combinations without factors."""
        if factors is None and not by_name:
            return self.dataset.splits.grid
        return views.read_points(self.dataset.space, factors, by_name)

    def _check_stage(self, stage: str) -> str:
        """Returns the name of a stage; raises a ConfigError for another."""
        if stage not in self.stages:
            rule = f"must be among {', '.join(self.stages)}"
            raise ConfigError("stage", rule, stage)
        return stage


def load_run(path: str | Path) -> ModelReport:
    """Loads a finished run from its folder.

    Args:
        path: The folder of the run, as `tensorboard_logs/donut`. Plugins of the
            run must be imported already.

    Returns:
        The run with its model, its data and its scores; analyses are computed
        when they are asked for.

    Raises:
        RunError: If the folder has no run, or a damaged one, or one that asks
            for plugins that are not imported.
    """
    return ModelReport(loading.load_run(path))


def load_published(name: str, source: str | Path = "") -> ModelReport:
    """Loads a published model, as `load_run` loads a run.

    Args:
        name: A name that `tfcomp.list_published()` returns, such as
            `sprites/acting/montero_range`.
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
            of the model: `tables["readings"]`. It judges `samples`, too:
            `tables["samples"]`.

    Raises:
        ConfigError: For an impossible region or name, or a reader that does
            not fit the data or fails on true images.
        ValueError: If the model does not draw such images (see
            `tfcomp.models.loading`), or has no such stage.

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
    if samples < 1:
        raise ValueError(f"samples must be at least 1, got {samples}")
    if isinstance(stages, str):
        stages = [stages]
    config, listed = make_config(data, region, name, eval_points)
    if isinstance(data, FactorTable):
        data = make_table_dataset(config, data, listed)
    elif region not in ("", data.region.spec):
        rule = f"must be {data.region.spec}, as in the dataset"
        raise ConfigError("region", rule, region)

    print_split(data)
    # Readers and metrics of the user fail here, before the model draws.
    if reader is not None:
        reader.check_truth(data)
    try_metrics(data)

    wrapped = wrap_model(model, data, stages, inputs)
    data, outputs = check_outputs(data, wrapped, samples)
    text = f"Model: {model!r}\nInputs: {inputs}\n{describe_points(data)}"
    run = loading.LoadedRun(
        path=None,
        config=config,
        dataset=data,
        model=wrapped,
        metrics={},
        description=text,
        reader=reader,
    )
    readers = []
    if reader is not None:
        readers.append(reader)
        if reader.nuisance is not None:
            readers.append(reader.nuisance)
    tables, read = _sample(run, outputs, samples, readers)
    if reader is not None:
        _add_readings(readers, run, read)
    if samples == 1:
        return ModelReport(run, outputs)
    return ModelReport(run, outputs, _summarize_scores(tables))


def print_split(data: Dataset) -> None:
    """Prints to stderr what is held out, as `tfcomp train` does.

    Args:
        data: The data of a model.
    """
    for line in notes.describe_split(data):
        print(line, file=sys.stderr)


def _sample(
    run: loading.LoadedRun,
    outputs: np.ndarray,
    samples: int,
    readers: Sequence[Reader],
) -> tuple[list[pd.DataFrame], list[list[np.ndarray]]]:
    """Evaluates a stochastic model several times; keeps no images.

    Args:
        run: The model and its data.
        outputs: Its images in the first evaluation, [n, H, W, C].
        samples: The number of evaluations.
        readers: Read each of them.

    Returns:
        The scores of each evaluation, [scores, subsets], if there are several;
        and by reader what it reads in each, [n, F].
    """

    def predict(points: np.ndarray) -> np.ndarray:
        return evaluate_in_batches(lambda f: {"": run.model(f)}, points)[""]

    dataset = run.dataset
    tables = []
    read: list[list[np.ndarray]] = [[] for _ in readers]
    images = outputs
    for number in range(samples):
        if number > 0:
            images = predict(dataset.splits.grid)
        if samples > 1:
            evaluation = evaluate_images(dataset, predict, images)
            tables.append(pd.DataFrame(evaluation.scores))
        for reader, readings in zip(readers, read, strict=True):
            readings.append(reader.read(images))
    return tables, read


def _add_readings(
    readers: Sequence[Reader],
    run: loading.LoadedRun,
    read: Sequence[Sequence[np.ndarray]],
) -> None:
    """Adds the tables of a reader to a run: `readings` and `samples`.

    Args:
        readers: The reader of factors, and of nuisances if there are any.
        run: The run, whose `tables` are changed.
        read: What each of them reads in samples of the model, [n, F].
    """
    dataset = run.dataset
    readings, *others = read_truth(readers, dataset, read)
    run.tables["readings"] = list_readings(
        readers[0],
        dataset,
        readings,
    )
    run.tables["samples"] = list_samples(
        readers[0],
        dataset,
        readings,
        nuisances=next(iter(others), None),
    )


def describe_points(data: Dataset) -> str:
    """Describes region, scored combinations, and the split, in lines.

    Args:
        data: The data of a model.
    """
    count = f"{len(data.splits.scored):,} of {len(data.splits.all):,}"
    lines = [
        f"Region: {data.region.spec}",
        f"Points: {count}",
        *notes.describe_split(data),
    ]
    return "\n".join(lines)


def _summarize_scores(tables: Sequence[pd.DataFrame]) -> tuple[Scores, Scores]:
    """Returns means and sample standard deviations of scores.

    Args:
        tables: Scores of several evaluations, [scores, subsets].
    """
    first = tables[0]
    aligned = [table.reindex_like(first).astype(float) for table in tables]
    # NaN where any evaluation has no score.
    numbers = np.stack(aligned)  # [samples, scores, subsets]
    mean = numbers.mean(axis=0)
    deviation = numbers.std(axis=0, ddof=1)
    summaries: list[Any] = []
    for values in (mean, deviation):
        table = pd.DataFrame(values, first.index, first.columns)
        scores = table.astype(object).where(table.notna(), None)
        summaries.append(scores.to_dict())
    means, deviations = summaries
    return means, deviations


def make_config(
    data: FactorTable | Dataset,
    region: str | Callable[..., Any] | Sequence[int] | np.ndarray,
    name: str,
    eval_points: int,
) -> tuple[RunConfig, Region | None]:
    """Makes the configuration of an evaluation.

    Args:
        data: As for `evaluate`.
        region: As for `evaluate`.
        name: As for `evaluate`.
        eval_points: As for `evaluate`.

    Returns:
        The configuration, and the region unless it is given as text.

    Raises:
        ConfigError: For an impossible region or name.
    """
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
        # Errors name the argument of `evaluate`, not the flag.
        argument = error.name
        if argument == "run_name":
            argument = "name"
        raise ConfigError(argument, error.rule, name) from None
    return config, listed


def write_report(
    models: Sequence[ModelReport | str | Path],
    folder: str | Path,
    sections: str | Sequence[str] = (),
) -> Path:
    """Writes one report that compares models and finished runs.

    Args:
        models: `ModelReport`s, or folders of finished runs.
        folder: Where pictures, tables and the page `report.html` are written.
        sections: Names of sections, as listed by `tfcomp analyze
            --sections=list`. The default is all but the slow ones.

    Returns:
        The path of the page.

    Raises:
        ConfigError: If the folder cannot be written, names are not unique, or
            there is no such section.
        RunError: If a run cannot be loaded.
    """
    analyses = list(map(_find_analysis, models))
    return build_report(analyses, Path(folder), sections)[0]


def _find_analysis(model: ModelReport | str | Path) -> RunAnalysis:
    """Returns the analysis of a model, or of the run in a folder."""
    if isinstance(model, str | Path):
        return RunAnalysis.of_run(loading.load_run(model))
    return model.analysis
