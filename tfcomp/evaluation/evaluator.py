"""Evaluation of a decoder: exhaustive scores and layerwise numbers."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass

import keras
import numpy as np
import tensorflow as tf

from tfcomp.analysis import compute_difference_jacobians
from tfcomp.analysis import compute_log_volume
from tfcomp.analysis import compute_stage_jacobians
from tfcomp.analysis import compute_stage_metrics
from tfcomp.analysis import evaluate_in_batches
from tfcomp.analysis import summarize_geometry
from tfcomp.analysis.probes import probe_blocks
from tfcomp.analysis.scores import compute_mse_per_image
from tfcomp.analysis.scores import compute_scores
from tfcomp.datasets import Dataset
from tfcomp.datasets.factors import FactorSpace
from tfcomp.evaluation.embedding_analysis import EmbeddingAnalysis
from tfcomp.evaluation.embedding_analysis import analyze_embedding
from tfcomp.evaluation.stage_blocks import StageBlocks
from tfcomp.models.low_rank import list_embeddings
from tfcomp.models.stages import list_stages
from tfcomp.models.stages import make_stage_model


@dataclass(frozen=True)
class Evaluation:
    """Outputs and scores over the whole grid.

    Attributes:
        images: Model outputs at every grid point, [n, H, W, C].
        truth: True images, the same shape.
        scores: `{"id": {...}, "ood": {...}}`, plus `id_test` when some ID
            cells were not trained on, and `id_<name>`, `ood_<name>` for
            every other truth; keys as in `tfcomp.analysis.scores`.
    """

    images: np.ndarray
    truth: np.ndarray
    scores: dict[str, dict[str, float | None]]


def score_subsets(
    dataset: Dataset,
    images: np.ndarray,
    truth: np.ndarray,
    subsets: dict[str, np.ndarray],
) -> dict[str, dict[str, float | None]]:
    """Scores of outputs over the grid, for each subset of its points."""
    grid = dataset.splits.grid
    return {
        name: compute_scores(
            images[rows],
            truth[rows],
            grid[rows] if dataset.has_position else None,
            dataset.polarity,
        )
        for name, rows in subsets.items()
    }


def compute_relative_error(
    dataset: Dataset, evaluation: Evaluation
) -> np.ndarray:
    """MSE of every grid point over the MSE of a blank image there, [n]."""
    blank = np.full_like(evaluation.truth, dataset.background)
    error = compute_mse_per_image(evaluation.images, evaluation.truth)
    return error / compute_mse_per_image(blank, evaluation.truth)


@dataclass(frozen=True)
class LayerAnalysis:
    """Geometry and probes of every stage.

    Attributes:
        summary: Per stage `factorization`, `cosine_factorization`,
            `log_volume_id`, `log_volume_ood`, `dead_fraction`,
            `probe_r2_id`, `probe_r2_ood`.
        log_volume: Per stage, the log volume at every grid point, [n].
    """

    summary: dict[str, dict[str, float | None]]
    log_volume: dict[str, np.ndarray]


def choose_jacobian(model: keras.Model, space: FactorSpace) -> Callable:
    """Exact Jacobians, or grid differences where the code is a step.

    A one-hot code has derivative zero everywhere. There, and only there,
    derivatives are central differences over the grid (one-sided at its
    border), per unit of the factor and so on the scale of the exact ones.
    A categorical factor has no derivative: Jacobians have a column for each
    *ordered* factor.
    """
    layers = {layer.name: layer for layer in model.layers}
    if getattr(layers.get("code"), "differentiable", True):
        return _keep_names_fixed(compute_stage_jacobians, space)
    ordered = [space.factors[column] for column in space.ordered]
    differences = functools.partial(
        compute_difference_jacobians,
        low=[factor.low for factor in ordered],
        high=[factor.values()[-1] for factor in ordered],
        step=[factor.step for factor in ordered],
    )
    return _keep_names_fixed(differences, space)


def _keep_names_fixed(jacobian_fn: Callable, space: FactorSpace) -> Callable:
    """Jacobians over the ordered factors, the categorical ones fixed."""
    ordered = list(space.ordered)
    if len(ordered) == len(space):
        return jacobian_fn

    def compute(stage_fn: Callable, factors: tf.Tensor) -> dict:
        factors = tf.convert_to_tensor(factors)

        def vary(values: tf.Tensor) -> dict:
            columns = tf.unstack(factors, axis=1)
            for number, column in enumerate(ordered):
                columns[column] = values[:, number]
            return stage_fn(tf.stack(columns, axis=1))

        return jacobian_fn(vary, tf.gather(factors, ordered, axis=1))

    return compute


def make_probe_targets(space: FactorSpace, grid: np.ndarray) -> np.ndarray:
    """What a linear probe should find, [n, T].

    A factor's value; cos and sin of a periodic one, which jumps where it
    wraps; nothing for a categorical one, whose values have no order.
    """
    targets = [np.zeros((len(grid), 0))]
    for column in space.ordered:
        factor, values = space.factors[column], grid[:, column]
        if not factor.periodic:
            targets.append(values)
            continue
        unit = (values - factor.low) / (factor.high - factor.low)
        targets += [np.cos(2 * np.pi * unit), np.sin(2 * np.pi * unit)]
    return np.column_stack(targets)


class Evaluator:
    """Evaluates one model over and over, as its weights change.

    Every function of the model is traced once.

    Args:
        model: A decoder from `factors` to `image` with named stages.
        dataset: Its data.
        seed: Of the folds of the probes.
    """

    def __init__(
        self, model: keras.Model, dataset: Dataset, seed: int = 0
    ) -> None:
        self._dataset = dataset
        self._seed = seed
        self._embeddings = list_embeddings(model)
        stages = make_stage_model(model)
        jacobian_fn = choose_jacobian(model, dataset.space)
        self._draw = tf.function(lambda f: {"image": model(f)})
        self._measure = tf.function(
            lambda f: compute_stage_metrics(stages, f, jacobian_fn)
        )
        self._blocks = {
            stage: StageBlocks(model, stage, len(dataset.splits.grid))
            for stage in list_stages(model)
        }

    def turn_to(self, dataset: Dataset, seed: int) -> None:
        """Looks at other data over the same grid from now on."""
        self._dataset, self._seed = dataset, seed

    def evaluate(self) -> Evaluation:
        """Scores the model at every grid point, ID and OOD apart."""
        dataset, splits = self._dataset, self._dataset.splits
        images = evaluate_in_batches(self._draw, splits.grid)["image"]
        truth = dataset.render_array(splits.grid)
        subsets = {"id": splits.is_id, "ood": splits.is_ood}
        test = {"id_test": splits.is_test} if splits.is_test.any() else {}
        scores = score_subsets(dataset, images, truth, subsets | test)
        for name, render in dataset.other_truths.items():
            other = dataset.render_array(splits.grid, render)
            named = {f"{key}_{name}": rows for key, rows in subsets.items()}
            scores |= score_subsets(dataset, images, other, named)
        return Evaluation(images, truth, scores)

    def measure_geometry(self) -> dict[str, np.ndarray]:
        """Metric tensors of every stage over the whole grid, [n, F, F]."""
        return evaluate_in_batches(self._measure, self._dataset.splits.grid)

    def analyze_layers(
        self, metrics: dict[str, np.ndarray] | None = None
    ) -> LayerAnalysis:
        """Geometry and probes of every stage over the whole grid.

        `metrics` are what `measure_geometry` gave for the same weights, where
        that is known.
        """
        if metrics is None:
            metrics = self.measure_geometry()
        is_ood = self._dataset.splits.is_ood
        summary = {
            stage: {**summarize_geometry(g, is_ood), **self._probe(stage)}
            for stage, g in metrics.items()
        }
        volumes = {s: compute_log_volume(g) for s, g in metrics.items()}
        return LayerAnalysis(summary, volumes)

    def analyze_embeddings(self) -> dict[str, EmbeddingAnalysis]:
        """The low-rank embeddings of the model by factor, if it has any."""
        return {
            factor: analyze_embedding(layer)
            for factor, layer in self._embeddings.items()
        }

    def _probe(self, stage: str) -> dict[str, float | None]:
        # One stage at a time: together they fill the memory on large grids.
        splits, blocks = self._dataset.splits, self._blocks[stage]
        return probe_blocks(
            blocks.compute(splits.grid),
            blocks.num_units,
            make_probe_targets(self._dataset.space, splits.grid),
            splits.is_ood,
            self._seed,
        )
