"""Readers: small networks that find the factors of an image.

A reader is trained on all true images, held-out ones too, and its accuracy on
them is the ceiling of what it can say about the outputs of a model.
"""

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import keras
import numpy as np
import pandas as pd
from numpy import ndarray as Array

from tfcomp.config.errors import ConfigError
from tfcomp.config.run_config import make_config
from tfcomp.datasets.dataset import Dataset
from tfcomp.datasets.factor_table import FactorTable
from tfcomp.datasets.factors import FactorSpace
from tfcomp.datasets.splits import choose_rows
from tfcomp.datasets.table_columns import TableError
from tfcomp.datasets.tables import make_table_dataset
from tfcomp.metrics.references import list_levels

MAX_IMAGES = 20_000  # that a reader is trained on
CHECKED = 2000  # true images on which it is rated
USEFUL = 0.9  # accuracy on true images, at least
NOISE = 0.1  # standard deviation
BATCH_SIZE = 256  # images that are read at once
Row = dict[str, Any]


class Reader:
    """A network from images to the values of all factors.

    Attributes:
        accuracy: A row for each `factor`: the accuracy on images that are
            `true`, have `noise`, or are `shifted` by a pixel.
        nuisance: A reader of the nuisance columns of a table, if it has any.
    """

    def __init__(
        self,
        model: keras.Model,
        space: FactorSpace,
    ) -> None:
        self.model = model
        self.space = space
        self.accuracy = pd.DataFrame()
        self.nuisance: Reader | None = None

    def read(self, images: Array) -> Array:
        """Reads the factors off images.

        Args:
            images: Images, [n, H, W, C].

        Returns:
            Grid indices, [n, F]; -1 in images that are not finite.
        """
        readings = np.empty((len(images), len(self.space)), int)
        # `predict` makes a pipeline for each call, which takes longer.
        for start in range(0, len(images), BATCH_SIZE):
            rows = slice(start, start + BATCH_SIZE)
            votes = self.model(images[rows], training=False)
            if len(self.space) == 1:
                votes = [votes]
            for column, vote in enumerate(votes):
                readings[rows, column] = np.argmax(vote, axis=1)
        flat = images.reshape(len(images), -1)
        is_finite = np.isfinite(flat).all(axis=1)
        readings[~is_finite] = -1
        return readings

    def check(
        self,
        images: Array,
        points: Array,
        steps: int = 0,
    ) -> Array:
        """Marks the factors that are read right, [n, F].

        Args:
            images: Images, [n, H, W, C].
            points: True values of the factors, [n, F].
            steps: By how many steps ordered factors may be wrong.
        """
        readings = self.read(images)
        return self.match(readings, points, steps)

    def match(
        self,
        readings: Array,
        points: Array,
        steps: int = 0,
    ) -> Array:
        """Marks the readings that are right, [n, F].

        Args:
            readings: What `read` returns, [n, F].
            points: True values of the factors, [n, F].
            steps: By how many steps ordered factors may be wrong.
        """
        index = self.space.to_index(points)
        distances = np.abs(readings - index)
        is_right = np.empty(distances.shape, bool)
        for column, factor in enumerate(self.space):
            distance = distances[:, column]
            if factor.periodic:
                way_back = factor.cycle - distance
                distance = np.minimum(distance, way_back)
            allowed = steps
            if factor.categorical:
                allowed = 0
            is_right[:, column] = distance <= allowed
        is_read = readings >= 0
        return is_right & is_read

    def check_truth(self, dataset: Dataset) -> None:
        """Notes the factors that it cannot read off true images.

        Args:
            dataset: Has the true images.

        Raises:
            ConfigError: If it reads none, or other factors or images.
        """
        shape = self.model.input_shape[1:]
        image_shape = dataset.image_shape
        if dataset.space != self.space or image_shape != shape:
            rule = f"must be trained on such factors and images, {list(shape)}"
            raise ConfigError("reader", rule, list(image_shape))

        grid = dataset.splits.grid
        sample = choose_rows(len(grid), CHECKED)
        points = grid[sample]
        images, rows = dataset.render_all(points, CHECKED)
        image_points = points[rows]
        is_right = self.check(images, image_points)
        hits = is_right.mean(axis=0)

        weak = []
        for name, share in zip(self.space.names, hits, strict=True):
            if share < USEFUL:
                weak.append(f"{name} {share:.0%}")
        text = ", ".join(weak)
        if len(weak) == len(hits):
            rule = f"must read factors off {USEFUL:.0%} of the true images"
            raise ConfigError("reader", f"{rule}, it is of no use", text)
        if weak:
            print(
                "note: the reader is of no use for some factors; share of true "
                f"images that it reads: {text}",
                file=sys.stderr,
            )


