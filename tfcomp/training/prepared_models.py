"""The devices and compiled models of a run, which the next run may reuse.

Tracing takes most of a short run. A run that differs only in its seed reuses
the models of the last one, and a run of the same network its traced functions.
"""

import contextlib
import json
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import keras
import numpy as np
import tensorflow as tf
from keras import ops

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
    quiet_startup,
)
from tfcomp.config.run_config import RunConfig, TrainingConfig
from tfcomp.datasets import Dataset
from tfcomp.metrics.output_analysis import TracedModel
from tfcomp.models.forced_rendering import AxisEmbedding, use_products
from tfcomp.models.registry import MODELS, is_shipped, make_model
from tfcomp.storage.run_folder import MODEL_FILE

# Steps that Keras may run in one call, a third faster for tiny models.
MOST_STEPS = 25


def make_strategy(num_replicas: int = 0) -> tf.distribute.MirroredStrategy:
    """Mirrors variables over GPUs, or over parts of a CPU not used before.

    Args:
        num_replicas: The number of devices; 0 for all GPUs, or one CPU.

    Raises:
        ConfigError: This machine has fewer GPUs, or fewer cores.
    """
    keep_freed_memory()
    with quiet_startup():
        gpus = tf.config.list_physical_devices("GPU")

    kind = "CPU"
    place = "CPU cores"
    available = count_cores()
    count = num_replicas or 1
    if gpus:
        kind = "GPU"
        place = "GPUs"
        available = len(gpus)
        count = num_replicas or available
    if num_replicas > available:
        rule = f"must be at most the {available} {place} of this machine"
        raise ConfigError("num_replicas", rule, num_replicas)

    if gpus:
        tf.config.experimental.enable_op_determinism()
    elif count > 1:
        _split_cpu(count)
    devices = [f"{kind}:{number}" for number in range(count)]
    return tf.distribute.MirroredStrategy(devices)


def _split_cpu(count: int) -> None:
    cpus = tf.config.list_physical_devices("CPU")
    cpu = cpus[0]
    parts = tf.config.get_logical_device_configuration(cpu)
    if parts is not None and len(parts) >= count:
        return
    part = tf.config.LogicalDeviceConfiguration()
    every_part = [part] * count
    tf.config.set_logical_device_configuration(cpu, every_part)


class TrainModel(keras.Model):
    """A faster `fit`, also by whole epochs, which `to_train_model` gives.

    `fit` reads and resets the mean loss eagerly around each epoch, which is
    slow: here these calls are traced. They stay out of attributes, as
    functions of TensorFlow there would become parts of checkpoints.
    """

    # Trains an epoch and returns its logs, while `fit` is to call a program.
    run_epoch: Callable[[], dict[str, float]] | None = None
    train_function: Callable[..., Any] | None

    def make_train_function(self, force: bool = False) -> None:
        """Makes what `fit` calls for `steps_per_execution` steps.

        Args:
            force: Whether Keras makes it anew.
        """
        run_epoch = self.run_epoch
        if run_epoch is None:
            super().make_train_function(force)
        else:
            self.train_function = lambda iterator: run_epoch()

    def reset_metrics(self) -> None:
        """Forgets the losses; a program does so itself."""
        if reads_directly():
            super().reset_metrics()
        elif self.run_epoch is None:
            self._reset_traced()

    def get_metrics_result(self) -> dict[str, Any]:
        """Returns the mean loss so far; a program's logs have it already."""
        if reads_directly():
            return super().get_metrics_result()
        if self.run_epoch is None:
            return self._read_traced()
        return {}

    @tf.function(autograph=False)
    def _reset_traced(self) -> None:
        self.reset_metrics()

    @tf.function(autograph=False)
    def _read_traced(self) -> dict[str, tf.Tensor]:
        return self.get_metrics_result()

    @tf.function(autograph=False, jit_compile=True)
    def train_epochs(
        self,
        rows: tf.Tensor,
        factors: tf.Tensor,
        images: tf.Tensor,
    ) -> tf.Tensor:
        """Trains E epochs of K steps as one program.

        On a GPU, launching kernels takes most of a step of a small network.

        Args:
            rows: Numbers of the rows of each batch, [E, K, B].
            factors: The training table's factors, [n, F].
            images: Its images, [n, H, W, C].

        Returns:
            The mean loss of each epoch, [E].
        """
        epochs, steps = rows.shape[:2]
        strategy = self.distribute_strategy

        def train_epoch(
            epoch: tf.Tensor,
            losses: tf.TensorArray,
        ) -> tuple[tf.Tensor, tf.TensorArray]:
            """Trains all steps of an epoch, and adds its mean loss."""

            def step(number: tf.Tensor) -> tuple[tf.Tensor]:
                batch = rows[epoch, number]
                batch_factors = tf.gather(factors, batch)
                batch_images = tf.gather(images, batch)
                data = (batch_factors, batch_images)
                strategy.run(self.train_step, args=(data,))
                return (number + 1,)

            self.reset_metrics()
            tf.while_loop(
                cond=lambda number: number < steps,
                body=step,
                loop_vars=[tf.constant(0)],
            )
            result = self.get_metrics_result()
            losses = losses.write(epoch, result["loss"])
            return epoch + 1, losses

        losses = tf.TensorArray(tf.float32, epochs)
        with use_products():
            _, losses = tf.while_loop(
                cond=lambda epoch, _: epoch < epochs,
                body=train_epoch,
                loop_vars=[tf.constant(0), losses],
            )
        return losses.stack()


