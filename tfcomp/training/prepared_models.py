"""The models of a run at its start, ready to be trained and observed.

Tracing them takes most of a short run. Of two runs in a row that differ in
their seeds alone the second takes over the models of the first, with initial
weights of its own; of two with the same network, it takes over what observes.
"""

import contextlib
import json
from collections.abc import Iterator
from dataclasses import dataclass

import keras
import numpy as np
import tensorflow as tf

from tfcomp.config.run_config import RunConfig
from tfcomp.datasets import Dataset
from tfcomp.evaluation.evaluator import Evaluator
from tfcomp.models.initial_model import make_model
from tfcomp.training.fit import compile_model, count_steps


@dataclass(frozen=True)
class PreparedModels:
    """What a run trains, compiled, and what looks at it."""

    trained: keras.Model
    evaluator: Evaluator
    optimizer_start: list[np.ndarray]  # its variables before the first step

    @property
    def observed(self) -> keras.Model:
        """It receives weights, in float32: geometry in bfloat16 is noise."""
        return self.evaluator.model

    def restart(self, config: RunConfig, dataset: Dataset) -> None:
        """Makes them those of another run, which differs in its seed alone."""
        fresh = make_model(config, dataset, config.training.precision)
        self.trained.set_weights(fresh.get_weights())
        optimizer = self.trained.optimizer
        for variable, value in zip(
            optimizer.variables, self.optimizer_start, strict=True
        ):
            variable.assign(value)
        self.evaluator.set_dataset(dataset, config.training.seed)


# Those of the last run; at most one, since models fill memory.
_kept: dict[str, PreparedModels] = {}


@contextlib.contextmanager
def prepare_models(
    config: RunConfig, dataset: Dataset, strategy: tf.distribute.Strategy
) -> Iterator[PreparedModels]:
    """The models of a run, kept for the next when the `with` block ends well.

    Not those of a plugin, which may do anything with a seed.
    """
    key = json.dumps(config.identity() | {"seed": None})
    # Taken out while in use, so that no other thread finds them.
    models = _kept.pop(key, None)
    others = [] if config.plugins else list_evaluators()
    _kept.clear()
    if models is None:
        trained = make_training_model(config, dataset, strategy)
        observed = make_model(config, dataset, "float32")
        known = [
            other for other in others if other.is_compatible(observed, dataset)
        ]
        evaluator = known[0] if known else Evaluator(observed, dataset)
        evaluator.set_dataset(dataset, config.training.seed)
        start = [variable.numpy() for variable in trained.optimizer.variables]
        models = PreparedModels(trained, evaluator, start)
    else:
        models.restart(config, dataset)
    yield models
    if not config.plugins:
        _kept[key] = models


def list_evaluators() -> list[Evaluator]:
    """That of the last run, whose functions are traced, if it is kept."""
    return [models.evaluator for models in _kept.values()]


def make_training_model(
    config: RunConfig, dataset: Dataset, strategy: tf.distribute.Strategy
) -> keras.Model:
    """The compiled model of a run, with its variables under a strategy."""
    with strategy.scope():
        model = make_model(config, dataset, config.training.precision)
        steps = count_steps(config.training, dataset)
        compile_model(model, config.training, steps)
    return model
