"""Keras `fit` of one run: compile, restore, train, save."""

import contextlib
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import keras
import tensorflow as tf
from keras import ops

from tfcomp.config.errors import ConfigError, DivergedError
from tfcomp.config.process import check_stop, show_progress
from tfcomp.config.run_config import RunConfig, TrainingConfig
from tfcomp.datasets import Dataset
from tfcomp.datasets.batches import make_batches
from tfcomp.training import callbacks as own
from tfcomp.training.train_model import (
    TrainModel,
    count_span,
    is_compiled,
    use_program,
)


def compile_model(
    model: keras.Model, config: TrainingConfig, steps: int
) -> None:
    """Compiles with AdamW and `make_loss`, in the scope of its strategy.

    Args:
        model: The model.
        config: Has the learning rate, its fall, weight decay and clipping.
        steps: Steps of an epoch.
    """
    replicas = tf.distribute.get_strategy().num_replicas_in_sync
    # Several steps per call save a third of the time of tiny models, but
    # fail with more than one replica.
    most = 25
    if replicas > 1:
        most = 1
    divisors = [d for d in range(1, most + 1) if steps % d == 0]
    model.compile(
        optimizer=keras.optimizers.AdamW(
            learning_rate=own.make_rate(config, steps),
            weight_decay=config.weight_decay,
            epsilon=config.adam_epsilon,
            global_clipnorm=config.clip_norm or None,
        ),
        loss=make_loss(config.l1_weight),
        steps_per_execution=max(divisors),
        # XLA makes these networks slower on a CPU, and Keras skips it with
        # deterministic kernels, as on GPUs.
        jit_compile=False,
    )
    # Its variables must exist before a checkpoint can be restored to them.
    model.optimizer.build(model.trainable_variables)
    if replicas > 1:
        own.clip_whole(model.optimizer)


def make_loss(l1_weight: float) -> str | Callable:
    """Returns the mean over pixels of (t - p)^2 + `l1_weight` |t - p|."""
    if not l1_weight:
        return "mean_squared_error"

    def squared_and_absolute_error(
        truth: keras.KerasTensor, images: keras.KerasTensor
    ) -> keras.KerasTensor:
        error = images - truth
        return ops.mean(ops.square(error) + l1_weight * ops.abs(error), axis=-1)

    return squared_and_absolute_error


def count_steps(config: TrainingConfig, dataset: Dataset) -> int:
    """Returns the steps of an epoch, by default one pass over the table."""
    passes = math.ceil(len(dataset.splits.train) / config.batch_size)
    return config.steps_per_epoch or passes


def fit_model(
    model: TrainModel,
    dataset: Dataset,
    config: RunConfig,
    checkpoint_dir: str,
    callbacks: Sequence[keras.callbacks.Callback] = (),
) -> dict[str, float]:
    """Trains a compiled model from its last checkpoint.

    Args:
        model: The model, with the optimizer of `compile_model`.
        dataset: Has the training table.
        config: The run, whose epochs are counted from its start.
        checkpoint_dir: The folder of checkpoints, which may be empty.
        callbacks: They see the logs of each epoch; those with a method
            `reads_weights` allow more epochs in a compiled call.

    Returns:
        What training costs: `epochs`, `seconds`, `examples_per_second`.

    Raises:
        ConfigError: A callback stopped training early.
        DivergedError: The loss is not finite.
        RunError: None of the checkpoints can be read.
    """
    training = config.training
    steps = count_steps(training, dataset)
    schedules: list[keras.callbacks.Callback] = []
    states = {}
    if training.plateau_patience:
        plateau = own.PlateauSchedule(training.plateau_patience)
        schedules.append(plateau)
        states["plateau"] = plateau.state
    if own.list_axes(model):
        schedules.append(own.PruneAxes(config.model.prune_below, dataset))

    state = own.TrainingState(model, checkpoint_dir, **states)
    epoch = state.restore()
    if epoch < training.epochs:
        callbacks = [*schedules, *callbacks]
        span = 1
        if is_compiled(training, dataset, model.distribute_strategy):
            epochs = range(epoch, training.epochs)
            span = count_span(callbacks, epochs, steps)
        with show_epochs(config, epoch) as show:
            callbacks = [
                own.EpochTimer(epoch, span),
                keras.callbacks.LambdaCallback(on_epoch_end=_check_loss),
                *callbacks,
                own.SaveState(state, config.checkpoint_seconds, epoch, span),
                show,
            ]
            fit_without_pause(model, dataset, config, callbacks, epoch, span)

    seconds = float(state.seconds.numpy())
    examples = training.epochs * steps * training.batch_size
    return {
        "epochs": training.epochs,
        "seconds": seconds,
        "examples_per_second": examples / seconds,
    }


