"""Analyzes a finished run: all results that reports and metrics use."""

from __future__ import annotations

import copy
import dataclasses
import itertools
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from tfcomp.analysis import similarity
from tfcomp.analysis.features import compute_gram, compute_rows
from tfcomp.analysis.geometry import (
    compute_gradient_metrics,
    compute_log_volume,
)
from tfcomp.analysis.manifolds import compute_gap_statistics
from tfcomp.analysis.probes import NO_SCORES, Scores
from tfcomp.analysis.tuning import Tuning, compute_tuning, select_units
from tfcomp.datasets.dataset import Dataset
from tfcomp.datasets.grid_maps import Curve
from tfcomp.datasets.views import subsample_levels, subsample_points
from tfcomp.evaluation import derivatives
from tfcomp.evaluation.evaluator import (
    EmbeddingAnalysis,
    LayerAnalysis,
)
from tfcomp.evaluation.output_analysis import OutputAnalysis
from tfcomp.evaluation.stage_reader import (
    SHOWN_UNITS,
    StageNumbers,
    StageReader,
    reduce_stage,
)

TRUTH = "truth"  # the true images, as a stage
# Points of a large space that are compared with each other, which takes time
# that grows with their square.
FEW_POINTS = 1024


@dataclasses.dataclass(frozen=True)
class _GridNumbers:
    """Results of one stage; tuning and tensors are None without a grid."""

    tuning: Tuning | None
    grid_probe: float | None  # R^2 out of fold
    fitted_probe: float | None
    gradient: np.ndarray | None  # metric tensors, [n, F, F]


