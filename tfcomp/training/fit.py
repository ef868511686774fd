"""Keras `fit` of one run: its batches; restore, train, save.

On a GPU epochs are XLA programs (see `is_compiled`): the loop over steps, the
gradient and the optimizer. The training table, factors and images of all
training examples, then lies on the device, and the host sends the rows of each
batch. One call of a program trains a *span* of epochs.

Batches are a pure function of seed and step. Example number e = step *
batch_size + i is row pi_p(e mod n) of the table, where p = e div n counts the
passes and pi_p is a pseudo-random permutation that depends on (seed, p) alone.
(With `--correlation` or `--balance` a pass has images several times.) So a
resumed run sees the same batches.
"""

import contextlib
import math
import re
import shutil
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import keras
import numpy as np
import tensorflow as tf
from numpy import ndarray as Array

from tfcomp.config.errors import (
    ConfigError,
    DivergedError,
    RunError,
    first_line,
)
from tfcomp.config.process import (
    check_stop,
    count_device_memory,
    show_progress,
)
from tfcomp.config.run_config import RunConfig, TrainingConfig
from tfcomp.datasets import Dataset
from tfcomp.training.callbacks import PlateauSchedule, PruneAxes
from tfcomp.training.prepared_models import (
    TrainModel,
    count_steps,
    list_axis_embeddings,
)

# Checkpoints to keep: a crash during a write must leave one.
_KEPT = 2
_INDEX = re.compile(r"ckpt-(\d{1,18})\.index", re.ASCII)
# The device must have at least this number of times the memory that the
# training images fill.
MEMORY_RATIO = 4
# The most steps of one call of a program: nothing can stop it, and the progress
# bar waits for it.
MOST_STEPS = 1000
# Of the cipher that shuffles. TensorFlow's default, 4, leaves the first pass
# over a small table nearly in order for small seeds.
ROUNDS = 16
# Steps whose rows are sampled at once: to run the few operations of a sample
# takes longer than the operations.
SAMPLED_STEPS = 25
MAX_STORED = 64 * 2**20  # bytes of images that are rendered only once
# AutoGraph parses the source of all that a function calls.
skip_autograph = tf.autograph.experimental.do_not_convert


class TrainingState(keras.callbacks.Callback):
    """The state of a training, which saves itself as a callback of `fit`.

    The rest of a training depends on this state alone: on weights, optimizer
    with the rate, a schedule, random states of layers (dropout), and the
    epoch, from which batches follow.

    It is saved after the last epoch, and now and then between compiled calls.

    Args:
        model: A compiled model with a built optimizer.
        folder: The folder of checkpoints.
        every_seconds: Seconds from one checkpoint to the next, at least.
        **schedules: More states, by their names in checkpoints.

    Attributes:
        seconds: The training time of all sessions of the run.
        span: The number of epochs of one compiled call.
    """

    def __init__(
        self,
        model: keras.Model,
        folder: str,
        every_seconds: float = 0.0,
        **schedules: tf.train.Checkpoint,
    ) -> None:
        super().__init__()
        self.seconds = tf.Variable(
            0.0,
            dtype=tf.float64,
            trainable=False,
        )
        self.span = 1
        self._epoch = tf.Variable(
            0,
            dtype=tf.int64,
            trainable=False,
        )
        weights = {id(variable) for variable in model.weights}
        random = []
        for variable in model.variables:
            if id(variable) not in weights:
                random.append(variable.value)
        self._checkpoint = tf.train.Checkpoint(
            model=model,
            optimizer=model.optimizer,
            epoch=self._epoch,
            seconds=self.seconds,
            random=random,
            **schedules,
        )
        self._folder = Path(folder)
        self._every_seconds = every_seconds
        self._first_epoch = 0
        self._last_save = time.monotonic()

    def on_epoch_end(self, epoch: int, logs: dict[str, Any]) -> None:
        """Saves a checkpoint if one is due, and after the last epoch."""
        self.seconds.assign_add(logs["seconds"])
        done = epoch + 1
        waited = time.monotonic() - self._last_save
        is_last = done == self.params["epochs"]
        num_trained = done - self._first_epoch
        is_end_of_call = num_trained % self.span == 0
        is_due = is_end_of_call and waited >= self._every_seconds
        if is_last or is_due:
            self.save(done)
            self._last_save = time.monotonic()

    def save(self, epoch: int) -> None:
        """Saves the state after `epoch` epochs, and keeps the one before.

        Args:
            epoch: The number of epochs that are trained.
        """
        self._epoch.assign(epoch)
        # Files get their final names when they are complete.
        path = self._folder / f"ckpt-{epoch}"
        self._checkpoint.write(str(path))
        num_kept = 0
        for saved in list_epochs(self._folder):
            # Later checkpoints could not be read.
            if saved <= epoch and num_kept < _KEPT:
                num_kept += 1
                continue
            for file in self._folder.glob(f"ckpt-{saved}.*"):
                file.unlink()

    def restore(self) -> int:
        """Loads the latest readable checkpoint.

        Returns:
            Its epoch; 0 if there are no checkpoints.

        Raises:
            RunError: None of the checkpoints can be read.
        """
        for left in self._folder.glob("ckpt-*_temp"):
            shutil.rmtree(left)  # left by a kill
        problems = []
        for epoch in list_epochs(self._folder):
            path = str(self._folder / f"ckpt-{epoch}")
            try:
                # `restore` would ask for a counter of checkpoints, too.
                status = self._checkpoint.read(path)
                status.assert_existing_objects_matched()
            except Exception as error:  # damage has errors of many kinds
                reason = f"cannot be read ({first_line(error)})"
                problems.append(f"the checkpoint {path} {reason}")
                continue
            for problem in problems:
                note = f"note: {problem}; on from epoch {epoch}"
                print(note, file=sys.stderr)
            self._first_epoch = epoch
            return epoch
        if problems:
            raise RunError(
                f"{problems[0]}; remove {self._folder} to start over"
            )
        return 0


