"""Batches as a pure function of seed and step."""

import dataclasses
import itertools

import numpy as np
import pytest
import tensorflow as tf

from tests.datasets.own_tables import make_space
from tfcomp.config.run_config import RunConfig
from tfcomp.config.run_flags import parse_config
from tfcomp.datasets import (
    DATASETS,
    Dataset,
    batches,
    make_dataset,
)
from tfcomp.datasets.batches import (
    make_batches,
    make_row_batches,
    shuffle_numbers,
)
from tfcomp.datasets.splits import MAX_REPEATS, repeat_rare


def make(num_train: int = 25, *flags: str) -> Dataset:
    return make_dataset(
        parse_config(
            [
                "--flagfile=smoke.flags",
                f"--num_train={num_train}",
                *flags,
            ]
        )
    )


@pytest.fixture(scope="module")
def dataset() -> Dataset:
    return make()


def read(dataset: Dataset, *args, **kwargs) -> list[tuple]:
    batches = make_batches(dataset, *args, **kwargs)
    return list(batches.as_numpy_iterator())


def read_factors(dataset: Dataset, *args, **kwargs) -> np.ndarray:
    """The factors of all batches, one below the other."""
    return np.concatenate([b[0] for b in read(dataset, *args, **kwargs)])


def sort_rows(table: np.ndarray) -> np.ndarray:
    return table[np.lexsort(table.T)]


@pytest.mark.parametrize("batch_size", [5, 8, 25, 60])
def test_each_pass_is_a_permutation_of_the_table(
    dataset: Dataset, batch_size: int
) -> None:
    table = dataset.splits.train
    steps = -(-4 * len(table) // batch_size)
    stream = read_factors(dataset, batch_size, seed=0, num_steps=steps)
    passes = stream[: 4 * len(table)].reshape(4, len(table), 2)
    for rows in passes:
        np.testing.assert_array_equal(sort_rows(rows), sort_rows(table))
    for one, two in itertools.combinations(passes, 2):
        assert (one != two).any()
    assert (passes[0] != table).any()


@pytest.mark.parametrize("first_step", [1, 3, 4, 17])
def test_start_at_a_step_gives_the_bits_of_that_step(
    dataset: Dataset, first_step: int
) -> None:
    whole = read(dataset, 8, seed=2, num_steps=20)
    rest = read(
        dataset,
        8,
        seed=2,
        first_step=first_step,
        num_steps=20 - first_step,
    )
    for expected, found in zip(whole[first_step:], rest, strict=True):
        np.testing.assert_array_equal(found[0], expected[0])
        np.testing.assert_array_equal(found[1], expected[1])


@pytest.mark.parametrize("most_bytes", [batches.MAX_STORED, 0])
def test_noise_belongs_to_the_image(
    dataset: Dataset,
    most_bytes: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(batches, "MAX_STORED", most_bytes)
    noisy = make(25, "--noise=0.25")
    size = len(dataset.splits.train)

    def collect(seed: int, step: int) -> dict[tuple, np.ndarray]:
        """Noise that a pass adds to the image of each position."""
        [(factors, images)] = read(
            noisy,
            size,
            seed=seed,
            first_step=step,
            num_steps=1,
        )
        clean = dataset.render_array(factors)
        added = images - clean
        return {tuple(f): a for f, a in zip(factors, added, strict=True)}

    first = collect(0, 0)
    values = np.stack(list(first.values()))
    # 3,600 numbers: the deviation of the mean is 0.004.
    assert abs(values.mean()) < 0.02
    assert abs(values.std() - 0.25) < 0.015
    patterns = values.reshape(size, -1)
    others = np.corrcoef(patterns)[~np.eye(size, dtype=bool)]
    assert np.abs(others).max() < 0.5
    again = collect(0, 3)
    assert again.keys() == first.keys()
    for position, pattern in first.items():
        np.testing.assert_allclose(again[position], pattern, atol=1e-6)


def test_a_data_set_has_its_own_noise(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    entry = DATASETS.get("gaussian_bumps")

    def build(config: RunConfig) -> Dataset:
        bumps = entry.load()(config)
        return dataclasses.replace(bumps, noise=0.5)

    noisy = entry._replace(target=build)
    monkeypatch.setitem(DATASETS._entries, "noisy", noisy)
    assert make(25, "--dataset=noisy").noise == 0.5
    assert make(25, "--dataset=noisy", "--noise=0.25").noise == 0.25


@pytest.mark.parametrize(
    "flags",
    [
        ["--polarity=bright"],
        ["--polarity=dark"],
        ["--coordinates=continuous"],
        [
            "--dataset=stripes",
            "--region=corner:7",
            "--num_train=0",
        ],
    ],
)
@pytest.mark.parametrize("most_bytes", [batches.MAX_STORED, 0])
def test_images_are_those_of_the_factors(
    flags: list[str],
    most_bytes: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # Rendered once for all batches, or for every batch.
    monkeypatch.setattr(batches, "MAX_STORED", most_bytes)
    dataset = make(25, *flags)
    for factors, images in read(dataset, 24, seed=0, num_steps=3):
        np.testing.assert_array_equal(images, dataset.render_array(factors))
    table = dataset.splits.train
    (factors, _), *_ = read(dataset, len(table), seed=0, num_steps=1)
    np.testing.assert_array_equal(sort_rows(factors), sort_rows(table))


@pytest.mark.parametrize("size", [25, 108, 495])
def test_first_passes_are_shuffled_too(size: int) -> None:
    numbers = tf.range(8 * size, dtype=tf.int64)
    orders = [shuffle_numbers(numbers, size, seed) for seed in range(4)]
    orders = np.stack(orders).reshape(32, size)
    in_order = np.arange(size)
    pairs = itertools.combinations([in_order, *orders], 2)
    # Two random permutations agree in one place on average.
    agreements = [np.sum(one == two) for one, two in pairs]
    assert np.max(agreements) <= 10
    assert np.mean(agreements) == pytest.approx(1, abs=0.25)


def test_rows_come_as_often_as_their_rarest_value_is_rare() -> None:
    space = make_space(shape=2, x=4)
    x = np.repeat([0, 1, 2], [30, 29, 1])
    table = np.stack([np.arange(60) % 2, x], axis=1).astype(np.float32)
    rows = repeat_rare(space, table)
    # The 60 rows have three values of x: 20 rows each would be even.
    assert np.bincount(rows).tolist() == [1] * 59 + [20]
    assert (np.bincount(repeat_rare(space, table[:30])) == 1).all()

    many = np.repeat(table[:1], 4 * MAX_REPEATS, axis=0)
    many[-1] = table[-1]
    assert np.bincount(repeat_rare(space, many))[-1] == MAX_REPEATS
    table[0, 1] = np.nan
    assert np.bincount(repeat_rare(space, table))[0] == 1


@pytest.mark.parametrize("balance", [False, True])
def test_rows_of_several_steps_are_those_of_the_batches(
    balance: bool,
) -> None:
    dataset = make(25, *["--balance"] * balance)
    options = {"seed": 3, "first_step": 7, "num_steps": 10}
    batches = make_row_batches(dataset, 8, **options)
    calls = make_row_batches(dataset, 8, together=5, **options)
    expected = np.concatenate([*batches.as_numpy_iterator()]).reshape(2, 40)
    assert np.array_equal([*calls.as_numpy_iterator()], expected)
