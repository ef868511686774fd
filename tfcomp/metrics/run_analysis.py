"""One object that is asked: every result about a model and its data."""

from __future__ import annotations

import copy
import dataclasses
import itertools
import sys
from collections.abc import Callable, Iterable
from functools import cached_property
from typing import Any, TypeVar

import numpy as np
import tensorflow as tf

from tfcomp.config.quiet import show_progress
from tfcomp.datasets import views
from tfcomp.datasets.dataset import Dataset
from tfcomp.datasets.grid_maps import Curve
from tfcomp.metrics import (
    derivatives,
    features,
    geometry,
    manifolds,
    point_scores,
    similarity,
)
from tfcomp.metrics.embeddings import EmbeddingAnalysis, analyze_embedding
from tfcomp.metrics.features import Scores
from tfcomp.metrics.output_analysis import OutputAnalysis
from tfcomp.metrics.probes import NO_SCORES, probe_rows, score_fitted
from tfcomp.metrics.tuning import Tuning, compute_tuning, select_units
from tfcomp.models.loading import LoadedRun
from tfcomp.models.stages import make_model
from tfcomp.models.value_embedding import list_embeddings

TRUTH = "truth"  # the true images, as a stage
# Points of a large space that are compared with each other, which takes time
# that grows with their square.
FEW_POINTS = 1024
SHOWN_UNITS = 4
MAX_COMPONENTS = 50  # that a browser shows
Result = TypeVar("Result")


@dataclasses.dataclass(frozen=True)
class LayerAnalysis:
    """Numbers of stages as in `metrics.json`, and their log-volumes [n]."""

    summary: dict[str, dict[str, float | None]]
    log_volume: dict[str, np.ndarray]