def list_epochs(folder: Path) -> list[int]:
    """Returns the epochs of the checkpoints in a folder, latest first."""
    epochs = []
    for file in folder.glob("ckpt-*"):
        name = _INDEX.fullmatch(file.name)
        if name:
            epochs.append(int(name[1]))
    return sorted(epochs, reverse=True)


class EpochTimer(keras.callbacks.Callback):
    """Adds the `seconds` of the training steps to the logs of epochs.

    Args:
        first_epoch: The number of epochs that are trained already.
        span: The number of epochs of one compiled call.
    """

    def __init__(self, first_epoch: int, span: int) -> None:
        super().__init__()
        self._first_epoch = first_epoch
        self._span = span

    def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
        num_trained = epoch - self._first_epoch
        if num_trained % self._span == 0:
            self._start = time.monotonic()
            self._end = 0.0

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        if self._span == 1 or not self._end:
            self._end = time.monotonic()

    def on_epoch_end(self, epoch: int, logs: dict[str, Any]) -> None:
        seconds = self._end - self._start
        logs["seconds"] = seconds / self._span


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
        callbacks: They see the logs of each epoch, after its loss is checked
            and before a checkpoint. One program trains several epochs only if
            all of them have a method `reads_weights` (see `count_span`).

    Returns:
        What training costs, over all sessions of the run: `epochs`, `seconds`,
        `examples_per_second`.

    Raises:
        ConfigError: If a callback stopped training early.
        DivergedError: If the loss is not finite.
        RunError: If none of the checkpoints can be read.
    """
    training = config.training
    steps = count_steps(training, dataset)
    schedules, states = _make_schedules(model, dataset, config)
    state = TrainingState(
        model,
        checkpoint_dir,
        config.checkpoint_seconds,
        **states,
    )
    first_epoch = state.restore()
    if first_epoch < training.epochs:
        every_callback = [*schedules, *callbacks]
        if is_compiled(training, dataset, model.distribute_strategy):
            epochs = range(first_epoch, training.epochs)
            state.span = count_span(every_callback, epochs, steps)
        timer = EpochTimer(first_epoch, state.span)
        check_loss = keras.callbacks.LambdaCallback(on_epoch_end=_check_loss)
        with show_epochs(config, first_epoch) as show:
            fit_epochs(
                model,
                dataset,
                config,
                [timer, check_loss, *every_callback, state, show],
                first_epoch=first_epoch,
                span=state.span,
            )

    seconds = float(state.seconds.numpy())
    examples = training.epochs * steps * training.batch_size
    return {
        "epochs": training.epochs,
        "seconds": seconds,
        "examples_per_second": examples / seconds,
    }


def _make_schedules(
    model: TrainModel,
    dataset: Dataset,
    config: RunConfig,
) -> tuple[list[keras.callbacks.Callback], dict[str, tf.train.Checkpoint]]:
    """Makes the callbacks that change the training of a run.

    Args:
        model: The compiled model.
        dataset: Has the training table.
        config: The run.

    Returns:
        The callbacks, and their states by the names in checkpoints.
    """
    schedules: list[keras.callbacks.Callback] = []
    states = {}
    patience = config.training.plateau_patience
    if patience:
        plateau = PlateauSchedule(patience)
        schedules.append(plateau)
        states["plateau"] = plateau.state
    if list_axis_embeddings(model):
        prune = PruneAxes(config.model.prune_below, dataset)
        schedules.append(prune)
    return schedules, states


@contextlib.contextmanager
def show_epochs(
    config: RunConfig,
    first_epoch: int,
) -> Iterator[keras.callbacks.Callback]:
    """Shows a progress bar; an error in the block starts a new line.

    Args:
        config: The run, whose epochs are shown.
        first_epoch: The number of epochs that are trained already.

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