class RunAnalysis(OutputAnalysis):
    """Results of a run's outputs and stages, each computed on first use."""

    def rename(self, name: str, setting: str) -> RunAnalysis:
        """Returns the same analysis by another name."""
        other = copy.copy(self)
        other.name, other.setting = name, setting
        for part in ("for_maps", "for_pairs"):  # have the old name
            vars(other).pop(part, None)
        return other

    @property
    def stage_sizes(self) -> dict[str, int]:
        """Numbers of units by stage, in the order of the data flow."""
        return self._evaluator.stage_sizes

    @property
    def stages(self) -> list[str]:
        """Names of the stages in the order of the data flow."""
        return list(self.stage_sizes)

    @cached_property
    def for_maps(self) -> RunAnalysis:
        """The same run evaluated at the points of its maps."""
        return self._at_points(self.dataset.at_map_points, metrics={})

    @cached_property
    def for_pairs(self) -> RunAnalysis:
        """The same run at few points, so that all pairs can be compared."""
        return self._at_points(subsample_points(self.dataset, FEW_POINTS))

    def for_explorer(self, limit: int) -> RunAnalysis:
        """Returns the run at the combinations that an explorer shows."""
        return self._at_points(
            subsample_levels(self.dataset, limit), metrics={}
        )

    def _at_points(self, dataset: Dataset, **changes: Any) -> RunAnalysis:
        """Returns the run evaluated at other points, itself at its own.

        The recorded `metrics` hold for a subsample, but not elsewhere.
        """
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
        return {s: compute_log_volume(g) for s, g in self.metrics.items()}

    @cached_property
    def layers(self) -> LayerAnalysis:
        """Geometry and probes of every stage."""
        recorded = {stage: self._find_recorded(stage) for stage in self.stages}
        probes = {stage: p for stage, p in recorded.items() if p is not None}
        if len(probes) < len(recorded):
            probes = {stage: n.probe for stage, n in self.numbers.items()}
        return self._evaluator.analyze_layers(self.metrics, probes)

    @cached_property
    def interactions(self) -> derivatives.Interactions:
        """Interactions of factors in every stage that has derivatives."""
        self.metrics  # noqa: B018 (it finds the stages without derivatives)
        return self._evaluator.measure_interactions(
            derivatives.MEASURED_POINTS, self._is_repeated
        )

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
            stage: similarity.make_shape(compute_gram(activations, nothing))
            for stage, activations in self._evaluator.read_points(points)
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

    @property
    def _shape(self) -> tuple[int, ...] | None:
        """The shape of the grid, if it is complete."""
        return self.dataset.space.shape if self.splits.is_complete else None

    @cached_property
    def numbers(self) -> dict[str, StageNumbers]:
        """Tuning, probe, principal components and ranks of every stage."""
        points = self._shape, self.splits.is_ood
        return {
            stage: reduce_stage(activations, *points, self._find_probe(stage))
            for stage, activations in self._evaluator.read_stages()
        }

    @cached_property
    def shown_units(self) -> dict[str, tuple[np.ndarray, np.ndarray]]:
        """Units of every stage [k], and their activations at all points."""
        if "numbers" in vars(self) and self.splits.is_complete:
            return {
                stage: (n.units, n.maps.reshape(len(n.units), -1))
                for stage, n in self.numbers.items()
                if n.maps is not None
            }
        shown = {}
        for stage, values in self._evaluator.read_stages():
            units = select_units(values, values.var(axis=0), SHOWN_UNITS)
            shown[stage] = units, values[:, units].T
        return shown

    @property
    def tuning(self) -> dict[str, Tuning]:
        """Tuning of the units of every stage; empty without a whole grid."""
        if "numbers" in vars(self):
            tunings = {stage: n.tuning for stage, n in self.numbers.items()}
        else:
            tunings = {stage: n.tuning for stage, n in self._units.items()}
        return {stage: t for stage, t in tunings.items() if t is not None}

    @property
    def grid_probes(self) -> dict[str, float | None]:
        """R² over the whole grid of a linear probe of every stage."""
        return {stage: n.grid_probe for stage, n in self._units.items()}

    @property
    def fitted_probes(self) -> dict[str, float | None]:
        """R² of a linear probe of every stage at the points of its fit."""
        return {stage: n.fitted_probe for stage, n in self._units.items()}

    @property
    def gradient_metrics(self) -> dict[str, np.ndarray]:
        """Metric tensors by differences; empty without a whole grid."""
        found = ((stage, n.gradient) for stage, n in self._units.items())
        return {stage: g for stage, g in found if g is not None}

    @cached_property
    def _units(self) -> dict[str, _GridNumbers]:
        """Numbers of every stage over the whole grid, in one pass."""
        return {
            stage: self._reduce_grid(values)
            for stage, values in self._evaluator.read_stages()
        }

    def _reduce_grid(self, values: np.ndarray) -> _GridNumbers:
        rows = compute_rows(values, np.zeros(len(values), bool))
        probes = (
            self._evaluator.probe_grid(rows),
            self._evaluator.score_fitted(rows),
        )
        if self._shape is None:
            return _GridNumbers(None, *probes, None)
        axes = self.dataset.space.ordered
        gradient = compute_gradient_metrics(values, self._shape, axes)
        tuning = compute_tuning(values, self._shape)
        return _GridNumbers(tuning, *probes, gradient)

    def _find_probe(self, stage: str) -> Callable[[np.ndarray], Scores]:
        recorded = self._find_recorded(stage)
        return (lambda _: recorded) if recorded else self._evaluator.probe

    def _find_recorded(self, stage: str) -> Scores | None:
        """Returns the probe scores that the run has recorded, if any.

        Fitting a stage with thousands of units again takes longer than all
        figures.
        """
        row = (self.run.metrics.get("layers") or {}).get(stage) or {}
        is_known = NO_SCORES.keys() <= row.keys()
        return {name: row[name] for name in NO_SCORES} if is_known else None

    def compare_gap(self, curve: Curve, stage: str) -> dict[str, float | None]:
        """Divides steps and angles of a stage in a gap by those outside.

        The stage `TRUTH` has the true images.
        """
        if stage == TRUTH:
            values = self.bright_truth[curve.rows]
        else:
            grid, model = self.splits.grid[curve.rows], self.run.model
            reader = StageReader(model, len(grid), [stage])
            ((_, values),) = reader.iterate(grid)  # [points, units]
        return compute_gap_statistics(values, *self.describe_curve(curve))
