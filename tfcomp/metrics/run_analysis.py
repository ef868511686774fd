"""`RunAnalysis`: every result about a model on its data, computed on demand.

A *stage* is a layer whose activations are analyzed. `measure_run` adds metrics
that training does not compute to the files of a run.
"""

from __future__ import annotations

import copy
import dataclasses
import functools
import sys
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

import keras
import numpy as np
import tensorflow as tf
from numpy import ndarray as Array

from tfcomp.config.process import show_progress
from tfcomp.datasets import views
from tfcomp.datasets.dataset import Dataset
from tfcomp.datasets.grid_maps import Curve
from tfcomp.metrics import (
    features,
    geometry,
    interaction,
    jacobians,
    manifolds,
)
from tfcomp.metrics.embeddings import EmbeddingAnalysis, analyze_embedding
from tfcomp.metrics.interaction import Interactions
from tfcomp.metrics.output_analysis import OutputAnalysis, TracedModel
from tfcomp.metrics.probes import NO_SCORES, probe_rows
from tfcomp.metrics.registry import (
    Arrays,
    Metric,
    Scores,
    StageView,
    compute_stage_metrics,
    finite_or_none,
    is_measured,
    list_metrics,
    list_registered,
    make_scores,
    write_run_metrics,
)
from tfcomp.metrics.tuning import (
    Tuning,
    compute_tuning,
    measure_effects,
    select_units,
)
from tfcomp.models.forced_rendering import list_embeddings
from tfcomp.models.loading import LoadedRun, load_run
from tfcomp.models.registry import make_model

TRUTH = "truth"  # the true images, as a stage
# Points of a large space that are compared with each other, which takes time
# that grows with their square.
FEW_POINTS = 1024
SHOWN_UNITS = 4  # of each stage, that vary most
UNITS_PER_FACTOR = 2  # more of each stage, in the explorer
MAX_COMPONENTS = 50  # that a browser can display quickly
Result = TypeVar("Result")


@dataclasses.dataclass(frozen=True)
class LayerAnalysis:
    """Numbers of stages as in `metrics.json`, and their log-volumes [n]."""

    summary: dict[str, Scores]
    log_volume: Arrays


def make_untrained(run: LoadedRun) -> LoadedRun:
    """Returns a copy of a run with its network as it was before training.

    Args:
        run: A loaded run, which is not changed.
    """
    training = run.config.training
    # A training that misses its target is restarted with another seed: the run
    # records the seed of the training that was kept.
    recorded = run.metrics.get("train", {})
    seed = recorded.get("seed", training.seed)
    training = dataclasses.replace(training, seed=seed)
    config = dataclasses.replace(run.config, training=training)
    model = make_model(config, run.dataset, "float32")
    return dataclasses.replace(run, model=model)


