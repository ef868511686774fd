"""Readers: small networks that find the factors of an image.

    reader = tfcomp.train_reader(table)
    result = tfcomp.evaluate(model, table, region, reader=reader)
    print(result.tables["readings"])

A reader is trained on all true images, held-out ones too, and its accuracy on
them is the ceiling of what it can say about the outputs of a model.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import keras
import numpy as np

from tfcomp.analysis.jacobians import evaluate_in_batches
from tfcomp.analysis.reference_predictors import find_nearest
from tfcomp.config.errors import ConfigError
from tfcomp.config.run_config import make_config
from tfcomp.datasets.dataset import Dataset, choose_rows
from tfcomp.datasets.factor_table import FactorTable
from tfcomp.datasets.factors import FactorSpace
from tfcomp.datasets.tables import make_table_dataset

MAX_IMAGES = 20_000  # that a reader is trained on
CHECKED = 2000  # true images on which it is rated
USEFUL = 0.9  # accuracy on true images, at least
NOISE = 0.1  # standard deviation
BATCH = 64
MAX_KNOWN = 2**16  # training points among which the nearest is searched
Row = dict[str, Any]


class Reader:
    """A network from images to the values of all factors.

    Attributes:
        accuracy: Rows of `factor`, and the accuracy on images that are `true`,
            have `noise`, or are `shifted` by a pixel.
    """

    def __init__(self, model: keras.Model, space: FactorSpace) -> None:
        self.model, self.space = model, space
        self.accuracy: list[Row] = []

    def read(self, images: np.ndarray) -> np.ndarray:
        """Returns the grid indices of the factors, [n, F]."""
        votes = self.model.predict(images, batch_size=256, verbose=0)
        columns = [votes[name].argmax(axis=1) for name in _list_heads(votes)]
        return np.stack(columns, axis=1)

    def check(
        self, images: np.ndarray, points: np.ndarray, steps: int = 0
    ) -> np.ndarray:
        """Returns which factors are read right, [n, F].

        With `steps`, values of ordered factors may be as many steps off.
        """
        truth, found = self.space.to_index(points), self.read(images)
        distance = np.abs(found - truth)
        for column, factor in enumerate(self.space):
            if factor.periodic:
                far = factor.size - distance[:, column]
                distance[:, column] = np.minimum(distance[:, column], far)
        allowed = [0 if f.categorical else steps for f in self.space]
        is_finite = np.isfinite(images).reshape(len(images), -1).all(axis=1)
        return (distance <= allowed) & is_finite[:, None]

    def check_truth(self, dataset: Dataset) -> None:
        """Notes the factors that it cannot read off true images.

        Raises:
            ConfigError: If it reads none, or other factors or images.
        """
        shape = self.model.input_shape[1:]
        if dataset.space != self.space or dataset.image_shape != shape:
            rule = (
                f"must be of the data's factors ({', '.join(self.space.names)})"
            )
            raise ConfigError(
                "reader",
                f"{rule} and images {list(shape)}",
                dataset.space.names,
            )
        points = dataset.splits.grid
        points = points[choose_rows(len(points), CHECKED)]
        hits = self.check(dataset.render_array(points), points).mean(axis=0)
        shares = dict(zip(self.space.names, hits.tolist(), strict=True))
        weak = {n: share for n, share in shares.items() if share < USEFUL}
        text = ", ".join(f"{n} {share:.0%}" for n, share in weak.items())
        if len(weak) == len(shares):
            rule = f"must read factors off {USEFUL:.0%} of the true images"
            raise ConfigError("reader", f"{rule}, it is of no use", text)
        if weak:
            print(
                f"note: the reader is of no use for some factors; share of "
                f"true images that it reads: {text}",
                file=sys.stderr,
            )


def train_reader(
    data: FactorTable | Dataset, *, epochs: int = 30, seed: int = 0
) -> Reader:
    """Trains a small convolutional network to read the factors of images.

    It sees all true images (a random sample of many), with noise, and its
    `accuracy` is on true, noisy and shifted ones.

    Args:
        data: Images and factors.
        epochs: Passes over the images; training stops early if it reads all.
        seed: Of the weights and the noise.
    """
    if isinstance(data, FactorTable):
        config = make_config({"dataset": "table", "region": "none"})
        data = make_table_dataset(config, data)
    points = data.splits.all.factors
    points = points[choose_rows(len(points), MAX_IMAGES)]
    images, index = data.render_array(points), data.space.to_index(points)
    keras.utils.set_random_seed(seed)
    model = _build(data.image_shape, data.space.shape)
    heads = [f"factor_{i}" for i in range(len(data.space))]
    labels = dict(zip(heads, index.T, strict=True))
    model.compile(
        keras.optimizers.Adam(2e-3),
        dict.fromkeys(heads, "sparse_categorical_crossentropy"),
        metrics=dict.fromkeys(heads, "accuracy"),
    )
    stop = _StopWhenRead()
    rounds = max(1, MAX_IMAGES // len(images) // 10)  # small tables repeat
    model.fit(
        np.repeat(images, rounds, axis=0),
        {name: np.repeat(column, rounds) for name, column in labels.items()},
        batch_size=BATCH,
        epochs=epochs,
        verbose=0,
        callbacks=[stop],
    )
    reader = Reader(model, data.space)
    reader.accuracy = _rate(reader, images, points, seed)
    return reader


class _StopWhenRead(keras.callbacks.Callback):
    """Ends training after an epoch in which nearly all images were read."""

    def on_epoch_end(self, epoch: int, logs: dict | None = None) -> None:
        found = [v for k, v in (logs or {}).items() if k.endswith("accuracy")]
        self.model.stop_training = min(found) > 0.999


def _build(shape: tuple[int, ...], sizes: Sequence[int]) -> keras.Model:
    """Builds two to four strided convolutions, and a head for each factor."""
    layers = keras.layers
    images = keras.Input(shape)
    units = layers.GaussianNoise(NOISE / 2)(images)
    width, side = 32, min(shape[:2])
    while True:
        units = layers.Conv2D(
            width, 3, strides=2, padding="same", activation="relu"
        )(units)
        width, side = min(2 * width, 64), -(-side // 2)
        if side <= 8:
            break
    units = layers.Dense(128, "relu")(layers.Flatten()(units))
    heads = {
        f"factor_{i}": layers.Dense(size, "softmax", name=f"factor_{i}")(units)
        for i, size in enumerate(sizes)
    }
    return keras.Model(images, heads)


def _list_heads(votes: dict[str, np.ndarray]) -> list[str]:
    return [f"factor_{i}" for i in range(len(votes))]


def _rate(
    reader: Reader, images: np.ndarray, points: np.ndarray, seed: int
) -> list[Row]:
    rows = choose_rows(len(images), CHECKED)
    images, points = images[rows], points[rows]
    noise = np.random.default_rng(seed).normal(0, NOISE, images.shape)
    changed = {
        "true": images,
        "noise": (images + noise).astype(np.float32),
        "shifted": np.roll(images, 1, axis=2),
    }
    hits = {n: reader.check(x, points).mean(axis=0) for n, x in changed.items()}
    return [
        {"factor": name} | {n: float(share[i]) for n, share in hits.items()}
        for i, name in enumerate(reader.space.names)
    ]


def find_levels(dataset: Dataset) -> np.ndarray:
    """Returns in how many factors grid points differ from the nearest
    training combination, [n]."""
    space, splits = dataset.space, dataset.splits
    train = splits.train[np.isfinite(splits.train).all(axis=1)]
    known = space.to_index(train[choose_rows(len(train), MAX_KNOWN)])
    known, index = np.unique(known, axis=0), space.to_index(splits.grid)
    return (index != known[find_nearest(index, known, space)]).sum(axis=1)


def list_readings(
    reader: Reader,
    dataset: Dataset,
    model: keras.Model,
    outputs: np.ndarray,
    samples: int,
) -> list[Row]:
    """Returns the accuracy by factor, split and level, beside the ceiling.

    Rows of the factor `all` count images all of whose factors are read right.
    `near` also counts values of ordered factors that are one step off.
    """
    splits, grid = dataset.splits, dataset.splits.grid
    drawn = [outputs]
    for _ in range(1, samples):
        found = evaluate_in_batches(lambda f: {"image": model(f)}, grid)
        drawn.append(found["image"])
    truth = dataset.render_array(grid)
    columns = {
        "accuracy": [_add_all(reader.check(x, grid)) for x in drawn],
        "ceiling": [_add_all(reader.check(truth, grid))],
        "near": [_add_all(reader.check(x, grid, 1)) for x in drawn],
        "near_ceiling": [_add_all(reader.check(truth, grid, 1))],
    }
    levels, rows = find_levels(dataset), []
    for subset, part in (("id", splits.is_id), ("ood", splits.is_ood)):
        for level in ("any", *np.unique(levels[part]).tolist()):
            chosen = part if level == "any" else part & (levels == level)
            for i, name in enumerate((*dataset.space.names, "all")):
                row: Row = {"subset": subset, "level": str(level)}
                row |= {"factor": name, "points": int(chosen.sum())}
                for key, hits in columns.items():
                    shares = [hit[chosen, i].mean() for hit in hits]
                    row[key] = float(np.mean(shares))
                    if key == "accuracy" and samples > 1:
                        row["accuracy_sd"] = float(np.std(shares, ddof=1))
                rows.append(row)
    return [row for row in rows if row["points"]]


def _add_all(hits: np.ndarray) -> np.ndarray:
    """Adds a column for images all of whose factors are right."""
    return np.column_stack([hits, hits.all(axis=1)])