def train_reader(
    data: FactorTable | Dataset,
    *,
    epochs: int = 30,
    seed: int = 0,
) -> Reader:
    """Trains a small convolutional network to read the factors of images.

    It sees all true images (a random sample of many), with noise, and its
    `accuracy` is on true, noisy and shifted ones. Where a combination has
    several images, these are single images, and not their mean. A second
    network reads the nuisance columns of a table, if it has any (`nuisance`).

    Args:
        data: Images and factors.
        epochs: Passes over the images; training stops early if it reads all.
        seed: Of the weights and the noise.

    Example:
        >>> reader = tfcomp.train_reader(table)
        >>> tfcomp.evaluate(model, table, "square:9-18", reader=reader)
    """
    if not isinstance(data, FactorTable):
        points = data.splits.all.factors
        return _train(data, points, epochs, seed)

    reader = _train_on_table(data, epochs, seed)
    if not data.nuisance:
        return reader
    try:
        nuisances = data.select(data.nuisance)
    except TableError as error:  # columns that could not be factors
        print(f"note: nuisances are not read: {error}", file=sys.stderr)
        return reader
    reader.nuisance = _train_on_table(nuisances, epochs, seed)
    return reader


def train_id_reader(dataset: Dataset) -> Reader:
    """Trains a reader on ID images alone: perception without a decoder."""
    every = dataset.splits.all
    is_id = ~every.is_ood
    return _train(dataset, every.factors[is_id])


def _train_on_table(
    table: FactorTable,
    epochs: int,
    seed: int,
) -> Reader:
    flags: dict[str, object] = {
        "dataset": "table",
        "region": "none",
    }
    config = make_config(flags)
    dataset = make_table_dataset(config, table)
    points = dataset.splits.all.factors
    return _train(
        dataset,
        points,
        epochs,
        seed,
    )


def _train(
    data: Dataset,
    points: Array,
    epochs: int = 30,
    seed: int = 0,
) -> Reader:
    """Trains and rates a reader on true images.

    Args:
        data: Draws the images.
        points: The combinations, [n, F].
        epochs: Passes over the images at most.
        seed: Of the weights and the noise.
    """
    sample = choose_rows(len(points), MAX_IMAGES)
    sampled_points = points[sample]
    images, rows = data.render_all(sampled_points, MAX_IMAGES)
    points = sampled_points[rows]

    space = data.space
    index = space.to_index(points)
    keras.utils.set_random_seed(seed)
    model = _build(data.image_shape, space.shape)
    _fit(
        model,
        images,
        index,
        epochs,
    )
    reader = Reader(model, space)
    checked = choose_rows(len(images), CHECKED)
    reader.accuracy = _rate(
        reader,
        images[checked],
        points[checked],
        seed,
    )
    return reader


def _fit(
    model: keras.Model,
    images: Array,
    index: Array,
    epochs: int,
) -> None:
    """Trains until all factors are read off 99.9 % of the images.

    Args:
        model: The network.
        images: Images, [n, H, W, C].
        index: Grid indices of their factors, [n, F].
        epochs: Passes over the images at most.
    """

    def stop(epoch: int, logs: dict[str, float]) -> None:
        accuracies = []
        for name, value in logs.items():
            if name.endswith("accuracy"):
                accuracies.append(value)
        model.stop_training = min(accuracies) > 0.999

    repeats = MAX_IMAGES // len(images) // 10
    repeats = max(1, repeats)  # of small tables
    images = np.repeat(images, repeats, axis=0)
    index = np.repeat(index, repeats, axis=0)
    stopping = keras.callbacks.LambdaCallback(on_epoch_end=stop)
    _make_variables(model, images[:1], list(index[:1].T))
    model.fit(
        images,
        list(index.T),
        batch_size=64,
        epochs=epochs,
        verbose=0,
        callbacks=[stopping],
    )


def _make_variables(
    model: keras.Model,
    images: Array,
    truth: list[Array],
) -> None:
    """Makes the variables of optimizer, losses and metrics.

    TensorFlow would trace a step that makes them twice.

    Args:
        model: The compiled network.
        images: An image, [1, H, W, C].
        truth: The index of its value of each factor, [1].
    """
    model.optimizer.build(model.trainable_variables)
    votes = model(images, training=False)
    if len(truth) == 1:
        votes = [votes]
    model.compute_loss(images, truth, votes)
    model.compute_metrics(images, truth, votes)


def _rate(
    reader: Reader,
    images: Array,
    points: Array,
    seed: int,
) -> pd.DataFrame:
    """Measures the accuracy on true, noisy and shifted images.

    Args:
        reader: Reads the factors.
        images: True images, [n, H, W, C].
        points: Their factors, [n, F].
        seed: Of the noise.
    """
    rng = np.random.default_rng(seed)
    noise = rng.normal(0, NOISE, images.shape)
    noisy = images + noise
    kinds = {
        "true": images,
        "noise": noisy.astype(np.float32),
        "shifted": np.roll(images, 1, axis=2),
    }
    table = {"factor": reader.space.names}
    for kind, kind_images in kinds.items():
        is_right = reader.check(kind_images, points)
        table[kind] = is_right.mean(axis=0)
    return pd.DataFrame(table)