class RunAnalysis(OutputAnalysis):
    """Results of a model's outputs and stages, each computed on first use.

    analysis = RunAnalysis(model, dataset)
    analysis.evaluation.scores["ood"]["relative_mse"]
    analysis.layers.summary["stage_0"]["factorization"]
    """

    @classmethod
    def of_run(
        cls,
        run: LoadedRun,
        outputs: Array | None = None,
        traced: Sequence[TracedModel] = (),
    ) -> RunAnalysis:
        """Makes the analysis of a loaded run.

        Args:
            run: The run.
            outputs: Its images over the grid, [n, H, W, C], if known.
            traced: Models of other runs; a compatible one gets the weights of
                this run, so that its functions are not traced again.
        """
        model: keras.Model | TracedModel = run.model
        for other in traced:
            if other.is_compatible(run.model, run.dataset.space):
                weights = run.model.get_weights()
                other.model.set_weights(weights)
                run = dataclasses.replace(run, model=other.model)
                model = other
                break
        return cls(
            model,
            run.dataset,
            seed=run.config.training.seed,
            outputs=outputs,
            run=run,
        )

    def rename(self, name: str, setting: str) -> RunAnalysis:
        """Makes the same analysis by another name, with all its results.

        Args:
            name: The name of the run.
            setting: The name that the run shares with its other seeds.
        """
        other = copy.copy(self)
        other.name = name
        other.setting = setting
        # These cached analyses have the old name: they are made again.
        for part in ("for_maps", "for_pairs"):
            vars(other).pop(part, None)
        return other

    @cached_property
    def untrained(self) -> RunAnalysis | None:
        """The network before training; None unless the run has a folder."""
        run = self._run
        if run is None or run.path is None:
            return None
        untrained = make_untrained(run)
        return RunAnalysis.of_run(untrained)

    @property
    def stage_sizes(self) -> dict[str, int]:
        """Numbers of units by stage, in the order of the data flow."""
        return self.traced.stage_sizes

    @property
    def stages(self) -> list[str]:
        """Names of the stages in the order of the data flow."""
        return list(self.stage_sizes)

    @cached_property
    def for_maps(self) -> RunAnalysis:
        """The same run evaluated at the points of its maps.

        Metrics that the run records are of other points, so they are left out.
        """
        subset = views.subsample_maps(self.dataset)
        return self._at_points(subset, metrics={})

    @cached_property
    def for_pairs(self) -> RunAnalysis:
        """The same run at few points, so that all pairs can be compared.

        They are a sample of its points, for which its recorded metrics hold.
        """
        subset = views.subsample_points(self.dataset, FEW_POINTS)
        return self._at_points(subset)

    def for_explorer(self, limit: int) -> RunAnalysis:
        """Analyzes the run at the combinations that an explorer shows.

        Args:
            limit: The largest number of combinations.
        """
        subset = views.subsample_levels(self.dataset, limit)
        return self._at_points(subset, metrics={})

    def refine(self, count: int) -> RunAnalysis:
        """Analyzes the run between the values of its grid, too.

        Args:
            count: The number of evenly spaced values of each ordered factor.
        """
        encoding = self.run.config.model.encoding
        finer = views.refine(self.dataset, encoding, count)
        return self._at_points(finer, metrics={})

    def _at_points(self, dataset: Dataset, **changes: Any) -> RunAnalysis:
        """Makes the analysis at the points of another dataset.

        Args:
            dataset: A view of the dataset of the run.
            **changes: New values of fields of the run whose values do not hold
                at these points.
        """
        if dataset is self.dataset:
            return self
        run = self._run
        if run is not None:
            run = dataclasses.replace(
                run,
                dataset=dataset,
                **changes,
            )
        analysis = RunAnalysis(
            self.traced,
            dataset,
            seed=self.seed,
            run=run,
        )
        analysis.name = self.name
        analysis.setting = self.setting
        return analysis

    def read_stages(self) -> Iterable[tuple[str, Array]]:
        """Yields stages [n, units] over the grid, with a progress bar."""
        stages = self.traced.read_stages(self.splits.grid)
        num_stages = len(self.stage_sizes)
        return show_progress(
            stages,
            "layers",
            "stage",
            num_stages,
        )

    @cached_property
    def _exact_metrics(self) -> Arrays:
        """Metric tensors by derivatives, by stage, [n, F, F]."""
        return self.traced.measure_exactly(self.splits.grid)

    @cached_property
    def nondifferentiable(self) -> list[str]:
        """Stages whose metric tensors come from differences; prints a note."""
        flat = []
        for g in self._exact_metrics.values():
            flat.append(jacobians.is_flat(g))
        if not np.any(flat):
            return []

        stages = jacobians.find_nondifferentiable(
            self.model,
            self.dataset,
            self._exact_metrics,
        )
        if stages:
            note = jacobians.describe_nondifferentiable(stages)
            print(f"note: {note}", file=sys.stderr)
        return stages

    @cached_property
    def metrics(self) -> Arrays:
        """Metric tensors of every stage at every grid point, [n, F, F]."""
        if not self.nondifferentiable:
            return self._exact_metrics
        differences = self.traced.measure_steps(self.splits.grid)
        metrics = dict(self._exact_metrics)
        for stage in self.nondifferentiable:
            metrics[stage] = differences[stage]
        return metrics

    @cached_property
    def log_volume(self) -> Arrays:
        """Log-volume of every stage at every grid point, [n]."""
        volumes = {}
        for stage, g in self.metrics.items():
            volumes[stage] = geometry.compute_log_volume(g)
        return volumes

    @cached_property
    def volume_per_contrast(self) -> Arrays:
        """Log-volume of every stage as if of contrast 1, [n]."""
        volumes = {}
        for stage, activations in self.read_stages():
            num_factors = self.metrics[stage].shape[1]
            volumes[stage] = geometry.divide_by_contrast(
                self.log_volume[stage],
                activations,
                num_factors=num_factors,
            )
        return volumes

    @cached_property
    def layers(self) -> LayerAnalysis:
        """Geometry and probes of every stage; recorded probes are used."""
        is_ood = self.splits.is_ood
        probes = self._find_recorded_probes()
        if not probes:
            probes = self._fit_probes()
        summary = {}
        for stage, g in self.metrics.items():
            scores = geometry.summarize_geometry(g, is_ood)
            summary[stage] = scores | probes[stage]
        if list_registered("stage"):
            for stage, activations in self.read_stages():
                view = StageView(
                    stage,
                    activations,
                    self.splits.grid,
                    is_ood,
                )
                summary[stage] |= compute_stage_metrics(view)
        return LayerAnalysis(summary, self.log_volume)

    def _find_recorded_probes(self) -> dict[str, Scores]:
        """Returns the scores of probes that the run records, by stage.

        They are empty unless the run records all scores of all stages.
        """
        recorded = self.recorded.get("layers") or {}
        probes = {}
        for stage in self.stages:
            row = recorded.get(stage) or {}
            if not NO_SCORES.keys() <= row.keys():
                return {}
            probes[stage] = {name: row[name] for name in NO_SCORES}
        return probes

    def _fit_probes(self) -> dict[str, Scores]:
        """Fits probes of the factors to every stage; returns their scores."""
        is_ood = self.splits.is_ood
        probes = {}
        for stage, activations in self.read_stages():
            rows = features.compute_rows(activations, is_ood)
            probes[stage] = probe_rows(
                rows,
                targets=self._targets,
                is_ood=is_ood,
                seed=self.seed,
            )
        return probes

    @cached_property
    def _targets(self) -> Array:
        """What probes predict: values of the ordered factors, [n, T].

        A periodic factor has two columns, its cosine and sine.
        """
        space = self.dataset.space
        grid = self.splits.grid
        targets = [np.zeros((len(grid), 0))]  # [n, 0] if no factor is ordered
        for column in space.ordered:
            factor = space.factors[column]
            values = grid[:, column]
            if factor.periodic:
                period = factor.high - factor.low
                unit = (values - factor.low) / period
                angle = 2 * np.pi * unit
                targets.append(np.cos(angle))
                targets.append(np.sin(angle))
            else:
                targets.append(values)
        return np.column_stack(targets)

    @cached_property
    def interactions(self) -> Interactions:
        """Interactions of factors in every stage that has derivatives."""
        return self.measure_interactions(interaction.MEASURED_POINTS)

    def measure_interactions(self, num_points: int) -> Interactions:
        """Measures the interactions of factors at a sample of the grid.

        Args:
            num_points: Size of the sample.

        Returns:
            Numbers by stage; None in stages that have no derivatives.
        """
        points = interaction.choose_points(self.splits.grid, num_points)
        numbers = self.traced.measure_interactions(points)
        if not numbers:
            return {}
        for stage in self.nondifferentiable:
            names = list(numbers[stage])
            numbers[stage] = dict.fromkeys(names)
        return numbers

    @cached_property
    def embeddings(self) -> dict[str, EmbeddingAnalysis]:
        """Low-rank embeddings by factor, if the model has any."""
        embeddings = {}
        layers = list_embeddings(self.model)
        with tf.device("CPU"):  # singular values take a second on a GPU
            for name, layer in layers.items():
                embeddings[name] = analyze_embedding(layer)
        return embeddings

    def _reduce_stages(
        self, reduce: Callable[[Array], Result]
    ) -> dict[str, Result]:
        """Reduces the activations [n, units] of every stage to a result."""
        results = {}
        for stage, activations in self.read_stages():
            results[stage] = reduce(activations)
        return results

    @cached_property
    def tuning(self) -> dict[str, Tuning]:
        """Tuning of the units of every stage; empty for an incomplete grid."""
        if not self.splits.is_complete:
            return {}
        shape = self.dataset.space.shape
        return self._reduce_stages(lambda v: compute_tuning(v, shape))

    @cached_property
    def gradient_metrics(self) -> Arrays:
        """Metric tensors by differences; empty for an incomplete grid."""
        if not self.splits.is_complete:
            return {}
        compute = functools.partial(
            geometry.compute_gradient_metrics,
            shape=self.dataset.space.shape,
            axes=self.dataset.space.ordered,
        )
        return self._reduce_stages(compute)

    @cached_property
    def _rows(self) -> Arrays:
        """Every stage as `features.compute_rows` returns it.

        A row can have n numbers: use it at few points only (`for_pairs`).
        """
        is_ood = self.splits.is_ood
        return self._reduce_stages(lambda v: features.compute_rows(v, is_ood))

    @cached_property
    def components(self) -> dict[str, manifolds.Components]:
        """Principal components of every stage."""
        components = {}
        for stage, rows in self._rows.items():
            components[stage] = manifolds.compute_components(
                rows,
                MAX_COMPONENTS,
            )
        return components

    @cached_property
    def ranks(self) -> dict[str, Scores]:
        """Participation ratios of every stage over ID and OOD."""
        ranks: dict[str, Scores] = {}
        for stage, rows in self._rows.items():
            ranks[stage] = {}
            for subset, points in self.subsets.items():
                rank = features.compute_participation(rows, points)
                ranks[stage][subset] = rank
        return ranks

    @cached_property
    def explored_units(self) -> dict[str, tuple[Array, Array]]:
        """Units of every stage for maps, [k], and activations, [k, n].

        First those that vary most, then those that follow each factor most:
        units that vary most over all combinations may be constant where all
        factors but two are held.
        """

        def select(values: Array) -> tuple[Array, Array]:
            """Returns numbers of units [u], and their activations [u, n]."""
            variance = values.var(axis=0)
            units = select_units(values, variance, SHOWN_UNITS).tolist()
            for levels in self.index.T:
                effects = measure_effects(values, levels)
                followers = select_units(values, effects, UNITS_PER_FACTOR)
                units += followers.tolist()
            distinct = np.array(list(dict.fromkeys(units)), int)
            return distinct, values[:, distinct].T

        return self._reduce_stages(select)

    def compare_gap(self, curve: Curve) -> dict[str, Scores]:
        """Compares steps and angles of a curve in a gap with those outside.

        Args:
            curve: A line through the grid whose held-out part is the gap.

        Returns:
            By stage, ratios of numbers in the gap to numbers outside.
        """
        points = self.splits.grid[curve.rows]
        stages = dict(self.traced.read_stages(points))
        stages[TRUTH] = self.bright_truth[curve.rows]
        is_ood = self.splits.is_ood[curve.rows]
        periodic = curve.factor.is_closed
        statistics = {}
        for stage, values in stages.items():
            statistics[stage] = manifolds.compute_gap_statistics(
                values, is_ood, periodic
            )
        return statistics


