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
# Names of a share of outputs, and of the same share of true images.
CEILINGS = {"accuracy": "ceiling", "near": "near_ceiling"}
Row = dict[str, Any]


class Reader:
    """A network from images to the values of all factors.

    Attributes:
        accuracy: A row for each `factor`: the accuracy on images that are
            `true`, have `noise`, or are `shifted` by a pixel.
    """

    def __init__(
        self,
        model: keras.Model,
        space: FactorSpace,
    ) -> None:
        self.model = model
        self.space = space
        self.accuracy = pd.DataFrame()

    def read(self, images: Array) -> Array:
        """Reads the factors off images.

        Args:
            images: Images, [n, H, W, C].

        Returns:
            Grid indices, [n, F].
        """
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
        distances = np.abs(self.read(images) - index)
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

        is_number = np.isfinite(images)
        is_finite = is_number.all(axis=(1, 2, 3))
        return is_right & is_finite[:, None]

    def check_truth(self, dataset: Dataset) -> None:
        """Notes the factors that it cannot read off true images.

        Args:
            dataset: Has the true images.

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
        flags = {
            "dataset": "table",
            "region": "none",
        }
        config = make_config(flags)
        data = make_table_dataset(config, data)
    every_point = data.splits.all.factors
    sample = choose_rows(len(every_point), MAX_IMAGES)
    sampled_points = every_point[sample]
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
    model.fit(
        images,
        list(index.T),
        batch_size=64,
        epochs=epochs,
        verbose=0,
        callbacks=[stopping],
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


def find_levels(dataset: Dataset) -> Array:
    """Counts factors that differ between points and the nearest ID point."""
    space = dataset.space
    index = space.to_index(dataset.splits.grid)
    train = sample_known(dataset)
    train_index = space.to_index(train)
    train_index = np.unique(train_index, axis=0)

    places = find_nearest(index, train_index, space)
    nearest = train_index[places]
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
    truth, truth_rows = dataset.render_all(grid, MAX_IMAGES)

    def sample(factors: Any) -> dict[str, Any]:
        return {"image": model(factors)}

    parts = [outputs]
    for _ in range(1, samples):
        batches = evaluate_in_batches(sample, grid)
        parts.append(batches["image"])
    images = np.concatenate(parts)
    every_row = np.arange(len(grid))
    rows = np.tile(every_row, samples)

    shares: dict[str, pd.DataFrame] = {}
    for accuracy, steps in {"accuracy": 0, "near": 1}.items():
        shares[accuracy] = _measure_shares(
            reader,
            dataset,
            images,
            rows,
            steps,
        )
        shares[CEILINGS[accuracy]] = _measure_shares(
            reader,
            dataset,
            truth,
            truth_rows,
            steps,
        )
    frame = pd.concat(shares, axis=1)
    return _average_levels(dataset, frame)


def _average_levels(
    dataset: Dataset,
    shares: pd.DataFrame,
) -> list[Row]:
    """Averages shares over the points of each split and level.

    Args:
        dataset: The dataset of the points.
        shares: A row for each point, columns by kind and factor.

    Returns:
        A row for each factor, split and level, and for `any` level.
    """
    is_ood = dataset.splits.is_ood
    subsets = np.where(is_ood, "ood", "id")
    levels = find_levels(dataset)
    anything = np.full(len(subsets), "any")
    means = []
    for level in (anything, levels.astype(str)):
        groups = shares.groupby([subsets, level])
        mean = groups.mean()
        rows_of_factors = mean.stack(future_stack=True)
        means.append(rows_of_factors)
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