@contextlib.contextmanager
def show_epochs(
    config: RunConfig, first_epoch: int
) -> Iterator[keras.callbacks.Callback]:
    """Shows a progress bar; an error in the block starts a new line.

    Yields:
        The callback that moves the bar. (TqdmCallback reads the numbers of
        every batch.)
    """
    bar = show_progress(
        None,
        config.run_name,
        "epoch",
        config.training.epochs,
        initial=first_epoch,
        leave=True,
        delay=0,
    )

    def show(_: int, logs: dict[str, Any]) -> None:
        bar.set_postfix_str(f"loss {logs['loss']:.3g}", refresh=False)
        bar.update()

    with contextlib.closing(bar):
        yield keras.callbacks.LambdaCallback(on_epoch_end=show)


def fit_without_pause(
    model: TrainModel,
    dataset: Dataset,
    config: RunConfig,
    callbacks: Sequence[keras.callbacks.Callback] = (),
    first_epoch: int = 0,
    span: int = 1,
) -> None:
    """Trains a compiled model from an epoch on, without checkpoints.

    Args:
        model: The model, with the optimizer of `compile_model`.
        dataset: Has the training table.
        config: The run.
        callbacks: They are called in this order.
        first_epoch: The number of epochs that are trained already.
        span: The number of epochs of one compiled call.

    Raises:
        ConfigError: A callback stopped training early.
    """
    training = config.training
    strategy = model.distribute_strategy
    steps = count_steps(training, dataset)
    stop = keras.callbacks.LambdaCallback(on_epoch_end=lambda *_: check_stop())

    with contextlib.ExitStack() as stack:
        if is_compiled(training, dataset, strategy):
            program = use_program(
                model, dataset, training, steps, first_epoch, span
            )
            batches = stack.enter_context(program)
            steps = 1
        else:
            batches = make_batches(
                dataset,
                training.batch_size,
                training.seed,
                first_step=first_epoch * steps,
                num_steps=(training.epochs - first_epoch) * steps,
            )
        history = model.fit(
            give_to_devices(batches, strategy),
            epochs=training.epochs,
            initial_epoch=first_epoch,
            steps_per_epoch=steps,
            shuffle=False,
            verbose=0,
            callbacks=[*callbacks, stop],
        )

    done = first_epoch + len(history.epoch)
    if done < training.epochs:  # all files would name the last epoch
        rule = f"must be {done}, after which a callback stopped training"
        raise ConfigError("epochs", rule, training.epochs)


def give_to_devices(
    batches: tf.data.Dataset, strategy: tf.distribute.Strategy
) -> tf.data.Dataset | tf.distribute.DistributedDataset:
    """Distributes batches.

    No buffer on a CPU: to shut it down can take a minute.
    """
    gpus = tf.config.list_logical_devices("GPU")
    if gpus or strategy.num_replicas_in_sync > 1:
        return batches
    modes = tf.distribute.InputReplicationMode
    options = tf.distribute.InputOptions(
        experimental_fetch_to_device=False,
        experimental_replication_mode=modes.PER_REPLICA,
    )
    return strategy.distribute_datasets_from_function(
        lambda context: batches, options
    )


def _check_loss(epoch: int, logs: dict[str, Any]) -> None:
    if not math.isfinite(logs["loss"]):
        raise DivergedError(
            f"training diverged: the loss is {logs['loss']} in epoch "
            f"{epoch + 1}; try a smaller --learning_rate"
        )
