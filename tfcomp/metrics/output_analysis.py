"""Calls a model, and analyzes its outputs: errors, superposition, gaps."""

import dataclasses
import functools
import math
import sys
from collections.abc import Iterator
from functools import cached_property
from typing import Any

import keras
import numpy as np
import tensorflow as tf
from numpy import ndarray as Array

from tfcomp.datasets import Dataset
from tfcomp.datasets.factors import FactorSpace
from tfcomp.datasets.grid_maps import Curve, list_curves
from tfcomp.datasets.splits import Splits
from tfcomp.datasets.views import to_contrast
from tfcomp.metrics import interpolation, jacobians
from tfcomp.metrics.interaction import InteractionFn, make_interaction_fn
from tfcomp.metrics.interpolation import KernelFit, fit_kernels
from tfcomp.metrics.kernels import summarize_alignment
from tfcomp.metrics.references import (
    References,
    compute_border_distance,
    score_references,
)
from tfcomp.metrics.registry import Arrays, Scores
from tfcomp.metrics.scores import (
    Evaluation,
    compute_error_ratio,
    compute_mse,
    evaluate_images,
)
from tfcomp.metrics.superposition import (
    SuperpositionScores,
    compute_superposition,
)
from tfcomp.models.encodings import FactorIndex
from tfcomp.models.loading import LoadedRun
from tfcomp.models.registry import (
    StageFn,
    choose_batch_size,
    evaluate_in_batches,
    list_stages,
    make_stage_model,
)

# Several small stages are computed at once, up to this size together.
MAX_GROUP_BYTES = 2**29
MAX_SIZE = 2**27  # numbers of images for superposed codes
WINDOW = 11  # px, of SSIM
SSIM_IMAGES = 1024  # of one call


class TracedModel:
    """A model from factors [n, F] to images, and its stages by name.

    A model is analyzed again and again while it is trained. Its weights change
    and its functions do not, so that TensorFlow traces each of them once.

    Attributes:
        model: The Keras model, whose weights may change.
        space: The factors.
        stage_sizes: Numbers of units by stage, in the order of the data flow.
    """

    def __init__(self, model: keras.Model, space: FactorSpace) -> None:
        self.model = model
        self.space = space
        self.stage_sizes = {}
        for stage in list_stages(model):
            output = model.get_layer(stage).output
            num_units = np.prod(output.shape[1:])
            self.stage_sizes[stage] = int(num_units)

        def draw(factors: tf.Tensor) -> dict[str, tf.Tensor]:
            """Draws images as the only stage."""
            return {"image": model(factors)}

        def make_reader(names: tuple[str, ...]) -> StageFn:
            """Makes a function to some of the stages."""
            return _trace(make_stage_model(model, names))

        self._draw = _trace(draw)
        self._make_reader = functools.cache(make_reader)
        self._num_units = sum(self.stage_sizes.values())
        self._call_units = self._num_units
        for layer in model.layers:
            # The memory that other software takes is unknown.
            if getattr(layer, "jacobian_fn", None) is not None:
                self._call_units = sys.maxsize

    def is_compatible(self, model: keras.Model, space: FactorSpace) -> bool:
        """Returns True for the same architecture, whatever the weights.

        Args:
            model: Another model from factors to images.
            space: Its factors.
        """
        if space != self.space:
            return False
        return model.to_json() == self.model.to_json()

    def predict(self, points: Array) -> Array:
        """Computes the images [n, H, W, C] at points [n, F].

        Args:
            points: Values of the factors, [n, F].
        """
        outputs = self._evaluate(self._draw, points)
        return outputs["image"]

    def read_stages(self, points: Array) -> Iterator[tuple[str, Array]]:
        """Yields stages and their activations [n, units] at points [n, F].

        Args:
            points: Values of the factors, [n, F].
        """
        num_points = len(points)
        for group in self._group_stages(num_points):
            reader = self._make_reader(tuple(group))
            activations = self._evaluate(reader, points)
            for name in group:
                values = activations.pop(name)
                yield name, values.reshape(num_points, -1)

    def _group_stages(self, num_points: int) -> list[list[str]]:
        """Joins neighboring stages that are small together."""
        point_bytes = 4 * num_points
        most_units = MAX_GROUP_BYTES // point_bytes
        groups: list[list[str]] = []
        num_units = 0
        for stage, size in self.stage_sizes.items():
            num_units += size
            if not groups or num_units > most_units:
                groups.append([])
                num_units = size
            groups[-1].append(stage)
        return groups

    def measure_exactly(self, points: Array) -> Arrays:
        """Computes metric tensors [n, F, F] of all stages, by derivatives.

        Args:
            points: Values of the factors, [n, F].
        """
        compute = self._metric_fns[0]
        return self._evaluate(compute, points)

    def measure_steps(self, points: Array) -> Arrays:
        """Computes metric tensors [n, F, F] of all stages, by differences.

        Args:
            points: Values of the factors, [n, F].
        """
        compute = self._metric_fns[1]
        return self._evaluate(compute, points)

    @cached_property
    def _metric_fns(self) -> list[StageFn]:
        """Functions to metric tensors: by derivatives, and by differences."""
        stages = make_stage_model(self.model)
        functions = []
        choices = jacobians.list_jacobians(self.model, self.space)
        for jacobian_fn in choices:
            compute = functools.partial(
                jacobians.compute_stage_metrics,
                stages,
                jacobian_fn=jacobian_fn,
            )
            functions.append(_trace(compute))
        return functions

    @cached_property
    def measure_interactions(self) -> InteractionFn:
        """From points [n, F] to the interactions of factors by stage."""
        return make_interaction_fn(
            self.model,
            self.space,
            num_units=self._num_units,
        )

    def _evaluate(self, fn: StageFn, points: Array) -> Arrays:
        """Calls a function as seldom as memory allows."""
        size = choose_batch_size(self._call_units, len(points))
        try:
            return evaluate_in_batches(fn, points, size)
        except tf.errors.ResourceExhaustedError:  # attention has many weights
            self._call_units = sys.maxsize
            return evaluate_in_batches(fn, points)