def reads_directly() -> bool:
    """Returns True inside of a traced function, or if none may be traced.

    A user may let TensorFlow run all functions eagerly, to look into a step.
    """
    return not tf.executing_eagerly() or tf.config.functions_run_eagerly()


def to_train_model(network: keras.Model) -> TrainModel:
    """Gives a model, in place, the methods of `TrainModel` before its own.

    Its class may have a `train_step`, `call` or `compute_loss` of its own,
    which a new model of the same layers would not have.
    """
    network_class = type(network)
    name = f"Train{network_class.__name__}"
    network.__class__ = type(name, (TrainModel, network_class), {})
    assert isinstance(network, TrainModel)
    return network


def list_axis_embeddings(model: keras.Model) -> list[AxisEmbedding]:
    """Returns the layers of hard rendering whose axes may be pruned."""
    axes = []
    for layer in model.layers:
        if isinstance(layer, AxisEmbedding):
            axes.append(layer)
    return axes


def count_steps(config: TrainingConfig, dataset: Dataset) -> int:
    """Returns the steps of an epoch, by default one pass over the table.

    Args:
        config: The training.
        dataset: Has the training table.
    """
    num_rows = len(dataset.splits.train)
    num_batches = math.ceil(num_rows / config.batch_size)
    return config.steps_per_epoch or num_batches


def make_loss(l1_weight: float) -> str | Callable:
    """Returns the mean over pixels of (t - p)^2 + `l1_weight` |t - p|."""
    if not l1_weight:
        return "mean_squared_error"

    def squared_and_absolute_error(
        truth: keras.KerasTensor,
        images: keras.KerasTensor,
    ) -> keras.KerasTensor:
        error = images - truth
        squares = ops.square(error)
        loss = squares + l1_weight * ops.abs(error)
        return ops.mean(loss, axis=-1)

    return squared_and_absolute_error


@keras.saving.register_keras_serializable(package="tfcomp")
class FinalDecay(keras.optimizers.schedules.LearningRateSchedule):
    """A learning rate that falls to 0 at the end of a training.

        rate f((step - start) / (end - start)) from step `start` on

    with f(s) = 1 - s (`"linear"`) or (1 + cos pi s) / 2 (`"cosine"`).

    Args:
        rate: The learning rate before.
        start: The step at which it begins to fall.
        end: The step at which it is 0.
        shape: `"linear"` or `"cosine"`.
    """

    def __init__(
        self,
        rate: float,
        start: int,
        end: int,
        shape: str,
    ) -> None:
        super().__init__()
        self._config = {
            "rate": rate,
            "start": start,
            "end": end,
            "shape": shape,
        }
        self._rate = rate
        self._start = start
        self._length = end - start
        self._shape = shape

    def __call__(self, step: keras.KerasTensor) -> keras.KerasTensor:
        # Integers up to here: float32 does not tell steps above 2^24 apart.
        step = ops.cast(step, "int64")
        steps_past = step - self._start
        steps_past = ops.maximum(steps_past, 0)
        steps_past = ops.cast(steps_past, float)
        share = steps_past / self._length
        share = ops.minimum(share, 1.0)
        if self._shape == "linear":
            return self._rate * (1.0 - share)
        wave = ops.cos(math.pi * share)
        return self._rate * (0.5 + 0.5 * wave)

    def get_config(self) -> dict[str, Any]:
        return self._config


