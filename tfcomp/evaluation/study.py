"""A study: one run with everything that reports and measures look at."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from tfcomp.analysis import compute_log_volume
from tfcomp.analysis.border import compute_border_distance
from tfcomp.analysis.interpolation import Interpolation
from tfcomp.analysis.interpolation import compute_interpolation
from tfcomp.analysis.superposition import SuperpositionScores
from tfcomp.analysis.superposition import compute_superposition
from tfcomp.analysis.tuning import Tuning
from tfcomp.analysis.tuning import compute_stage_tuning
from tfcomp.datasets.grid_curves import Curve
from tfcomp.datasets.grid_curves import has_map
from tfcomp.datasets.grid_curves import list_curves
from tfcomp.evaluation.embedding_analysis import EmbeddingAnalysis
from tfcomp.evaluation.evaluator import Evaluation
from tfcomp.evaluation.evaluator import Evaluator
from tfcomp.evaluation.evaluator import LayerAnalysis
from tfcomp.evaluation.loading import LoadedRun
from tfcomp.evaluation.stage_blocks import StageBlocks
from tfcomp.evaluation.stage_blocks import iterate_stages
from tfcomp.evaluation.stage_numbers import StageNumbers
from tfcomp.evaluation.stage_numbers import StageReducer
from tfcomp.models.stages import list_stages


class Study:
    """Results of one run, each computed when it is first asked for.

    Args:
        run: A finished run.
    """

    def __init__(self, run: LoadedRun) -> None:
        self.run = run
        self.name = run.name
        self.dataset = run.dataset
        self.splits = run.dataset.splits
        seed = run.config.training.seed
        self._evaluator = Evaluator(run.model, run.dataset, seed)

    @cached_property
    def evaluation(self) -> Evaluation:
        """Outputs and scores over the grid."""
        return self._evaluator.evaluate()

    @cached_property
    def layers(self) -> LayerAnalysis:
        """Geometry and probes of every stage."""
        return self._evaluator.analyse_layers()

    @cached_property
    def log_volume(self) -> dict[str, np.ndarray]:
        """Log-volume of every stage at every grid point, without probes."""
        metrics = self._evaluator.measure_geometry()
        return {stage: compute_log_volume(g) for stage, g in metrics.items()}

    @cached_property
    def embeddings(self) -> dict[str, EmbeddingAnalysis]:
        """Low-rank embeddings by factor, if the model has any."""
        return self._evaluator.analyse_embeddings()

    @cached_property
    def numbers(self) -> dict[str, StageNumbers]:
        """Tuning and features of every stage."""
        shape, grid = self.dataset.space.shape, self.splits.grid
        numbers = {}
        for stage in self.stages:
            blocks = StageBlocks(self.run.model, stage, len(grid))
            reducer = StageReducer(shape, self.splits.is_ood)
            numbers[stage] = reducer.reduce(blocks.compute(grid))
        return numbers

    @cached_property
    def tuning(self) -> dict[str, Tuning]:
        """Tuning of the units of every stage, without the features."""
        shape = self.dataset.space.shape
        stages = iterate_stages(self.run.model, self.splits.grid)
        return {
            stage: compute_stage_tuning(blocks, shape)
            for stage, blocks in stages
        }

    @cached_property
    def superposition(self) -> SuperpositionScores:
        """What OOD outputs are made of, at every OOD point."""
        return compute_superposition(
            self.splits.grid, self.bright_outputs, self.splits.is_ood
        )

    @cached_property
    def border_distance(self) -> np.ndarray:
        """Grid steps of every grid point to the nearest ID one, [n]."""
        return compute_border_distance(self.splits.is_ood, self.dataset.space)

    @property
    def stages(self) -> list[str]:
        """Names of the stages in the order of the data flow."""
        return list_stages(self.run.model)

    @property
    def has_map(self) -> bool:
        """Whether results can be drawn as maps over two factors."""
        return has_map(self.dataset.space)

    @property
    def curves(self) -> list[Curve]:
        """Lines through the grid, where one factor is ordered."""
        return list_curves(self.dataset.space)

    def score_curve(self, curve: Curve) -> Interpolation:
        """Interpolation scores of one line through the grid."""
        return compute_interpolation(
            self.bright_outputs[curve.rows],
            self.bright_truth[curve.rows],
            self.splits.is_ood[curve.rows],
            curve.factor.periodic,
        )

    def trace_stage(self, curve: Curve, stage: str) -> np.ndarray:
        """Activations of a stage along one curve, [points, units]."""
        grid = self.splits.grid[curve.rows]
        blocks = StageBlocks(self.run.model, stage, len(grid)).compute(grid)
        return np.concatenate(list(blocks), axis=1)

    @property
    def bright_outputs(self) -> np.ndarray:
        """Outputs as bumps of height 1 on 0, flattened, [n, pixels]."""
        return self._brighten(self.evaluation.images)

    @property
    def bright_truth(self) -> np.ndarray:
        """True images as bumps of height 1 on 0, flattened, [n, pixels]."""
        return self._brighten(self.evaluation.truth)

    def _brighten(self, images: np.ndarray) -> np.ndarray:
        sign = -1.0 if self.dataset.polarity == "dark" else 1.0
        flat = images.reshape(len(images), -1)
        return sign * (flat - self.dataset.background)
