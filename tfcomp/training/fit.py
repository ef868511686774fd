"""Keras `fit` of one run: compile, restore, train, save."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import keras
import tensorflow as tf

from tfcomp.config.errors import DivergedError
from tfcomp.config.run_config import RunConfig
from tfcomp.config.training_config import TrainingConfig
from tfcomp.datasets import Dataset
from tfcomp.datasets.batches import make_batches
from tfcomp.training.checkpoints import EpochTimer
from tfcomp.training.checkpoints import SaveState
from tfcomp.training.checkpoints import TrainingState
from tfcomp.training.epoch_progress import ProgressBar
from tfcomp.training.losses import make_loss
from tfcomp.training.plateau import PlateauSchedule


@dataclass(frozen=True)
class TrainingSummary:
    """What training cost.

    Attributes:
        epochs: Epochs trained in all sessions of the run.
        seconds: Time spent in training steps in all sessions.
        examples_per_second: Over that time.
    """

    epochs: int
    seconds: float
    examples_per_second: float


def compile_model(
    model: keras.Model, config: TrainingConfig, steps: int
) -> None:
    """Compiles with AdamW and the error over pixels (`make_loss`).

    Must run in the scope of the strategy that the model was built in.

    Args:
        model: The model.
        config: Optimizer and loss.
        steps: Steps of an epoch.
    """
    replicas = tf.distribute.get_strategy().num_replicas_in_sync
    # Several steps per call save a third of the time of tiny models, but
    # fail with more than one replica.
    per_call = largest_divisor(steps, 25) if replicas == 1 else 1
    on_gpu = bool(tf.config.list_logical_devices("GPU"))
    model.compile(
        optimizer=keras.optimizers.AdamW(
            learning_rate=config.learning_rate,
            weight_decay=config.weight_decay,
            global_clipnorm=config.clip_norm or None,
        ),
        loss=make_loss(config.l1_weight),
        steps_per_execution=per_call,
        # XLA makes these networks slower on a CPU.
        jit_compile="auto" if on_gpu else False,
    )
    # Its variables must exist before a checkpoint can be restored to them.
    model.optimizer.build(model.trainable_variables)


def count_steps(config: TrainingConfig, dataset: Dataset) -> int:
    """Steps of an epoch: as asked for, or one pass over the table."""
    passes = math.ceil(len(dataset.splits.train) / config.batch_size)
    return config.steps_per_epoch or passes


def fit_model(
    model: keras.Model,
    dataset: Dataset,
    config: RunConfig,
    checkpoint_dir: str,
    callbacks: Sequence[keras.callbacks.Callback] = (),
) -> TrainingSummary:
    """Trains a compiled model, from its latest checkpoint if there is one.

    Args:
        model: Compiled by `compile_model`.
        dataset: Source of the batches.
        config: Epochs, batch size, seed and checkpoint interval are used.
        checkpoint_dir: Where checkpoints are written and looked for.
        callbacks: More callbacks; they see an epoch before it is saved, so
            that what they write is never missing after a resume.

    Raises:
        DivergedError: If the loss is not a finite number.
        RunError: If the checkpoint cannot be read.
    """
    training = config.training
    steps = count_steps(training, dataset)
    schedules = {}
    if training.plateau_patience:
        schedules["plateau"] = PlateauSchedule(training.plateau_patience)
    state = TrainingState(
        model, checkpoint_dir, {k: s.state for k, s in schedules.items()}
    )
    epoch = state.restore()
    saver = SaveState(state, training.epochs, config.checkpoint_seconds)
    if epoch < training.epochs:
        model.fit(
            make_batches(
                dataset,
                training.batch_size,
                training.seed,
                first_step=epoch * steps,
                num_steps=(training.epochs - epoch) * steps,
            ),
            epochs=training.epochs,
            initial_epoch=epoch,
            steps_per_epoch=steps,
            shuffle=False,
            verbose=0,
            callbacks=[
                EpochTimer(),
                StopIfDiverged(),
                *schedules.values(),
                *callbacks,
                saver,
                ProgressBar(training.epochs, config.run_name),
            ],
        )
    seconds = float(state.seconds.numpy())
    examples = training.epochs * steps * training.batch_size
    return TrainingSummary(training.epochs, seconds, examples / seconds)


class StopIfDiverged(keras.callbacks.Callback):
    """Ends a training that can only produce NaN."""

    def on_epoch_end(self, epoch: int, logs: dict | None = None) -> None:
        loss = (logs or {}).get("loss", 0.0)
        if not math.isfinite(loss):
            raise DivergedError(
                f"training diverged: the loss is {loss} in epoch "
                f"{epoch + 1}; try a smaller --learning_rate"
            )


def largest_divisor(number: int, limit: int) -> int:
    """The largest divisor of `number` that is at most `limit`."""
    return max(d for d in range(1, limit + 1) if number % d == 0)