def _build(
    shape: tuple[int, ...],
    sizes: Sequence[int],
) -> keras.Model:
    """Builds the network of a reader.

    Args:
        shape: Of an image, (H, W, C).
        sizes: Numbers of values of the factors.
    """
    layers = keras.layers
    images = keras.Input(shape)
    noise = layers.GaussianNoise(NOISE / 2)
    units = noise(images)
    width = 32
    side = min(shape[:2])
    while side > 8 or width == 32:
        convolution = layers.Conv2D(
            width,
            kernel_size=3,
            strides=2,
            padding="same",
            activation="relu",
        )
        units = convolution(units)
        width = 64
        side = -(-side // 2)
    units = layers.Flatten()(units)
    dense = layers.Dense(128, "relu")
    units = dense(units)
    heads = []
    for size in sizes:
        head = layers.Dense(size, "softmax")
        heads.append(head(units))

    model = keras.Model(images, heads)
    model.compile(
        keras.optimizers.Adam(2e-3),
        loss=["sparse_categorical_crossentropy"] * len(heads),
        metrics=[["accuracy"] for _ in heads],
    )
    return model


@dataclass(frozen=True)
class Readings:
    """What a reader finds in samples of a model, and in true images.

    Readings are grid indices of factors, as `Reader.read` returns them.

    Attributes:
        samples: Of S samples at each point of the grid, [S, n, F].
        truth: Of single true images, point after point, [m, F].
        rows: Row of the grid of each true image, [m].
    """

    samples: Array
    truth: Array
    rows: Array

    def average_truth(self, values: Array) -> Array:
        """Averages numbers of true images by grid point, [n, ...].

        Args:
            values: Numbers of each image, [m, ...].
        """
        counts = np.bincount(self.rows)
        starts = np.cumsum(counts) - counts
        sums = np.add.reduceat(
            values,
            starts,
            axis=0,
            dtype=float,
        )
        means = sums.T / counts
        return means.T


def read_truth(
    readers: Sequence[Reader],
    dataset: Dataset,
    read: Sequence[Sequence[Array]],
) -> list[Readings]:
    """Reads single true images, beside what was read in samples.

    Args:
        readers: Read factors, or nuisances.
        dataset: Has the true images.
        read: By reader, its readings of each of S samples, [n, F].

    Returns:
        The readings of each reader.
    """
    grid = dataset.splits.grid
    truth, rows = dataset.render_all(grid, MAX_IMAGES)
    readings = []
    for reader, samples in zip(readers, read, strict=True):
        both = Readings(
            samples=np.stack(samples),
            truth=reader.read(truth),
            rows=rows,
        )
        readings.append(both)
    return readings


def list_readings(
    reader: Reader,
    dataset: Dataset,
    readings: Readings,
) -> list[Row]:
    """Measures the accuracy on outputs, and its ceiling on true images.

    Args:
        reader: Reads the factors.
        dataset: Has the points of the outputs.
        readings: What the reader finds.

    Returns:
        A row for each factor, split and level. A point with several images
        counts once, with the share of them that is read right.
    """
    accuracy, ceiling = measure_shares(reader, dataset, readings)
    near, near_ceiling = measure_shares(
        reader,
        dataset,
        readings,
        steps=1,
    )
    columns = {
        "accuracy": accuracy,
        "ceiling": ceiling,
        "near": near,
        "near_ceiling": near_ceiling,
    }

    factors = [*dataset.space.names, "all"]
    rows = []
    for subset, level, mask in list_levels(dataset):
        for number, factor in enumerate(factors):
            row: Row = {
                "subset": subset,
                "level": level,
                "factor": factor,
            }
            for column, shares in columns.items():
                mean = shares[mask, number].mean()
                row[column] = float(mean)
            rows.append(row)
    return rows


def measure_shares(
    reader: Reader,
    dataset: Dataset,
    readings: Readings,
    steps: int = 0,
) -> tuple[Array, Array]:
    """Measures the share of images that is read right at each grid point.

    Args:
        reader: Reads the factors.
        dataset: Has the grid points.
        readings: What the reader finds.
        steps: By how many steps ordered factors may be wrong.

    Returns:
        Shares of samples and of true images, [n, F + 1] each: of all factors,
        and of images in which all of them are right.
    """
    grid = dataset.splits.grid
    sampled = []
    for sample in readings.samples:
        hits = reader.match(sample, grid, steps)
        sampled.append(_append_all(hits))

    points = grid[readings.rows]
    hits = reader.match(readings.truth, points, steps)
    every_hit = _append_all(hits)
    truth = readings.average_truth(every_hit)
    shares = np.mean(sampled, axis=0)
    return shares, truth


def _append_all(hits: Array) -> Array:
    """Appends whether all factors are right to hits [n, F]."""
    all_right = hits.all(axis=1)
    return np.column_stack([hits, all_right])
