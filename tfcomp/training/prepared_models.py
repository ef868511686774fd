"""The devices and models of a run, which the next run may reuse.

Tracing takes most of a short run. A run that differs only in its seed reuses
the models of the last one, and a run of the same network its traced functions.
"""

import contextlib
import json
from collections.abc import Iterator
from dataclasses import dataclass

import keras
import numpy as np
import tensorflow as tf

from tfcomp.config.errors import (
    ConfigError,
    RunError,
    first_line,
    is_exhausted,
)
from tfcomp.config.process import (
    count_cores,
    keep_freed_memory,
    make_private_folder,
)
from tfcomp.config.quiet import quiet_startup
from tfcomp.config.run_config import RunConfig
from tfcomp.datasets import DATASETS, Dataset
from tfcomp.metrics.output_analysis import TracedModel
from tfcomp.models import ENCODINGS, MODELS
from tfcomp.models.stages import make_model
from tfcomp.storage.run_folder import MODEL_FILE
from tfcomp.training.fit import compile_model, count_steps
from tfcomp.training.train_model import TrainModel, to_train_model


def make_strategy(num_replicas: int = 0) -> tf.distribute.MirroredStrategy:
    """Mirrors variables over GPUs, or over parts of a CPU not used before."""
    keep_freed_memory()
    with quiet_startup():
        gpus = tf.config.list_physical_devices("GPU")
    available = len(gpus) or count_cores()
    if num_replicas > available:
        kind = "GPUs" if gpus else "CPU cores"
        rule = f"must be at most the {available} {kind} of this machine"
        raise ConfigError("num_replicas", rule, num_replicas)
    count = num_replicas or len(gpus) or 1
    if gpus:
        tf.config.experimental.enable_op_determinism()
    elif count > 1:
        cpu = tf.config.list_physical_devices("CPU")[0]
        known = tf.config.get_logical_device_configuration(cpu) or []
        if len(known) < count:
            tf.config.set_logical_device_configuration(
                cpu, [tf.config.LogicalDeviceConfiguration()] * count
            )
    kind = "GPU" if gpus else "CPU"
    return tf.distribute.MirroredStrategy([f"{kind}:{n}" for n in range(count)])


@dataclass
class PreparedModels:
    """The compiled model of a run, and a traced one that is evaluated."""

    trained: TrainModel
    traced: TracedModel
    optimizer_start: list[np.ndarray]  # variables before the first step
    seed: int  # of the attempt that is trained, and of the folds of probes

    @property
    def observed(self) -> keras.Model:
        """The evaluated model, in float32: geometry in bfloat16 is noise."""
        return self.traced.model

    def restart(self, config: RunConfig, dataset: Dataset) -> None:
        """Resets the models for a run that differs only in its seed."""
        fresh = make_model(config, dataset, config.training.precision)
        # With random states of layers, which are no weights.
        variables = *self.trained.variables, *self.trained.optimizer.variables
        values = *fresh.variables, *self.optimizer_start
        for variable, value in zip(variables, values, strict=True):
            variable.assign(value)
        self.seed = config.training.seed


# The models of the last run; at most one entry, since models fill memory.
_kept: dict[str, PreparedModels] = {}


@contextlib.contextmanager
def prepare_models(
    config: RunConfig, dataset: Dataset, strategy: tf.distribute.Strategy
) -> Iterator[PreparedModels]:
    """Yields the models of a run, and caches them if the block succeeds."""
    # They depend on the training images, which another seed may choose.
    find_constants = MODELS.get(config.model.model).constants
    constants = find_constants(dataset) if find_constants else None
    key = json.dumps(config.identity() | {"seed": None, "constants": constants})
    # Taken out while in use, so that no other thread finds them.
    models = _kept.pop(key, None)
    # Parts of users may change under their names, as in a notebook.
    is_ours = not config.plugins and is_shipped(config)
    others = list_traced() if is_ours else []
    _kept.clear()
    if models is None:
        trained = make_training_model(config, dataset, strategy)
        observed = make_model(config, dataset, "float32")
        space = dataset.space
        reusable = (t for t in others if t.is_compatible(observed, space))
        traced = next(reusable, None) or TracedModel(observed, space)
        start = [variable.numpy() for variable in trained.optimizer.variables]
        models = PreparedModels(
            trained, traced, start, seed=config.training.seed
        )
    else:
        models.restart(config, dataset)
    yield models
    if is_ours:
        _kept[key] = models


def is_shipped(config: RunConfig) -> bool:
    """Checks whether dataset, decoder and encoding of a run are tfcomp's."""
    flags = config.to_flags()
    for table in (DATASETS, MODELS, ENCODINGS):
        target = table.get(str(flags[table.flag])).target
        function = getattr(target, "func", target)
        if not function.__module__.startswith("tfcomp."):
            return False
    return True


def check_saving(config: RunConfig, dataset: Dataset) -> None:
    """Saves and loads an untrained network with parts of a user.

    Training takes long, and its end is too late to find that the network
    cannot be read again.

    Raises:
        RunError: The network cannot be saved or loaded; names the layer.
    """
    model = make_model(config, dataset, "float32")
    subject = f"--model={config.model.model}"
    if getattr(model, "inputs", None) is None:
        raise RunError(
            f"{subject} must build keras.Model(inputs, outputs), it builds a "
            f"{type(model).__name__}"
        )

    try:
        with make_private_folder() as folder:
            model.save(folder / MODEL_FILE)
            keras.models.load_model(folder / MODEL_FILE)
    except Exception as error:  # Keras has errors of many kinds
        if is_exhausted(error):
            raise
        layer, reason = _find_unsaved_layer(model) or ("", error)
        place = f"its layer {layer} " if layer else ""
        rule = "cannot be saved and loaded again"
        raise RunError(
            f"{subject}: {place}{rule} ({first_line(reason)})"
        ) from error


def _find_unsaved_layer(model: keras.Model) -> tuple[str, Exception] | None:
    for layer in model.layers:
        try:
            content = keras.saving.serialize_keras_object(layer)
            keras.saving.deserialize_keras_object(content)
        except Exception as error:  # of the user's class, too
            return f"{layer.name!r} ({type(layer).__name__})", error
    return None


def list_traced() -> list[TracedModel]:
    """Returns the traced model of the previous run, if cached."""
    return [models.traced for models in _kept.values()]


def make_training_model(
    config: RunConfig, dataset: Dataset, strategy: tf.distribute.Strategy
) -> TrainModel:
    """Makes the compiled model of a run in the scope of a strategy."""
    with strategy.scope():
        network = make_model(config, dataset, config.training.precision)
        model = to_train_model(network)
        steps = count_steps(config.training, dataset)
        compile_model(model, config.training, steps)
    return model