def _trace(function: StageFn) -> StageFn:
    return tf.function(function, autograph=False)


class OutputAnalysis:
    """Results of a run's outputs, computed on first use with its weights."""

    def __init__(
        self,
        model: keras.Model | TracedModel,
        dataset: Dataset,
        *,
        seed: int = 0,
        outputs: Array | None = None,
        run: LoadedRun | None = None,
    ) -> None:
        """Makes the analysis of a model at the points of a dataset.

        Args:
            model: From factors to images; traced functions are used again.
            dataset: Factors, split and true images.
            seed: Of the folds of probes.
            outputs: Images of the model over the grid, [n, H, W, C], if they
                are known already.
            run: The loaded run of this model, which reports tell about.
        """
        if not isinstance(model, TracedModel):
            model = TracedModel(model, dataset.space)
        self.traced = model
        self.model = model.model
        self.dataset = dataset
        self.splits = dataset.splits
        self.seed = seed
        self.name = model.model.name
        if run:
            self.name = run.name
        self.setting = self.name  # that the run is a seed of
        self._outputs = outputs
        self._run = run

    @property
    def run(self) -> LoadedRun:
        """The loaded run, for reports.

        Raises:
            ValueError: If the analysis is of a model alone.
        """
        if self._run is None:
            raise ValueError("this model is not of a run")
        return self._run

    @property
    def recorded(self) -> dict[str, Any]:
        """What `metrics.json` records of the run; empty without a run."""
        if self._run is None:
            return {}
        return self._run.metrics

    @property
    def subsets(self) -> Arrays:
        """Masks of ID and of OOD grid points, [n] each."""
        return self.splits.subsets

    @cached_property
    def index(self) -> Array:
        """Grid indices of all points, of bins of continuous factors, [n, F]."""
        space = self.dataset.space
        return space.to_index(self.splits.grid)

    @property
    def has_map(self) -> bool:
        """True if results can be drawn as maps over two ordered factors."""
        return bool(self.dataset.planes)

    @property
    def has_hole(self) -> bool:
        """True if combinations of several factors are held out."""
        if len(self.dataset.space) < 2:
            return False
        return bool(self.splits.is_ood.any())

    @property
    def is_plane(self) -> bool:
        """True if the grid is complete, of two ordered factors without wrap."""
        space = self.dataset.space
        if any(factor.periodic for factor in space):
            return False
        if len(space) != 2 or not self.has_map:
            return False
        return self.splits.is_complete

    @cached_property
    def evaluation(self) -> Evaluation:
        """Outputs and scores over the grid."""
        outputs = self._outputs
        if outputs is None:
            outputs = self.traced.predict(self.splits.grid)
        return evaluate_images(
            self.dataset,
            predict=self.traced.predict,
            images=outputs,
        )

    @cached_property
    def bright_outputs(self) -> Array:
        """Outputs as bumps of height 1 on 0 (`to_contrast`), [n, pixels]."""
        return to_contrast(self.dataset, self.evaluation.images)

    @cached_property
    def bright_truth(self) -> Array:
        """True images as bumps of height 1 on 0, [n, pixels]."""
        return to_contrast(self.dataset, self.evaluation.truth)

    @cached_property
    def error(self) -> Array:
        """MSE over pixels at every grid point, [n]."""
        return compute_mse(
            self.dataset,
            self.splits.grid,
            self.evaluation.images,
            self.evaluation.truth,
        )

    @cached_property
    def ssim_error(self) -> Array | None:
        """1 - SSIM at every grid point [n]; None where images have none."""
        # Where a combination has several images, none of them is the truth.
        if self.dataset.compare is not None:
            return None
        rows, columns, _ = self.dataset.image_shape
        if min(rows, columns) < WINDOW:
            return None
        return compute_ssim_error(
            self.evaluation.images,
            self.evaluation.truth,
        )

    @cached_property
    def error_ratio(self) -> Array:
        """MSE over the MSE of the reference image at every grid point, [n]."""
        return compute_error_ratio(self.dataset, self.evaluation)

    @cached_property
    def references(self) -> References:
        """Relative MSE of predictors that need no network."""
        return score_references(self.dataset, self.evaluation.truth)

    @cached_property
    def border_distance(self) -> Array:
        """Steps from points to ID combinations, [n]; inf in a large space."""
        space = self.dataset.space
        grid = self.splits.grid
        id_mask = self.dataset.id_mask
        if id_mask is None:
            return np.full(len(grid), np.inf)

        # Combinations that do not exist were not trained either.
        is_untrained = ~id_mask.ravel()
        distance = compute_border_distance(is_untrained, space)
        places = space.to_place(grid)
        return distance[places]

    @property
    def superposition(self) -> SuperpositionScores:
        """R² of OOD outputs on memories, at every OOD point."""
        return self._superposed[0]

    @property
    def composed(self) -> SuperpositionScores:
        """The same scores with true images in place of the OOD outputs."""
        return self._superposed[1]

    @cached_property
    def _superposed(self) -> list[SuperpositionScores]:
        is_ood = self.splits.is_ood
        outputs = self.bright_outputs
        ood_outputs = outputs[is_ood]
        ood_truth = self.bright_truth[is_ood]
        scores = compute_superposition(
            factors=self.splits.grid,
            outputs=outputs,
            targets=[ood_outputs, ood_truth],
            is_ood=is_ood,
            space=self.dataset.space,
        )
        if self.splits.existing is None:
            return scores

        # A sample lacks ID points, which are nearer.
        steps = self.border_distance[is_ood]
        distance = np.minimum(scores[0].distance, steps)
        return [dataclasses.replace(s, distance=distance) for s in scores]

    @cached_property
    def superposed_inputs(self) -> Array | None:
        """Bright images of mean codes, [n_ood, F, pixels]."""
        images = predict_superposed_inputs(self.model, self.splits)
        if images is None:
            return None
        count, num_factors, *shape = images.shape
        stacked = images.reshape(-1, *shape)
        bright = to_contrast(self.dataset, stacked)
        return bright.reshape(count, num_factors, -1)

    @cached_property
    def kernel_fits(self) -> dict[str, dict[str, KernelFit]]:
        """Kernel regressions from ID to OOD, of outputs and of the truth."""
        targets = {
            "model outputs": self.bright_outputs,
            "truth": self.bright_truth,
        }
        return fit_kernels(
            self.index,
            outputs=targets,
            is_ood=self.splits.is_ood,
        )

    def align(self, gram: Array) -> Scores:
        """Compares similarities [n, n] with ideal kernels, over OOD points.

        Args:
            gram: Similarity of all pairs of grid points, [n, n].
        """
        is_ood = self.splits.is_ood
        index = self.index
        numbers = summarize_alignment(gram, index, is_ood)
        # Also with overlaps of bumps in place of deltas.
        sigma = self.dataset.sigma
        if self.is_plane and sigma:
            smooth = summarize_alignment(
                gram,
                index,
                is_ood,
                width=sigma,
            )
            additive = smooth["alignment_factorized"]
            numbers["alignment_factorized_smooth"] = additive
            numbers["alignment_radial"] = smooth["alignment_conjunctive"]
        return numbers

    @property
    def curves(self) -> list[Curve]:
        """Lines through a complete grid that has one ordered factor."""
        if not self.splits.is_complete:
            return []
        return list_curves(self.dataset.space)

    @cached_property
    def gaps(self) -> list[Curve]:
        """The curves with a held-out point between two ID ones."""
        gaps = []
        for curve in self.curves:
            is_ood = self.splits.is_ood[curve.rows]
            cycle = curve.factor.cycle
            rows, _, _ = interpolation.find_edges(is_ood, cycle)
            if len(rows):
                gaps.append(curve)
        return gaps

    def score_gap(
        self,
        curve: Curve,
    ) -> interpolation.Interpolation:
        """Scores interpolation at the held-out points of a curve.

        Args:
            curve: A line through the grid with a gap.
        """
        rows = curve.rows
        return interpolation.compute_interpolation(
            outputs=self.bright_outputs[rows],
            truth=self.bright_truth[rows],
            is_ood=self.splits.is_ood[rows],
            cycle=curve.factor.cycle,
        )


