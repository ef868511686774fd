"""A study: one run with everything that several sections look at."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from tfcomp.analysis.embeddings import EmbeddingAnalysis
from tfcomp.curves import Curve
from tfcomp.curves import has_map
from tfcomp.curves import list_curves
from tfcomp.evaluation import Evaluation
from tfcomp.evaluation import Evaluator
from tfcomp.evaluation import LayerAnalysis
from tfcomp.loading import LoadedRun
from tfcomp.models.stages import list_stages
from tfcomp.report.stage_numbers import StageNumbers
from tfcomp.report.stage_numbers import StageReducer
from tfcomp.stage_blocks import StageBlocks


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
