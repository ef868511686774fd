"""Readers: small networks that find the factors of an image.

A reader is trained on all true images, held-out ones too, and its accuracy on
them is the ceiling of what it can say about the outputs of a model.
"""

import sys
from collections.abc import Sequence
from typing import Any, cast

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
from tfcomp.datasets.tables import make_table_dataset
from tfcomp.metrics.references import find_nearest, sample_known
from tfcomp.models.stages import evaluate_in_batches

MAX_IMAGES = 20_000  # that a reader is trained on
CHECKED = 2000  # true images on which it is rated
USEFUL = 0.9  # accuracy on true images, at least
NOISE = 0.1  # standard deviation
Row = dict[str, Any]


class Reader:
    """A network from images to the values of all factors.

    Attributes:
        accuracy: A row for each `factor`: the accuracy on images that are
            `true`, have `noise`, or are `shifted` by a pixel.
    """

    def __init__(self, model: keras.Model, space: FactorSpace) -> None:
        self.model = model
        self.space = space
        self.accuracy = pd.DataFrame()

    def read(self, images: Array) -> Array:
        """Reads the grid indices of the factors [n, F] off images."""
        votes = self.model.predict(
            images,
            batch_size=256,
            verbose=0,
        )
        columns = [vote.argmax(axis=1) for vote in votes]
        return np.stack(columns, axis=1)

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
        index = self.space.to_index(points)
        distance = np.abs(self.read(images) - index)
        is_right = np.empty(distance.shape, bool)
        for number, factor in enumerate(self.space):
            column = distance[:, number]
            if factor.periodic:
                column = np.minimum(column, factor.cycle - column)
            allowed = steps
            if factor.categorical:
                allowed = 0
            is_right[:, number] = column <= allowed

        flat = images.reshape(len(images), -1)
        is_finite = np.isfinite(flat).all(axis=1)
        return is_right & is_finite[:, None]

    def check_truth(self, dataset: Dataset) -> None:
        """Notes the factors that it cannot read off true images.

        Raises:
            ConfigError: If it reads none, or other factors or images.
        """
        shape = self.model.input_shape[1:]
        if dataset.space != self.space or dataset.image_shape != shape:
            rule = f"must be trained on such factors and images, {list(shape)}"
            raise ConfigError("reader", rule, list(dataset.image_shape))

        grid = dataset.splits.grid
        sample = choose_rows(len(grid), CHECKED)
        points = grid[sample]
        images, rows = dataset.render_all(points, CHECKED)
        is_right = self.check(images, points[rows])
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
    several images, these are single images, and not their mean.

    Args:
        data: Images and factors.
        epochs: Passes over the images; training stops early if it reads all.
        seed: Of the weights and the noise.

    Example:
        >>> reader = tfcomp.train_reader(table)
        >>> tfcomp.evaluate(model, table, "square:9-18", reader=reader)
    """
    if isinstance(data, FactorTable):
        config = make_config(
            {
                "dataset": "table",
                "region": "none",
            }
        )
        data = make_table_dataset(config, data)
    every_point = data.splits.all.factors
    sample = choose_rows(len(every_point), MAX_IMAGES)
    sampled_points = every_point[sample]
    images, rows = data.render_all(sampled_points, MAX_IMAGES)
    points = sampled_points[rows]

    keras.utils.set_random_seed(seed)
    model = _build(data.image_shape, data.space.shape)
    _fit(
        model,
        images,
        data.space.to_index(points),
        epochs,
    )
    reader = Reader(model, data.space)
    rows = choose_rows(len(images), CHECKED)
    reader.accuracy = _rate(
        reader,
        images[rows],
        points[rows],
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
        names = [name for name in logs if name.endswith("accuracy")]
        lowest = min(logs[name] for name in names)
        model.stop_training = lowest > 0.999

    repeats = max(1, MAX_IMAGES // len(images) // 10)  # of small tables
    images = np.repeat(images, repeats, axis=0)
    index = np.repeat(index, repeats, axis=0)
    model.fit(
        images,
        list(index.T),
        batch_size=64,
        epochs=epochs,
        verbose=0,
        callbacks=[keras.callbacks.LambdaCallback(on_epoch_end=stop)],
    )


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
    kinds = {
        "true": images,
        "noise": (images + noise).astype(np.float32),
        "shifted": np.roll(images, 1, axis=2),
    }
    table = {"factor": reader.space.names}
    for kind, changed in kinds.items():
        is_right = reader.check(changed, points)
        table[kind] = is_right.mean(axis=0)
    return pd.DataFrame(table)


def _build(shape: tuple[int, ...], sizes: Sequence[int]) -> keras.Model:
    """Builds the network of a reader.

    Args:
        shape: Of an image, (H, W, C).
        sizes: Numbers of values of the factors.
    """
    layers = keras.layers
    images = keras.Input(shape)
    units = layers.GaussianNoise(NOISE / 2)(images)
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
    units = layers.Dense(128, "relu")(units)
    heads = [layers.Dense(size, "softmax")(units) for size in sizes]

    model = keras.Model(images, heads)
    model.compile(
        keras.optimizers.Adam(2e-3),
        loss=["sparse_categorical_crossentropy"] * len(heads),
        metrics=[["accuracy"] for _ in heads],
    )
    return model


def find_levels(dataset: Dataset) -> Array:
    """Counts factors that differ between points and the nearest ID point."""
    space = dataset.space
    index = space.to_index(dataset.splits.grid)
    train = sample_known(dataset)
    train_index = space.to_index(train)
    known = np.unique(train_index, axis=0)

    places = find_nearest(index, known, space)
    nearest = known[places]
    differs = index != nearest
    return differs.sum(axis=1)


def list_readings(
    reader: Reader,
    dataset: Dataset,
    model: keras.Model,
    outputs: Array,
    samples: int,
) -> list[Row]:
    """Measures the accuracy on outputs, and its ceiling on true images.

    Args:
        reader: Reads the factors.
        dataset: Has the points of the outputs.
        model: From factors [n, F] to images.
        outputs: First images of the model at all points, [n, H, W, C].
        samples: Number of images of the model at each point.

    Returns:
        A row for each factor, split and level. A point with several images
        counts once, with the share of them that is read right.
    """
    grid = dataset.splits.grid
    truth, rows = dataset.render_all(grid, MAX_IMAGES)
    sampled_images = [outputs]
    for _ in range(1, samples):
        batches = evaluate_in_batches(lambda f: {"image": model(f)}, grid)
        sampled_images.append(batches["image"])

    drawn = np.concatenate(sampled_images)
    drawn_rows = np.tile(np.arange(len(grid)), samples)

    shares: dict[str, pd.DataFrame] = {}
    columns = [("accuracy", "ceiling", 0), ("near", "near_ceiling", 1)]
    for accuracy, ceiling, steps in columns:
        shares[accuracy] = _measure_shares(
            reader,
            dataset,
            drawn,
            drawn_rows,
            steps,
        )
        shares[ceiling] = _measure_shares(
            reader,
            dataset,
            truth,
            rows,
            steps,
        )
    frame = pd.concat(shares, axis=1)
    return _average_levels(dataset, frame)


def _average_levels(dataset: Dataset, shares: pd.DataFrame) -> list[Row]:
    """Averages shares over the points of each split and level.

    Args:
        dataset: The dataset of the points.
        shares: A row for each point, columns by kind and factor.

    Returns:
        A row for each factor, split and level, and for `any` level.
    """
    is_ood = dataset.splits.is_ood
    subsets = np.where(is_ood, "ood", "id")
    levels = find_levels(dataset).astype(str)
    anything = np.full(len(subsets), "any")
    means = []
    for level in (anything, levels):
        mean = shares.groupby([subsets, level]).mean()
        means.append(mean.stack(future_stack=True))
    table = pd.concat(means)
    table = table.rename_axis(["subset", "level", "factor"])
    rows = table.reset_index().to_dict("records")
    return cast(list[Row], rows)


def _measure_shares(
    reader: Reader,
    dataset: Dataset,
    images: Array,
    rows: Array,
    steps: int,
) -> pd.DataFrame:
    """Measures the share of images that is read right at each grid point.

    Args:
        reader: Reads the factors.
        dataset: Has the grid points.
        images: Images [m, H, W, C], at least one for each point.
        rows: Row of the grid of each image, [m].
        steps: By how many steps ordered factors may be wrong.

    Returns:
        A row for each point, a column for each factor, and `all`.
    """
    points = dataset.splits.grid[rows]
    hits = reader.check(images, points, steps)
    names = list(dataset.space.names)
    table = pd.DataFrame(hits, columns=names)
    table["all"] = np.all(hits, axis=1)
    return table.groupby(rows).mean()