def clip_total_gradient(optimizer: keras.Optimizer) -> None:
    """Clips the gradient of all replicas; Keras clips the part of each."""
    clip = optimizer._clip_gradients

    def clip_sum(parts: list) -> list:
        context = tf.distribute.get_replica_context()
        tensors = [tf.convert_to_tensor(part) for part in parts]
        sums = context.all_reduce("sum", tensors)
        num_replicas = context.num_replicas_in_sync
        clipped = clip(sums)
        return [gradient / num_replicas for gradient in clipped]

    optimizer._clip_gradients = clip_sum


def make_rate(config: TrainingConfig, steps: int) -> float | FinalDecay:
    """Returns the learning rate of a run, or its fall.

    Args:
        config: The training.
        steps: Steps of an epoch.
    """
    if config.decay == "none":
        return config.learning_rate
    end = config.epochs * steps
    start = round(end * (1.0 - config.decay_share))
    start = min(start, end - 1)
    return FinalDecay(
        config.learning_rate,
        start=start,
        end=end,
        shape=config.decay,
    )


def compile_model(
    model: keras.Model,
    config: TrainingConfig,
    steps: int,
) -> None:
    """Compiles with AdamW and `make_loss`, in the scope of its strategy.

    Args:
        model: The model.
        config: Has the learning rate, its fall, weight decay and clipping.
        steps: Steps of an epoch.
    """
    replicas = tf.distribute.get_strategy().num_replicas_in_sync
    most = MOST_STEPS
    if replicas > 1:
        most = 1  # several steps per call fail there
    steps_per_call = 1
    for number in range(1, most + 1):
        if steps % number == 0:
            steps_per_call = number
    optimizer = keras.optimizers.AdamW(
        learning_rate=make_rate(config, steps),
        weight_decay=config.weight_decay,
        epsilon=config.adam_epsilon,
        global_clipnorm=config.clip_norm or None,
    )
    model.compile(
        optimizer=optimizer,
        loss=make_loss(config.l1_weight),
        steps_per_execution=steps_per_call,
        # XLA makes these networks slower on a CPU, and Keras skips it with
        # deterministic kernels, as on GPUs.
        jit_compile=False,
    )
    # Its variables must exist before a checkpoint can be restored to them.
    model.optimizer.build(model.trainable_variables)
    if replicas > 1:
        clip_total_gradient(model.optimizer)


def make_training_model(
    config: RunConfig,
    dataset: Dataset,
    strategy: tf.distribute.Strategy,
) -> TrainModel:
    """Makes the compiled model of a run.

    Args:
        config: The run.
        dataset: Its data.
        strategy: The devices, in whose scope variables are made.
    """
    with strategy.scope():
        network = make_model(config, dataset, config.training.precision)
        model = to_train_model(network)
        steps = count_steps(config.training, dataset)
        compile_model(model, config.training, steps)
    return model


@dataclass
class PreparedModels:
    """The compiled model of a run, and a traced one that is evaluated.

    Attributes:
        trained: The model that `fit` trains.
        traced: The model that is evaluated, in float32, since geometry in
            bfloat16 is noise.
        optimizer_start: Variables of the optimizer before the first step.
        seed: Of the attempt that is trained, and of the folds of probes.
    """

    trained: TrainModel
    traced: TracedModel
    optimizer_start: list[np.ndarray]
    seed: int

    @property
    def observed(self) -> keras.Model:
        """The Keras model that is evaluated."""
        return self.traced.model

    def observe(self) -> None:
        """Gives the model that is evaluated the weights that are trained."""
        weights = self.trained.get_weights()
        self.observed.set_weights(weights)

    def restart(self, config: RunConfig, dataset: Dataset) -> None:
        """Resets the models for a run that differs only in its seed.

        Args:
            config: The run.
            dataset: Its data.
        """
        fresh = make_model(config, dataset, config.training.precision)
        # With random states of layers, which are no weights.
        variables = list(self.trained.variables)
        variables += self.trained.optimizer.variables
        values = [*fresh.variables, *self.optimizer_start]
        starts = zip(variables, values, strict=True)
        for variable, value in starts:
            variable.assign(value)
        self.seed = config.training.seed


