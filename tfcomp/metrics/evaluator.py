"""Evaluates a decoder: scores of images, numbers of stages and embeddings."""

import copy
import functools
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import keras
import numpy as np
import tensorflow as tf

from tfcomp.config.quiet import show_progress
from tfcomp.datasets import Dataset
from tfcomp.metrics import derivatives, jacobians, point_scores
from tfcomp.metrics.features import compute_effective_rank, compute_rows
from tfcomp.metrics.geometry import compute_log_volume, summarize_geometry
from tfcomp.metrics.point_scores import Evaluation, evaluate_images
from tfcomp.metrics.probes import Scores, probe_rows, score_fitted
from tfcomp.models import forced_rendering
from tfcomp.models.forced_rendering import AxisEmbedding
from tfcomp.models.registry import AXES
from tfcomp.models.stages import (
    choose_batch_size,
    evaluate_in_batches,
    list_stages,
    make_stage_model,
)
from tfcomp.models.value_embedding import ValueEmbedding, list_embeddings

# Several small stages are computed at once, up to this size together.
MAX_GROUP_BYTES = 2**29


@dataclass(frozen=True)
class LayerAnalysis:
    """Numbers of stages as in `metrics.json`, and their log-volumes [n]."""

    summary: dict[str, dict[str, float | None]]
    log_volume: dict[str, np.ndarray]


@dataclass(frozen=True)
class EmbeddingAnalysis:
    """Numbers of one embedding over its values V."""

    matrices: np.ndarray  # rendered for all values, [V, rows, columns]
    spectrum: np.ndarray  # singular values, largest first, [V, R]
    effective_rank: np.ndarray  # of each matrix, by its spectrum, [V]
    # `effective_rank`; penalties (equations 10 and 11) averaged over values and
    # modes; for an `AxisEmbedding` the `ratio` of its axes, stronger over
    # weaker (None if given), and the one that is left, 0 for rows.
    summary: dict[str, float | None]
    # Of an `AxisEmbedding`, by axis, [V, rows or columns].
    profiles: Mapping[str, np.ndarray] = field(default_factory=dict)


def analyze_embedding(layer: ValueEmbedding) -> EmbeddingAnalysis:
    """Computes the numbers of one embedding layer."""
    spectrum = np.asarray(layer.spectrum())
    rank = compute_effective_rank(np.square(spectrum, dtype=np.float64))
    summary: dict[str, float | None] = {"effective_rank": float(rank.mean())}
    profiles = {}
    if isinstance(layer, AxisEmbedding):
        axis, profiles = layer.find_axis(), layer.profiles()
        summary["ratio"] = layer.measure_ratio()
        summary["axis"] = None if axis is None else AXES.index(axis)
    else:
        entropy = forced_rendering.EntropyRegularizer(1.0, "mean")
        summary["entropy"] = float(entropy(layer.coefficients))
        for basis in ("raw", "unit"):
            variance = forced_rendering.VarianceRegularizer(1.0, basis, "mean")
            both = variance(layer.left) + variance(layer.right)
            summary[f"variance_{basis}"] = float(both) / 2
    matrices = np.asarray(layer.matrices())
    return EmbeddingAnalysis(matrices, spectrum, rank, summary, profiles)