def measure_run(path: str | Path, traced: Sequence[TracedModel] = ()) -> None:
    """Adds the metrics of a finished run to its `metrics.json`.

    A run whose metrics are of this version of the code is left as it is.

    Args:
        path: The run folder.
        traced: Models of other runs (`RunAnalysis.of_run`).
    """
    path = Path(path)
    if is_measured(path):
        return

    run = load_run(path)
    trained = RunAnalysis.of_run(run, traced=traced)
    metrics = compute_metrics(trained)

    # The same metrics at the start of the training, for comparison.
    start_run = make_untrained(run)
    untrained = RunAnalysis.of_run(start_run, traced=traced)
    start = compute_metrics(untrained)
    del start["stages"]  # the same names
    metrics["start"] = start
    write_run_metrics(path, metrics)


def compute_metrics(analysis: RunAnalysis) -> dict[str, Any]:
    """Computes all metrics that apply to a run, and the names of its stages.

    Args:
        analysis: The run, trained or not.

    Returns:
        By name a number of the run, or a list with a number for each stage, in
        the order of `stages`. None for a number that is not finite.
    """
    numbers: dict[str, Any] = {}
    for function in _list_functions(list_metrics("run")):
        numbers |= function(analysis)

    rows = _compute_stages(analysis, list_metrics("stages"))
    names: dict[str, None] = {}  # an ordered set
    for row in rows.values():
        names |= dict.fromkeys(row)
    for name in names:
        numbers[name] = [row.get(name) for row in rows.values()]

    for name, value in numbers.items():
        numbers[name] = _to_numbers(value)
    return {
        "stages": analysis.stages,
        **numbers,
    }


