"""The functions of a model that its analysis calls, traced once.

A model is analyzed again and again while it is trained. Its weights change and
its functions do not, so that TensorFlow traces each of them once.
"""

import functools
import sys
from collections.abc import Callable, Iterator

import keras
import numpy as np
import tensorflow as tf

from tfcomp.datasets.factors import FactorSpace
from tfcomp.metrics import jacobians
from tfcomp.metrics.interaction import Interactions, make_interaction_fn
from tfcomp.models.stages import (
    StageFn,
    choose_batch_size,
    evaluate_in_batches,
    list_stages,
    make_stage_model,
)

# Several small stages are computed at once, up to this size together.
MAX_GROUP_BYTES = 2**29


class TracedModel:
    """A model from factors [n, F] to images, and its stages by name.

    Attributes:
        model: The Keras model, whose weights may change.
        space: The factors.
        stage_sizes: Numbers of units by stage, in the order of the data flow.
        predict_fn: From factors to `{"image": images}`, traced.
    """

    def __init__(self, model: keras.Model, space: FactorSpace) -> None:
        self.model = model
        self.space = space
        self.stage_sizes = {}
        for stage in list_stages(model):
            shape = model.get_layer(stage).output.shape[1:]
            self.stage_sizes[stage] = int(np.prod(shape))
        self.predict_fn = _trace(lambda factors: {"image": model(factors)})

        # The memory that other software takes is unknown.
        self._call_units = self._num_units
        if jacobians.find_outside_jacobians(model) is not None:
            self._call_units = sys.maxsize
        self._make_reader = functools.cache(
            lambda names: _trace(make_stage_model(model, names))
        )

        stages = make_stage_model(model)
        exact, differences = jacobians.list_jacobians(model, space)
        self._measure_exactly = _trace(
            lambda f: jacobians.compute_stage_metrics(stages, f, exact)
        )
        self._measure_steps = _trace(
            lambda f: jacobians.compute_stage_metrics(stages, f, differences)
        )

    @property
    def _num_units(self) -> int:
        return sum(self.stage_sizes.values())

    def is_compatible(self, model: keras.Model, space: FactorSpace) -> bool:
        """Returns True for the same architecture, whatever the weights."""
        return space == self.space and model.to_json() == self.model.to_json()

    def predict(self, points: np.ndarray) -> np.ndarray:
        """Computes the images [n, H, W, C] at points [n, F]."""
        return self._evaluate(self.predict_fn, points)["image"]

    def read_stages(
        self, points: np.ndarray
    ) -> Iterator[tuple[str, np.ndarray]]:
        """Yields stages and their activations [n, units] at points [n, F]."""
        for group in self._group_stages(len(points)):
            reader = self._make_reader(tuple(group))
            activations = self._evaluate(reader, points)
            for name in group:
                yield name, activations.pop(name).reshape(len(points), -1)

    def _group_stages(self, num_points: int) -> list[list[str]]:
        """Joins neighboring stages that are small together."""
        most_units = MAX_GROUP_BYTES // (4 * num_points)
        groups: list[list[str]] = []
        num_units = 0
        for stage, size in self.stage_sizes.items():
            num_units += size
            if not groups or num_units > most_units:
                groups.append([])
                num_units = size
            groups[-1].append(stage)
        return groups

    def measure_exactly(self, points: np.ndarray) -> dict[str, np.ndarray]:
        """Computes metric tensors [n, F, F] of all stages, by derivatives."""
        return self._evaluate(self._measure_exactly, points)

    def measure_steps(self, points: np.ndarray) -> dict[str, np.ndarray]:
        """Computes metric tensors [n, F, F] of all stages, by differences."""
        return self._evaluate(self._measure_steps, points)

    def measure_interactions(self, points: np.ndarray) -> Interactions:
        """Measures the interactions of factors by stage, at points [n, F]."""
        return self._interaction_fn(points)

    @functools.cached_property
    def _interaction_fn(self) -> Callable[[np.ndarray], Interactions]:
        return make_interaction_fn(self.model, self.space, self._num_units)

    def _evaluate(
        self, fn: StageFn, points: np.ndarray
    ) -> dict[str, np.ndarray]:
        """Calls a function as seldom as memory allows."""
        size = choose_batch_size(self._call_units, len(points))
        try:
            return evaluate_in_batches(fn, points, size)
        except tf.errors.ResourceExhaustedError:  # attention has many weights
            self._call_units = sys.maxsize
            return evaluate_in_batches(fn, points)


def _trace(function: StageFn) -> StageFn:
    return tf.function(function, autograph=False)