class Evaluator:
    """Evaluates one model while its weights change; traces functions once."""

    # Stages whose geometry came from differences in the last measurement.
    nondifferentiable: Sequence[str] = ()

    def __init__(
        self, model: keras.Model, dataset: Dataset, seed: int = 0
    ) -> None:
        self.model, self._dataset, self._seed = model, dataset, seed
        stages, space = make_stage_model(model), dataset.space
        self._draw = tf.function(lambda f: {"image": model(f)}, autograph=False)
        # By exact derivatives, and by differences where these are all zero.
        self._measure, self._measure_steps = (
            tf.function(
                lambda f, fn=fn: jacobians.compute_stage_metrics(stages, f, fn),
                autograph=False,
            )
            for fn in derivatives.list_jacobians(model, space)
        )
        self.stage_sizes = {  # numbers of units
            name: int(np.prod(model.get_layer(name).output.shape[1:]))
            for name in list_stages(model)
        }
        self._make_reader = functools.cache(
            lambda names: tf.function(
                make_stage_model(model, names), autograph=False
            )
        )
        num_units = sum(self.stage_sizes.values())
        # The memory that other software takes is unknown.
        is_outside = any(hasattr(x, "jacobian_fn") for x in model.layers)
        self._call_units = sys.maxsize if is_outside else num_units
        self._make_interaction_fn = functools.cache(
            lambda: derivatives.make_interaction_fn(model, space, num_units)
        )

    def is_compatible(self, model: keras.Model, dataset: Dataset) -> bool:
        """Returns True if architecture and grid match, whatever the weights."""
        own = self._dataset
        return (
            dataset.space == own.space
            and len(dataset.splits.grid) == len(own.splits.grid)
            and model.to_json() == self.model.to_json()
        )

    def set_dataset(self, dataset: Dataset, seed: int) -> None:
        """Evaluates at other data over the same factors from now on."""
        self._dataset, self._seed = dataset, seed

    def at_points(self, dataset: Dataset) -> "Evaluator":
        """Returns an evaluator at other points, with the same traces."""
        other = copy.copy(self)
        other._dataset, other.nondifferentiable = dataset, []
        return other

    def evaluate(self, images: np.ndarray | None = None) -> Evaluation:
        """Scores the model, by its images over the grid if they are given."""
        if images is None:
            images = self.draw(self._dataset.splits.grid)
        return evaluate_images(self._dataset, self._draw, images)

    def draw(self, points: np.ndarray) -> np.ndarray:
        """Returns the images of the model at points [n, F]: [n, H, W, C]."""
        return self._evaluate(self._draw, points)["image"]

    def _evaluate(
        self, fn: jacobians.StageFn, points: np.ndarray
    ) -> dict[str, np.ndarray]:
        """Calls a function as seldom as memory allows."""
        size = choose_batch_size(self._call_units, len(points))
        try:
            return evaluate_in_batches(fn, points, size)
        except tf.errors.ResourceExhaustedError:  # attention has many weights
            self._call_units = sys.maxsize
            return evaluate_in_batches(fn, points)

    def measure_geometry(self) -> dict[str, np.ndarray]:
        """Returns metric tensors [n, F, F] of stages; notes on differences."""
        grid = self._dataset.splits.grid
        self.nondifferentiable = []
        tensors = self._evaluate(self._measure, grid)
        if any(derivatives.is_flat(g).any() for g in tensors.values()):
            self.nondifferentiable = derivatives.find_nondifferentiable(
                self.model, self._dataset
            )
        if steps := self.nondifferentiable:
            note = derivatives.describe_nondifferentiable(steps)
            print(f"note: {note}", file=sys.stderr)
            differences = self._evaluate(self._measure_steps, grid)
            tensors |= {stage: differences[stage] for stage in steps}
        return tensors

    def measure_interactions(self, num_points: int) -> derivatives.Interactions:
        """Returns the interactions of factors at a sample of the grid."""
        grid = self._dataset.splits.grid
        points = derivatives.choose_points(grid, num_points)
        numbers = self._make_interaction_fn()(points)
        steps = self.nondifferentiable if numbers else ()
        return numbers | {s: dict.fromkeys(numbers[s]) for s in steps}

    def analyze_layers(
        self,
        tensors: dict[str, np.ndarray],
        probes: Mapping[str, Scores] | None = None,
    ) -> LayerAnalysis:
        """Summarizes `measure_geometry`; fits probes unless they are given."""
        grid, is_ood = self._dataset.splits.grid, self._dataset.splits.is_ood
        if probes is None:
            probes = {
                stage: self._probe(compute_rows(activations, is_ood), is_ood)
                for stage, activations in self.read_stages()
            }
        others = point_scores.compute_stage_metrics(
            self.read_stages, grid, is_ood
        )
        summary = {
            s: summarize_geometry(g, is_ood) | probes[s] | others.get(s, {})
            for s, g in tensors.items()
        }
        volumes = {s: compute_log_volume(g) for s, g in tensors.items()}
        return LayerAnalysis(summary, volumes)

    def analyze_embeddings(self) -> dict[str, EmbeddingAnalysis]:
        """Returns the low-rank embeddings of the model by factor, if any."""
        layers = list_embeddings(self.model).items()
        with tf.device("CPU"):  # singular values take a second on a GPU
            return {name: analyze_embedding(part) for name, part in layers}

    def read_stages(self) -> Iterable[tuple[str, np.ndarray]]:
        """Yields stages at all points of the grid, with a progress bar."""
        stages = self.read_points(self._dataset.splits.grid)
        return show_progress(stages, "layers", "stage", len(self.stage_sizes))

    def read_points(
        self, points: np.ndarray
    ) -> Iterator[tuple[str, np.ndarray]]:
        """Yields stages and their activations [n, units] at points [n, F]."""
        most = MAX_GROUP_BYTES // (4 * len(points))  # units
        sizes, groups = self.stage_sizes, list[list[str]]()
        for stage in sizes:
            if not groups or sum(sizes[s] for s in [*groups[-1], stage]) > most:
                groups.append([])
            groups[-1].append(stage)
        for group in groups:
            reader = self._make_reader(tuple(group))
            activations = self._evaluate(reader, points)
            for name in group:
                yield name, activations.pop(name).reshape(len(points), -1)

    def probe_grid(self, activations: np.ndarray) -> Scores:
        """Returns R^2 of probes over the grid, out of fold and where fitted."""
        nothing = np.zeros(len(activations), bool)
        rows = compute_rows(activations, nothing)
        unseen = self._probe(rows, nothing)["probe_r2_id"]
        fitted = score_fitted(rows, self._make_targets())
        return {"probe_r2_grid": unseen, "probe_r2_fitted": fitted}

    def _probe(self, rows: np.ndarray, held_out: np.ndarray) -> Scores:
        return probe_rows(rows, self._make_targets(), held_out, self._seed)

    def _make_targets(self) -> np.ndarray:
        """Returns values of ordered factors [n, T]; cos and sin if periodic."""
        grid, space = self._dataset.splits.grid, self._dataset.space
        targets = [np.zeros((len(grid), 0))]
        for column in space.ordered:
            factor, values = space.factors[column], grid[:, column]
            if not factor.periodic:
                targets.append(values)
                continue
            unit = (values - factor.low) / (factor.high - factor.low)
            targets += [np.cos(2 * np.pi * unit), np.sin(2 * np.pi * unit)]
        return np.column_stack(targets)
