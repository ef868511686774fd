"""Analyzes a finished run: all results that reports and metrics use."""

from __future__ import annotations

import copy
import dataclasses
import itertools
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any, TypeVar

import numpy as np

from tfcomp.analysis import features, geometry, manifolds, similarity
from tfcomp.analysis.probes import NO_SCORES, Scores
from tfcomp.analysis.tuning import Tuning, compute_tuning, select_units
from tfcomp.datasets import views
from tfcomp.datasets.dataset import Dataset
from tfcomp.datasets.grid_maps import Curve
from tfcomp.evaluation import derivatives
from tfcomp.evaluation.evaluator import EmbeddingAnalysis, LayerAnalysis
from tfcomp.evaluation.loading import LoadedRun
from tfcomp.evaluation.output_analysis import OutputAnalysis
from tfcomp.models.stages import make_model

TRUTH = "truth"  # the true images, as a stage
# Points of a large space that are compared with each other, which takes time
# that grows with their square.
FEW_POINTS = 1024
SHOWN_UNITS = 4
MAX_COMPONENTS = 50  # that a browser shows
Result = TypeVar("Result")


def reset(run: LoadedRun) -> LoadedRun:
    """Returns a run with its network before training."""
    # A run that was restarted has the seed of the training that was kept.
    seed = run.metrics.get("train", {}).get("seed", run.config.training.seed)
    training = dataclasses.replace(run.config.training, seed=seed)
    config = dataclasses.replace(run.config, training=training)
    model = make_model(config, run.dataset, "float32")
    return dataclasses.replace(run, model=model)


class RunAnalysis(OutputAnalysis):
    """Results of a run's outputs and stages, each computed on first use."""

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
        return None if self.run.path is None else RunAnalysis(reset(self.run))

    @property
    def stage_sizes(self) -> dict[str, int]:
        """Numbers of units by stage, in the order of the data flow."""
        return self._evaluator.stage_sizes

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
        run = dataclasses.replace(self.run, dataset=dataset, **changes)
        found = RunAnalysis(run, self._evaluator.at_points(dataset))
        found.name, found.setting = self.name, self.setting
        return found

    @cached_property
    def metrics(self) -> dict[str, np.ndarray]:
        """Metric tensors of every stage at every grid point, [n, F, F]."""
        return self._evaluator.measure_geometry()

    @property
    def nondifferentiable(self) -> Sequence[str]:
        """Stages whose metric tensors come from differences."""
        self.metrics  # noqa: B018 (the evaluator finds them as it measures)
        return self._evaluator.nondifferentiable

    @cached_property
    def log_volume(self) -> dict[str, np.ndarray]:
        """Log-volume of every stage at every grid point, [n]."""
        return {
            s: geometry.compute_log_volume(g) for s, g in self.metrics.items()
        }

    @cached_property
    def layers(self) -> LayerAnalysis:
        """Geometry and probes of every stage; recorded probes are used."""
        recorded = self.run.metrics.get("layers") or {}
        probes = {
            stage: {name: row[name] for name in NO_SCORES}
            for stage, row in recorded.items()
            if row and NO_SCORES.keys() <= row.keys()
        }
        known = probes if probes.keys() >= {*self.stages} else None
        return self._evaluator.analyze_layers(self.metrics, known)

    @cached_property
    def interactions(self) -> derivatives.Interactions:
        """Interactions of factors in every stage that has derivatives."""
        self.metrics  # noqa: B018 (it finds the stages without derivatives)
        return self._evaluator.measure_interactions(derivatives.MEASURED_POINTS)

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
            for stage, values in self._evaluator.read_points(points)
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
        return self._evaluator.analyze_embeddings()

    def _reduce_stages(
        self, reduce: Callable[[np.ndarray], Result], needs_grid: bool = False
    ) -> dict[str, Result]:
        if needs_grid and not self.splits.is_complete:
            return {}
        return {
            s: reduce(values) for s, values in self._evaluator.read_stages()
        }

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
        return self._reduce_stages(self._evaluator.probe_grid)

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
            **dict(self._evaluator.read_points(self.splits.grid[curve.rows])),
            TRUTH: self.bright_truth[curve.rows],
        }
        is_ood = self.splits.is_ood[curve.rows]
        is_closed = curve.factor.is_closed
        return {
            stage: manifolds.compute_gap_statistics(values, is_ood, is_closed)
            for stage, values in stages.items()
        }
