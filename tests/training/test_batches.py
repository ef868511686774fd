"""Batches as a pure function of seed and step."""

import dataclasses
import itertools
import math

import numpy as np
import pytest
import tensorflow as tf
from numpy.testing import assert_allclose, assert_array_equal

from tests.datasets.own_tables import make_data, make_space
from tfcomp.config.run_config import RunConfig
from tfcomp.datasets import DATASETS, Dataset
from tfcomp.datasets.splits import MAX_REPEATS, repeat_rare
from tfcomp.training import fit
from tfcomp.training.fit import (
    give_to_devices,
    make_batches,
    make_row_batches,
    shuffle_numbers,
)
from tfcomp.training.prepared_models import make_strategy

LINE = "smoke --num_train=25"
# Images are rendered once for all batches, or for every batch.
STORED = pytest.mark.parametrize("most_bytes", [fit.MAX_STORED, 0])


@pytest.fixture(scope="module")
def dataset() -> Dataset:
    return make_data(LINE)


def read(dataset: Dataset, size: int, **options: int) -> list[tuple]:
    stream = make_batches(dataset, size, **options)
    return list(stream.as_numpy_iterator())


def sort_rows(table: np.ndarray) -> np.ndarray:
    order = np.lexsort(table.T)
    return table[order]


@pytest.mark.parametrize("batch_size", [8, 60])
def test_each_pass_is_a_permutation_of_the_table(dataset, batch_size):
    table = dataset.splits.train
    num_rows = 4 * len(table)
    steps = math.ceil(num_rows / batch_size)

    stream = read(
        dataset,
        batch_size,
        seed=0,
        num_steps=steps,
    )

    rows = np.concatenate([factors for factors, _ in stream])
    passes = rows[:num_rows].reshape(4, len(table), 2)
    for order in passes:
        assert_array_equal(sort_rows(order), sort_rows(table))
    for one, two in itertools.combinations([table, *passes], 2):
        assert (one != two).any()


@pytest.mark.parametrize("first_step", [1, 17])
def test_start_at_a_step_gives_the_bits_of_that_step(
    dataset,
    first_step,
):
    expected = read(dataset, 8, seed=2, num_steps=20)[first_step:]

    num_steps = 20 - first_step
    rest = read(
        dataset,
        8,
        seed=2,
        first_step=first_step,
        num_steps=num_steps,
    )

    for batch, (factors, images) in zip(rest, expected, strict=True):
        assert_array_equal(batch[0], factors)
        assert_array_equal(batch[1], images)


@STORED
def test_noise_belongs_to_the_image(dataset, most_bytes, monkeypatch):
    monkeypatch.setattr(fit, "MAX_STORED", most_bytes)
    noisy = make_data(LINE, "--noise=0.25")
    size = len(dataset.splits.train)

    def subtract(factors: np.ndarray, images: np.ndarray) -> np.ndarray:
        """Noise that a pass adds to each image, in the order of the table."""
        noise = images - dataset.render_array(factors)
        return noise[np.lexsort(factors.T)]

    first, *_, last = read(noisy, size, seed=0, num_steps=3)
    noise = subtract(*first)
    # 3,600 numbers: the deviation of the mean is 0.004.
    assert abs(noise.mean()) < 0.02
    assert abs(noise.std() - 0.25) < 0.015
    correlations = np.corrcoef(noise.reshape(size, -1)) - np.eye(size)
    assert np.abs(correlations).max() < 0.5
    assert_allclose(subtract(*last), noise, atol=1e-6)


def test_one_device_gets_all_batches_in_order(dataset):
    batches = make_batches(dataset, 16, seed=3, first_step=5, num_steps=7)

    given = list(give_to_devices(batches, make_strategy()))

    assert len(given) == 7
    for batch, expected in zip(given, batches, strict=True):
        for part, expected_part in zip(batch, expected, strict=True):
            assert_array_equal(part, expected_part)


def test_a_data_set_has_its_own_noise():
    build_bumps = DATASETS.get("gaussian_bumps").load()

    def build(config: RunConfig) -> Dataset:
        return dataclasses.replace(build_bumps(config), noise=0.5)

    DATASETS.register("noisy_for_this_test", build)
    line = "smoke --dataset=noisy_for_this_test"
    assert make_data(line).noise == 0.5
    assert make_data(line, "--noise=0.25").noise == 0.25


PLANE = "--polarity=dark --coordinates=continuous"
STRIPES = "--dataset=stripes --region=corner:7 --num_train=0"


@pytest.mark.parametrize(
    ("flags", "most_bytes"),
    [
        (PLANE, fit.MAX_STORED),
        (PLANE, 0),
        (STRIPES, 0),
    ],
)
def test_images_are_those_of_the_factors(
    flags,
    most_bytes,
    monkeypatch,
):
    monkeypatch.setattr(fit, "MAX_STORED", most_bytes)
    dataset = make_data(f"{LINE} {flags}")
    batches_of_images = read(dataset, 24, seed=0, num_steps=3)

    for factors, images in batches_of_images:
        assert_array_equal(images, dataset.render_array(factors))


@pytest.mark.parametrize("size", [25, 108, 495])
def test_first_passes_are_shuffled_too(size):
    numbers = tf.range(8 * size, dtype=tf.int64)
    orders = [np.arange(size)]
    for seed in range(4):
        passes = shuffle_numbers(numbers, size, seed)
        orders.extend(passes.numpy().reshape(8, size))

    agreements = []
    for one, two in itertools.combinations(orders, 2):
        agreements.append(np.sum(one == two))
    # Two random permutations agree in one place on average.
    assert np.max(agreements) <= 10
    assert np.mean(agreements) == pytest.approx(1, abs=0.25)


def count_repeats(table: np.ndarray) -> np.ndarray:
    """How often each row of a table comes, [n]."""
    space = make_space(shape=2, x=4)
    rows = repeat_rare(space, np.float32(table))
    return np.bincount(rows)


def test_rows_come_as_often_as_their_rarest_value_is_rare():
    shape = np.arange(60) % 2
    x = np.repeat([0, 1, 2], [30, 29, 1])
    table = np.column_stack([shape, x]).astype(float)
    many = np.repeat(table[:1], 4 * MAX_REPEATS, axis=0)
    many[-1] = table[-1]
    absent = table.copy()
    absent[0, 1] = np.nan

    # The 60 rows have three values of x: 20 rows each would be even.
    repeats = count_repeats(table)
    of_two = count_repeats(table[:30])
    of_many = count_repeats(many)
    of_absent = count_repeats(absent)
    assert repeats.tolist() == [1] * 59 + [20]
    assert (of_two == 1).all()
    assert of_many[-1] == MAX_REPEATS
    assert of_absent[0] == 1


@pytest.mark.parametrize("flag", ["--nobalance", "--balance"])
def test_rows_of_several_steps_are_those_of_the_batches(flag):
    dataset = make_data(LINE, flag)
    options = {
        "seed": 3,
        "first_step": 7,
    }

    steps = make_row_batches(dataset, 8, **options)
    calls = make_row_batches(
        dataset,
        8,
        together=5,
        **options,
    )

    rows = list(steps.take(10).as_numpy_iterator())
    parts = list(calls.take(2).as_numpy_iterator())
    rows_of_calls = np.reshape(parts, (10, 8))
    assert_array_equal(rows_of_calls, rows)