# The models of the last run; at most one entry, since models fill memory.
_kept: dict[str, PreparedModels] = {}


@contextlib.contextmanager
def prepare_models(
    config: RunConfig,
    dataset: Dataset,
    strategy: tf.distribute.Strategy,
) -> Iterator[PreparedModels]:
    """Lends the models of a run, and keeps them if the block succeeds.

    Args:
        config: The run.
        dataset: Its data.
        strategy: The devices that train it.

    Yields:
        The models of the run before, if it differs only in its seed, or new
        ones, which take over traced functions of the same network.
    """
    key = _describe_network(config, dataset)
    # Taken out while in use, so that no other thread finds them.
    models = _kept.pop(key, None)
    # Parts of users may change under their names, as in a notebook.
    is_ours = not config.plugins and is_shipped(config)
    reusable: list[TracedModel] = []
    if is_ours:
        reusable = list_traced()
    _kept.clear()

    if models is None:
        models = _make_models(
            config,
            dataset,
            strategy,
            reusable,
        )
    else:
        models.restart(config, dataset)
    yield models
    if is_ours:
        _kept[key] = models


def _describe_network(config: RunConfig, dataset: Dataset) -> str:
    """Names all that models depend on, but for the seed of their weights."""
    parts: dict[str, Any] = config.identity()
    parts["seed"] = None
    # They depend on the training images, which another seed may choose.
    decoder = MODELS.get(config.model.model)
    find_constants = decoder.constants
    if find_constants:
        parts["constants"] = find_constants(dataset)
    return json.dumps(parts)


def _make_models(
    config: RunConfig,
    dataset: Dataset,
    strategy: tf.distribute.Strategy,
    reusable: list[TracedModel],
) -> PreparedModels:
    trained = make_training_model(config, dataset, strategy)
    observed = make_model(config, dataset, "float32")
    for traced in reusable:
        if traced.is_compatible(observed, dataset.space):
            break
    else:
        traced = TracedModel(observed, dataset.space)
    start = []
    for variable in trained.optimizer.variables:
        start.append(variable.numpy())
    return PreparedModels(
        trained=trained,
        traced=traced,
        optimizer_start=start,
        seed=config.training.seed,
    )


def list_traced() -> list[TracedModel]:
    """Returns the traced model of the previous run, if kept."""
    return [models.traced for models in _kept.values()]


def check_saving(config: RunConfig, dataset: Dataset) -> None:
    """Saves and loads an untrained network with parts of a user.

    Training takes long, and its end is too late to find that the network
    cannot be read again.

    Args:
        config: The run.
        dataset: Its data.

    Raises:
        RunError: The network cannot be saved or loaded; names the layer.
    """
    model = make_model(config, dataset, "float32")
    subject = f"--model={config.model.model}"
    if getattr(model, "inputs", None) is None:
        kind = type(model).__name__
        rule = f"must build keras.Model(inputs, outputs), it builds a {kind}"
        raise RunError(f"{subject} {rule}")

    try:
        with make_private_folder() as folder:
            file = folder / MODEL_FILE
            model.save(file)
            keras.models.load_model(file)
    except Exception as error:  # Keras has errors of many kinds
        if is_exhausted(error):
            raise
        part, reason = _find_unsaved(model) or ("it", error)
        rule = f"cannot be saved and loaded again ({first_line(reason)})"
        raise RunError(f"{subject}: {part} {rule}") from error


def _find_unsaved(model: keras.Model) -> tuple[str, Exception] | None:
    for layer in model.layers:
        try:
            content = keras.saving.serialize_keras_object(layer)
            keras.saving.deserialize_keras_object(content)
        except Exception as error:  # of the user's class, too
            kind = type(layer).__name__
            return f"layer {layer.name!r} ({kind})", error
    return None