def fit_epochs(
    model: TrainModel,
    dataset: Dataset,
    config: RunConfig,
    callbacks: Sequence[keras.callbacks.Callback] = (),
    first_epoch: int = 0,
    span: int = 1,
) -> None:
    """Trains a compiled model from an epoch on, without checkpoints.

    A request to stop (`check_stop`) ends it after an epoch.

    Args:
        model: The model, with the optimizer of `compile_model`.
        dataset: Has the training table.
        config: The run.
        callbacks: They are called in this order.
        first_epoch: The number of epochs that are trained already.
        span: The number of epochs of one call of a program.

    Raises:
        ConfigError: If a callback stopped training early.
    """
    training = config.training
    strategy = model.distribute_strategy
    steps = count_steps(training, dataset)
    stop = keras.callbacks.LambdaCallback(on_epoch_end=lambda *_: check_stop())
    with contextlib.ExitStack() as stack:
        if is_compiled(training, dataset, strategy):
            program = use_program(model, dataset, training, first_epoch, span)
            batches = stack.enter_context(program)
            steps = 1  # for Keras an epoch of a program is one step
        else:
            num_epochs = training.epochs - first_epoch
            batches = make_batches(
                dataset,
                training.batch_size,
                training.seed,
                first_step=first_epoch * steps,
                num_steps=num_epochs * steps,
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
    if done < training.epochs:
        # The files of the run would claim that all epochs were trained.
        rule = f"must be {done}, after which a callback stopped training"
        raise ConfigError("epochs", rule, training.epochs)


def give_to_devices(
    batches: tf.data.Dataset,
    strategy: tf.distribute.Strategy,
) -> tf.data.Dataset | tf.distribute.DistributedDataset:
    """Distributes batches to the devices of a strategy.

    Keras does so for GPUs and replicas. For a single CPU it would buffer them,
    and to shut the buffer down can take a minute: they have none.

    Args:
        batches: Batches of factors [n, F] and images [n, H, W, C].
        strategy: The devices.

    Returns:
        The same batches, for `fit`.
    """
    gpus = tf.config.list_logical_devices("GPU")
    is_mirrored = strategy.num_replicas_in_sync > 1
    if gpus or is_mirrored:
        return batches
    modes = tf.distribute.InputReplicationMode
    options = tf.distribute.InputOptions(
        experimental_fetch_to_device=False,
        experimental_replication_mode=modes.PER_REPLICA,
    )
    return strategy.distribute_datasets_from_function(
        lambda context: batches,
        options,
    )


def _check_loss(epoch: int, logs: dict[str, Any]) -> None:
    """Raises a DivergedError if the loss is not finite."""
    loss = logs["loss"]
    if not math.isfinite(loss):
        raise DivergedError(
            f"training diverged: the loss is {loss} in epoch {epoch + 1}; "
            "try a smaller --learning_rate"
        )


def is_compiled(
    config: TrainingConfig,
    dataset: Dataset,
    strategy: tf.distribute.Strategy,
) -> bool:
    """Decides by `--compiled` whether epochs are programs.

    Args:
        config: The training; `auto` compiles on one GPU if possible.
        dataset: Its training images must fit into a quarter of the memory of
            the device.
        strategy: The devices; programs need a single replica.

    Raises:
        ConfigError: If `--compiled=always` is impossible here.
    """
    if config.compiled == "never":
        return False

    num_images = len(dataset.splits.train)
    image_size = math.prod(dataset.image_shape)
    num_bytes = 4 * num_images * image_size  # float32
    replicas = strategy.num_replicas_in_sync
    problem = ""
    if replicas > 1:
        problem = f"with {replicas} replicas"
    elif MEMORY_RATIO * num_bytes > count_device_memory():
        problem = (
            f"where training images ({num_bytes >> 20:,} MB) fill more than a "
            "quarter of the memory of the device"
        )

    if config.compiled == "auto":
        gpus = tf.config.list_physical_devices("GPU")
        return bool(gpus) and not problem
    if problem:
        rule = f"must be auto or never {problem}"
        raise ConfigError("compiled", rule, config.compiled)
    return True


def count_span(
    callbacks: Sequence[keras.callbacks.Callback],
    epochs: range,
    steps: int,
) -> int:
    """Counts the epochs of one call: calls end where weights are read.

    All calls have the same number of epochs, since each number needs a program
    of its own.

    Args:
        callbacks: A callback without a method `reads_weights(done)` is assumed
            to read weights after every epoch.
        epochs: The epochs that are left.
        steps: Steps of an epoch.

    Returns:
        The largest divisor of all gaps between these ends, up to `MOST_STEPS`
        steps; at least 1.
    """
    ends = {epochs.start, epochs.stop}
    for callback in callbacks:
        reads_weights = getattr(callback, "reads_weights", None)
        if reads_weights is None:
            return 1
        read_epochs = filter(reads_weights, epochs[1:])
        ends.update(read_epochs)

    gaps = np.diff(sorted(ends))
    common_gap = math.gcd(*gaps.tolist())
    most_epochs = max(MOST_STEPS // steps, 1)
    span = min(common_gap, most_epochs)
    while common_gap % span:
        span -= 1
    return span


@contextlib.contextmanager
def use_program(
    model: TrainModel,
    dataset: Dataset,
    config: TrainingConfig,
    first_epoch: int,
    span: int,
) -> Iterator[tf.data.Dataset]:
    """Lets `fit` train epochs as single steps by a program.

    Args:
        model: The compiled model.
        dataset: Its training table is put on the device.
        config: Has the size of batches and their seed.
        first_epoch: The number of epochs that are trained already.
        span: The number of epochs of one call of the program.

    Yields:
        Batches without content, for `fit` with one step an epoch.
    """
    factors, images = make_training_table(dataset)
    # Keras builds the loss when it first sees images: batches have none here.
    first_images = images[:1]
    with model.distribute_strategy.scope():
        model.compute_loss(
            x=factors[:1],
            y=first_images,
            y_pred=first_images,
        )

    steps = count_steps(config, dataset)
    batches = make_row_batches(
        dataset,
        config.batch_size,
        config.seed,
        first_step=first_epoch * steps,
        together=span * steps,
    )
    # The rows of the next call are sampled while the program runs.
    rows_of_calls = iter(batches.prefetch(1))
    shape = (span, steps, config.batch_size)
    # Losses of epochs that are trained already, but not yet reported to Keras.
    losses: list[float] = []

    def run_epoch() -> dict[str, float]:
        """Returns the logs of the next epoch; trains a span if none is left."""
        if not losses:
            rows = next(rows_of_calls)
            rows = tf.reshape(rows, shape)
            epoch_losses = model.train_epochs(rows, factors, images)
            new_losses = epoch_losses.numpy().tolist()
            losses.extend(new_losses)
        first_loss = losses.pop(0)
        return {"loss": first_loss}

    steps_per_execution = model.steps_per_execution
    model.steps_per_execution = 1
    model.run_epoch = run_epoch
    try:
        nothing = tf.data.Dataset.from_tensors(0)
        yield nothing.repeat()
    finally:
        model.steps_per_execution = steps_per_execution
        model.run_epoch = None
        model.train_function = None  # holds the table


def make_batches(
    dataset: Dataset,
    batch_size: int,
    seed: int,
    first_step: int = 0,
    num_steps: int | None = None,
) -> tf.data.Dataset:
    """Makes batches of factors [B, F] and images [B, *image_shape].

    Args:
        dataset: Has the training table, the renderer and the noise.
        batch_size: Examples of a batch, B.
        seed: The seed of the run, which shuffles.
        first_step: The number of batches that are left out, where a run goes
            on.
        num_steps: The number of batches; by default they do not end.
    """
    table = tf.constant(dataset.splits.train)
    num_pixels = math.prod(dataset.image_shape)
    num_bytes = 4 * num_pixels * len(table)
    stored = None
    if num_bytes <= MAX_STORED:
        every_image = _render_all(dataset)
        stored = tf.constant(every_image)

    def make_batch(rows: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        """Looks up factors [B, F], and renders images unless stored."""
        factors = tf.gather(table, rows)
        if stored is None:
            images = _render_rows(dataset, rows, factors)
        else:
            images = tf.gather(stored, rows)
        noisy = _add_noise(images, rows, dataset.noise)
        return factors, noisy

    if stored is not None:  # a renderer of users may need it
        make_batch = skip_autograph(make_batch)
    blocks = make_row_batches(
        dataset,
        batch_size,
        seed,
        first_step,
        together=SAMPLED_STEPS,
    )
    rows = blocks.rebatch(batch_size, drop_remainder=True)
    if num_steps is not None:
        rows = rows.take(num_steps)
        # Keras asks for the length, which `rebatch` does not know.
        rows = rows.apply(tf.data.experimental.assert_cardinality(num_steps))
    batches = rows.map(
        make_batch,
        num_parallel_calls=1,
        deterministic=True,
    )
    return batches.prefetch(4)


def _render_rows(
    dataset: Dataset,
    rows: tf.Tensor,
    factors: tf.Tensor,
) -> tf.Tensor:
    """Renders rows of the training table, [B, *image_shape].

    Args:
        dataset: Has the renderer, or the images of each row.
        rows: Rows of the training table, [B].
        factors: Their factor values, [B, F].
    """
    if dataset.draw_train is None:
        return dataset.render(factors)
    images = tf.numpy_function(
        dataset.draw_train,
        inp=[rows],
        Tout=tf.float32,
    )
    shape = (None, *dataset.image_shape)
    return tf.ensure_shape(images, shape)


def make_row_batches(
    dataset: Dataset,
    batch_size: int,
    seed: int,
    first_step: int = 0,
    together: int = 1,
) -> tf.data.Dataset:
    """Makes batches of rows of the training table, without an end.

    Args:
        dataset: Has the training table.
        batch_size: Examples of a batch, B.
        seed: The seed of the run, which shuffles.
        first_step: The number of batches that are left out.
        together: The number of steps K whose rows are one element, [K B].
    """
    num_train = len(dataset.splits.train)
    pass_rows = dataset.pass_rows
    if pass_rows is None:
        pass_rows = np.arange(num_train)

    size = batch_size * together
    start = first_step * batch_size
    end = tf.int64.max - size

    def choose(first: tf.Tensor) -> tf.Tensor:
        steps = tf.range(size, dtype=tf.int64)
        numbers = first + steps
        places = shuffle_numbers(numbers, len(pass_rows), seed)
        return tf.gather(pass_rows, places)

    starts = tf.data.Dataset.range(start, end, size)
    rows = starts.map(
        skip_autograph(choose),
        num_parallel_calls=1,
        deterministic=True,
    )
    # The end of a training may wait for the tuning thread.
    options = tf.data.Options()
    options.autotune.enabled = False
    return rows.with_options(options)


def make_training_table(dataset: Dataset) -> tuple[tf.Tensor, tf.Tensor]:
    """Factors [n, F] and images [n, *image_shape], with noise, as tensors."""
    train = dataset.splits.train
    factors = tf.constant(train, tf.float32)
    every_image = _render_all(dataset)
    images = tf.convert_to_tensor(every_image, tf.float32)

    rows = tf.range(len(train), dtype=tf.int64)
    noisy = _add_noise(images, rows, dataset.noise)
    return factors, noisy


def _render_all(dataset: Dataset) -> Array:
    count = len(dataset.splits.train)
    rows = np.arange(count)
    with tf.device("CPU"):
        return dataset.render_training(rows)


def _add_noise(
    images: tf.Tensor,
    rows: tf.Tensor,
    noise: float,
) -> tf.Tensor:
    """Returns images with Gaussian noise, always the same for a row [B]."""
    if not noise:
        return images
    shape = images.shape[1:]

    def sample(row: tf.Tensor) -> tf.Tensor:
        # The seed 0 is independent of the seed of a run.
        seed = [0, row]
        return tf.random.stateless_normal(shape, seed)

    normal = tf.map_fn(
        sample,
        elems=rows,
        fn_output_signature=tf.float32,
    )
    return images + noise * normal


def shuffle_numbers(
    numbers: tf.Tensor,
    size: int,
    seed: int,
) -> tf.Tensor:
    """Returns rows for numbers of examples, each row once a pass.

    Args:
        numbers: Numbers of examples of a training, int64 [B].
        size: The number of rows of a pass.
        seed: The seed of the run.
    """
    passes = numbers // size
    zeros = tf.zeros_like(passes)
    columns = [zeros, zeros + seed, passes]
    seeds = tf.stack(columns, axis=1)  # [B, 3]
    # `tf.random.experimental.index_shuffle` is this op with one seed for all
    # numbers; a batch that spans two passes needs one for each.
    return tf.raw_ops.RandomIndexShuffle(
        index=numbers % size,
        seed=seeds,
        max_index=np.int64(size - 1),
        rounds=ROUNDS,
    )