def compute_ssim_error(
    images: Array,
    truth: Array,
) -> Array:
    """Computes 1 - SSIM, [n]; NaN if not finite.

    Args:
        images: Outputs, [n, H, W, C], in units where 1 is the range.
        truth: True images, [n, H, W, C].
    """
    parts = []
    for start in range(0, len(images), SSIM_IMAGES):
        rows = slice(start, start + SSIM_IMAGES)
        similarity = tf.image.ssim(images[rows], truth[rows], max_val=1.0)
        parts.append(similarity.numpy())
    similarities = np.concatenate(parts, dtype=np.float64)
    return 1.0 - similarities


def predict_superposed_inputs(
    model: keras.Model,
    splits: Splits,
) -> Array | None:
    """Predicts images for mean codes of ID points that share a factor.

    At an OOD point (x, y), for codes g, they are f(g(x), mean g(y')) and
    f(mean g(x'), g(y)) (figure 1d).

    Args:
        model: From factors to images.
        splits: Has the grid.

    Returns:
        Images, [n_ood, F, H, W, C]; NaN where no ID point shares the value.
        None for an index, a model with other inputs, or too large images.
    """
    try:
        code = model.get_layer("code")
        decoder = keras.Model(code.output, model.output)
    except ValueError:  # none, or the image depends on something else, too
        return None
    num_images = splits.is_ood.sum() * splits.grid.shape[1]
    image_size = math.prod(model.output_shape[1:])
    size = num_images * image_size
    if isinstance(code, FactorIndex) or size > MAX_SIZE:
        return None

    (factors,) = model.inputs
    encoder = keras.Model(factors, code.output)
    encode = _trace(lambda points: {"": encoder(points)})
    draw = _trace(lambda codes: {"": decoder(codes)})
    codes = evaluate_in_batches(encode, splits.grid)[""]  # [n, code]
    images = []
    for column in splits.grid.T:
        values, places = np.unique(column, return_inverse=True)
        means = np.zeros((len(values), *codes.shape[1:]), codes.dtype)
        is_known = np.zeros(len(values), bool)
        for place, value in enumerate(values):
            sharing = codes[splits.is_id & (column == value)]
            if len(sharing):
                means[place] = sharing.mean(axis=0)
                is_known[place] = True

        superposed = evaluate_in_batches(draw, means)[""]
        superposed[~is_known] = np.nan
        images.append(superposed[places[splits.is_ood]])
    return np.stack(images, axis=1)