def _to_numbers(value: Any) -> Any:
    """Replaces a number, or numbers of a list, by None if not finite."""
    if not isinstance(value, list):
        return finite_or_none(value)
    return [finite_or_none(number) for number in value]


def tabulate_stages(
    analysis: RunAnalysis,
    names: Sequence[str],
) -> dict[str, Scores]:
    """Tabulates metrics of every stage.

    Args:
        analysis: The analysis of a run, or of a model without one.
        names: Names of metrics of stages.

    Returns:
        By stage, a number for each name; None where it is not finite, or the
        stage has none.
    """
    summary = analysis.layers.summary
    # Only metrics that the summary lacks have to be computed.
    missing = set(names).difference(*summary.values())
    metrics = [m for m in list_metrics("stages") if m.name in missing]
    table: dict[str, Scores] = {}
    for stage, row in _compute_stages(analysis, metrics).items():
        scores = row | summary[stage]
        asked = {name: scores.get(name) for name in names}
        table[stage] = make_scores(asked)
    return table


def _compute_stages(
    analysis: RunAnalysis,
    metrics: Sequence[Metric],
) -> dict[str, Scores]:
    """Computes metrics by stage.

    A function that measures several metrics returns all of them, so the rows
    may have more than the metrics that are asked for.
    """
    rows: dict[str, Scores] = {stage: {} for stage in analysis.stages}
    for function in _list_functions(metrics):
        for stage, row in function(analysis).items():
            rows[stage] |= row
    return rows


def _list_functions(metrics: Sequence[Metric]) -> list[Callable[..., Any]]:
    """Lists the functions of metrics, each once."""
    functions = {metric.function: None for metric in metrics}  # an ordered set
    return [function for function in functions if function]