def reset(run: LoadedRun) -> LoadedRun:
    """Returns a run with its network before training."""
    # A run that was restarted has the seed of the training that was kept.
    seed = run.metrics.get("train", {}).get("seed", run.config.training.seed)
    training = dataclasses.replace(run.config.training, seed=seed)
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
        cls, run: LoadedRun, outputs: np.ndarray | None = None
    ) -> RunAnalysis:
        """Makes the analysis of a loaded run."""
        seed = run.config.training.seed
        return cls(run.model, run.dataset, seed=seed, outputs=outputs, run=run)

    def renew(self) -> RunAnalysis:
        """Returns the analysis of the same model with its present weights."""
        return RunAnalysis(self.traced, self.dataset, seed=self.seed)

    def rename(self, name: str, setting: str) -> RunAnalysis:
        """Returns the same analysis by another name."""
        other = copy.copy(self)
        other.name, other.setting = name, setting
        for part in ("for_maps", "for_pairs"):  # have the old name
            vars(other).pop(part, None)
        return other

    @cached_property
    def untrained(self) -> RunAnalysis | None:
        """The network before training; None for a model from elsewhere."""
        if self._run is None or self._run.path is None:
            return None
        return RunAnalysis.of_run(reset(self._run))

    @property
    def stage_sizes(self) -> dict[str, int]:
        """Numbers of units by stage, in the order of the data flow."""
        return self.traced.stage_sizes

    @property
    def stages(self) -> list[str]:
        """Names of the stages in the order of the data flow."""
        return list(self.stage_sizes)

    # The recorded metrics hold for a subsample, but not at other points.
    @cached_property
    def for_maps(self) -> RunAnalysis:
        """The same run evaluated at the points of its maps."""
        return self._at_points(views.subsample_maps(self.dataset), metrics={})

    @cached_property
    def for_pairs(self) -> RunAnalysis:
        """The same run at few points, so that all pairs can be compared."""
        return self._at_points(views.subsample_points(self.dataset, FEW_POINTS))

    def for_explorer(self, limit: int) -> RunAnalysis:
        """Returns the run at the combinations that an explorer shows."""
        shown = views.subsample_levels(self.dataset, limit)
        return self._at_points(shown, metrics={})

    def refine(self, count: int) -> RunAnalysis:
        """Returns the run at `count` even values of each ordered factor."""
        encoding = self.run.config.model.encoding
        finer = views.refine(self.dataset, encoding, count)
        return self._at_points(finer, metrics={})

    def _at_points(self, dataset: Dataset, **changes: Any) -> RunAnalysis:
        if dataset is self.dataset:
            return self
        run = self._run and dataclasses.replace(
            self._run, dataset=dataset, **changes
        )
        found = RunAnalysis(self.traced, dataset, seed=self.seed, run=run)
        found.name, found.setting = self.name, self.setting
        return found

    def read_stages(self) -> Iterable[tuple[str, np.ndarray]]:
        """Yields stages [n, units] over the grid, with a progress bar."""
        stages = self.traced.read_stages(self.splits.grid)
        return show_progress(stages, "layers", "stage", len(self.stage_sizes))

    @cached_property
    def _exact_metrics(self) -> dict[str, np.ndarray]:
        return self.traced.measure_exactly(self.splits.grid)

    @cached_property
    def nondifferentiable(self) -> list[str]:
        """Stages whose metric tensors come from differences, with a note."""
        tensors = self._exact_metrics.values()
        if not any(derivatives.is_flat(g).any() for g in tensors):
            return []
        steps = derivatives.find_nondifferentiable(self.model, self.dataset)
        if steps:
            note = derivatives.describe_nondifferentiable(steps)
            print(f"note: {note}", file=sys.stderr)
        return steps

    @cached_property
    def metrics(self) -> dict[str, np.ndarray]:
        """Metric tensors of every stage at every grid point, [n, F, F]."""
        if not self.nondifferentiable:
            return self._exact_metrics
        differences = self.traced.measure_steps(self.splits.grid)
        chosen = {stage: differences[stage] for stage in self.nondifferentiable}
        return self._exact_metrics | chosen

    @cached_property
    def log_volume(self) -> dict[str, np.ndarray]:
        """Log-volume of every stage at every grid point, [n]."""
        return {
            s: geometry.compute_log_volume(g) for s, g in self.metrics.items()
        }

    @cached_property
    def layers(self) -> LayerAnalysis:
        """Geometry and probes of every stage; recorded probes are used."""
        is_ood = self.splits.is_ood
        probes = self._find_recorded_probes() or self._fit_probes()
        user_metrics = point_scores.compute_stage_metrics(
            self.read_stages, self.splits.grid, is_ood
        )
        summary = {
            stage: {
                **geometry.summarize_geometry(g, is_ood),
                **probes[stage],
                **user_metrics.get(stage, {}),
            }
            for stage, g in self.metrics.items()
        }
        return LayerAnalysis(summary, self.log_volume)

    def _find_recorded_probes(self) -> dict[str, Scores]:
        """Returns the probes of all stages that the run records, if it does."""
        recorded = self.recorded.get("layers") or {}
        probes = {
            stage: {name: row[name] for name in NO_SCORES}
            for stage, row in recorded.items()
            if row and NO_SCORES.keys() <= row.keys()
        }
        return probes if probes.keys() >= {*self.stages} else {}

    def _fit_probes(self) -> dict[str, Scores]:
        is_ood = self.splits.is_ood
        return {
            stage: self._probe(features.compute_rows(activations, is_ood))
            for stage, activations in self.read_stages()
        }

    def _probe(self, rows: np.ndarray) -> Scores:
        held_out = self.splits.is_ood
        return probe_rows(rows, self._targets, held_out, self.seed)

    @cached_property
    def _targets(self) -> np.ndarray:
        """Values of ordered factors [n, T]; cos and sin of periodic ones."""
        grid = self.splits.grid
        targets = [np.zeros((len(grid), 0))]
        for column in self.dataset.space.ordered:
            factor = self.dataset.space.factors[column]
            values = grid[:, column]
            if not factor.periodic:
                targets.append(values)
                continue
            unit = (values - factor.low) / (factor.high - factor.low)
            targets += [np.cos(2 * np.pi * unit), np.sin(2 * np.pi * unit)]
        return np.column_stack(targets)

    @cached_property
    def interactions(self) -> derivatives.Interactions:
        """Interactions of factors in every stage that has derivatives."""
        return self.measure_interactions(derivatives.MEASURED_POINTS)

    def measure_interactions(self, num_points: int) -> derivatives.Interactions:
        """Returns the interactions of factors at a sample of the grid."""
        points = derivatives.choose_points(self.splits.grid, num_points)
        numbers = self.traced.measure_interactions(points)
        steps = self.nondifferentiable if numbers else ()
        return numbers | {s: dict.fromkeys(numbers[s]) for s in steps}

    @property
    def compared_points(self) -> np.ndarray:
        """Points at which stages are compared with each other, [n, F]."""
        grid = self.splits.grid
        return derivatives.choose_points(grid, similarity.MAX_POINTS)

    @cached_property
    def shapes(self) -> dict[str, similarity.Shape]:
        """Every stage at `compared_points`, to be compared."""
        points = self.compared_points
        nothing = np.zeros(len(points), bool)
        return {
            stage: similarity.make_shape(features.compute_gram(values, nothing))
            for stage, values in self.traced.read_stages(points)
        }

    @cached_property
    def similarities(self) -> list[dict[str, Any]]:
        """Similarity of any two stages, the upstream stage first."""
        summarize, shapes = similarity.summarize_similarity, self.shapes
        return [
            {"stage": a, "other": b, **summarize(shapes[a], shapes[b])}
            for a, b in itertools.combinations(self.stages, 2)
        ]

    @cached_property
    def embeddings(self) -> dict[str, EmbeddingAnalysis]:
        """Low-rank embeddings by factor, if the model has any."""
        layers = list_embeddings(self.model).items()
        with tf.device("CPU"):  # singular values take a second on a GPU
            return {name: analyze_embedding(layer) for name, layer in layers}

    def _reduce_stages(
        self, reduce: Callable[[np.ndarray], Result], needs_grid: bool = False
    ) -> dict[str, Result]:
        if needs_grid and not self.splits.is_complete:
            return {}
        return {stage: reduce(values) for stage, values in self.read_stages()}

    @cached_property
    def tuning(self) -> dict[str, Tuning]:
        """Tuning of the units of every stage; empty without a whole grid."""
        shape = self.dataset.space.shape
        return self._reduce_stages(lambda x: compute_tuning(x, shape), True)

    @cached_property
    def gradient_metrics(self) -> dict[str, np.ndarray]:
        """Metric tensors by differences; empty without a whole grid."""
        space = self.dataset.space
        points = space.shape, space.ordered
        return self._reduce_stages(
            lambda x: geometry.compute_gradient_metrics(x, *points), True
        )

    @cached_property
    def grid_probes(self) -> dict[str, Scores]:
        """R² over the grid of probes of every stage, out of fold and fitted."""
        return self._reduce_stages(self._probe_grid)

    def _probe_grid(self, activations: np.ndarray) -> Scores:
        nothing = np.zeros(len(activations), bool)
        rows = features.compute_rows(activations, nothing)
        unseen = probe_rows(rows, self._targets, nothing, self.seed)
        return {
            "probe_r2_grid": unseen["probe_r2_id"],
            "probe_r2_fitted": score_fitted(rows, self._targets),
        }

    @cached_property
    def _rows(self) -> dict[str, np.ndarray]:
        """Every stage as by `compute_rows`, [n, n] at most: for few points."""
        is_ood = self.splits.is_ood
        return self._reduce_stages(lambda x: features.compute_rows(x, is_ood))

    @cached_property
    def components(self) -> dict[str, manifolds.Components]:
        """Principal components of every stage."""
        return {
            stage: manifolds.compute_components(rows, MAX_COMPONENTS)
            for stage, rows in self._rows.items()
        }

    @cached_property
    def ranks(self) -> dict[str, dict[str, float | None]]:
        """Participation ratios of every stage over ID and OOD."""
        return {
            stage: {
                name: features.compute_participation(rows, chosen)
                for name, chosen in self.subsets.items()
            }
            for stage, rows in self._rows.items()
        }

    @cached_property
    def shown_units(self) -> dict[str, tuple[np.ndarray, np.ndarray]]:
        """Units of every stage that vary most [k], and their activations."""

        def select(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            units = select_units(values, values.var(axis=0), SHOWN_UNITS)
            return units, values[:, units].T

        return self._reduce_stages(select)

    def compare_gap(self, curve: Curve) -> dict[str, dict[str, float | None]]:
        """Divides steps and angles in a gap by those outside, by stage."""
        stages = {
            **dict(self.traced.read_stages(self.splits.grid[curve.rows])),
            TRUTH: self.bright_truth[curve.rows],
        }
        is_ood = self.splits.is_ood[curve.rows]
        is_closed = curve.factor.is_closed
        return {
            stage: manifolds.compute_gap_statistics(values, is_ood, is_closed)
            for stage, values in stages.items()
        }
