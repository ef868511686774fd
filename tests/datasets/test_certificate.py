"""Determined and covered combinations, against slow definitions."""

import itertools
import math

import numpy as np
import pytest
from pytest import approx

from tests.datasets.own_tables import make_data
from tfcomp.datasets.notes import describe_identifiable
from tfcomp.datasets.solvable import (
    certify,
    certify_dataset,
    count_columns,
    explain_images,
    explain_training,
    measure_coverage,
    summarize_certificates,
)

SPRITES = (
    "--dataset=sprites --model=mlp --encoding=one_hot --grid_size=16 "
    "--sprite_sizes=3,3,4,4,4"
)


def make_design(index: np.ndarray, order: int) -> np.ndarray:
    """One-hot rows with interactions, [n, columns]: the definition."""
    factors = range(index.shape[1])
    columns = [np.ones((len(index), 1))]
    for count in range(1, order + 1):
        for subset in itertools.combinations(factors, count):
            values = index[:, subset]
            cells = np.unique(values, axis=0)
            is_equal = values[:, None] == cells
            is_in_cell = is_equal.all(axis=2)
            columns.append(is_in_cell)
    design = np.concatenate(columns, axis=1)
    return design.astype(float)


def certify_by_svd(
    train: np.ndarray,
    every: np.ndarray,
    order: int,
) -> tuple[np.ndarray, int]:
    """Rows that a projection leaves unchanged, and the missing rank."""
    design = make_design(np.concatenate([train, every]), order)
    known, rows = np.split(design, [len(train)])
    _, values, basis = np.linalg.svd(known, full_matrices=False)
    basis = basis[values > 1e-9]
    projected = rows @ basis.T @ basis
    rest = np.linalg.norm(rows - projected, axis=1)
    missing_rank = np.linalg.matrix_rank(design) - len(basis)
    return rest < 1e-7, missing_rank


def draw_split(seed: int) -> tuple[np.ndarray, np.ndarray]:
    """A part of a random grid, and a part of that as training."""
    rng = np.random.default_rng(seed)
    num_factors = rng.integers(2, 5)
    sizes = rng.integers(2, 6, num_factors)
    grid = np.argwhere(np.ones(sizes))
    numbers = rng.random(len(grid))
    share = rng.choice([0.5, 0.8, 1.0])
    every = grid[numbers < share]
    share = rng.choice([0.05, 0.1, 0.2, 0.4, 0.8])
    is_trained = rng.random(len(every)) < share
    return every[is_trained], every


@pytest.mark.parametrize("seed", range(10))
def test_random_splits_equal_an_svd(seed):
    train, every = draw_split(seed)
    for order in (1, 2, 3):
        certificate = certify(train, every, order)

        certified, missing_rank = certify_by_svd(train, every, order)
        images = certificate.images
        assert certificate.certified.tolist() == certified.tolist()
        assert len(images) == missing_rank
        assert len(np.unique(images)) == missing_rank
        # Added, the suggested images certify everything.
        train_more = np.concatenate([train, every[images]])
        again = certify(train_more, every, order)
        assert again.certified.all()
        assert len(again.images) == 0


def measure_noise_slowly(
    train: np.ndarray,
    asked: np.ndarray,
    order: int,
) -> np.ndarray:
    """The variance of least squares, by its definition."""
    design = make_design(np.concatenate([train, asked]), order)
    known, rows = np.split(design, [len(train)])
    # Weights of the training images in the estimate of each sum.
    weights = rows @ np.linalg.pinv(known, 1e-9)
    return np.sum(weights**2, axis=1)


@pytest.mark.parametrize(
    "region",
    [
        "montero:range",
        "wiedemer:orthogonal",
        "wiedemer:diagonal:.4",
        "montero:extrapolation",
    ],
)
def test_published_splits_of_sprites(region):
    dataset = make_data(f"{SPRITES} --region={region} --eval_points=100")
    is_ood = dataset.splits.all.is_ood
    every = dataset.space.to_index(dataset.splits.all.factors)
    train = every[~is_ood]
    certificates = certify_dataset(dataset)

    summary = summarize_certificates(dataset, certificates)

    for order in (1, 2):
        certified, missing_rank = certify_by_svd(train, every, order)
        numbers = summary[str(order)]
        assert numbers["certified"] == approx(certified[is_ood].mean())
        assert numbers["missing_rank"] == missing_rank
        asked = every[certified & is_ood]
        if len(asked):
            noise = measure_noise_slowly(train, asked, order)
            assert numbers["noise_mean"] == approx(noise.mean())
            assert numbers["noise_max"] == approx(noise.max())
        else:
            assert numbers["noise_mean"] is None


def test_stripes_determine_sums_of_their_effects():
    """An absent factor once cost an unknown: 0 % and one image missing."""
    dataset = make_data("stripes")

    summary = summarize_certificates(dataset, certify_dataset(dataset))

    first = summary["1"]
    assert first["certified"] == 1
    assert first["missing_rank"] == 0
    # The sum of two images, one of x and one of y.
    assert first["noise_mean"] == approx(2)
    assert first["noise_max"] == approx(2)
    assert summary["2"]["certified"] == 0


def slow_leave_one_out(
    train: np.ndarray,
    images: np.ndarray,
    order: int,
) -> float:
    """Least squares without each image, where the others determine it."""
    design = make_design(train, order)
    mean = images.mean(axis=0)
    wrong = 0.0
    total = 0.0
    for i, image in enumerate(images):
        others = np.arange(len(train)) != i
        (is_certified,), _ = certify_by_svd(train[others], train[[i]], order)
        if is_certified:
            weights = design[i] @ np.linalg.pinv(design[others], 1e-9)
            prediction = weights @ images[others]
            wrong += np.sum((image - prediction) ** 2)
            total += np.sum((image - mean) ** 2)
    return 1 - wrong / total


@pytest.mark.parametrize("order", [1, 2])
def test_training_images_from_the_others(order):
    rng = np.random.default_rng(1)
    grid = np.argwhere(np.ones((3, 4, 3)))
    train = grid[rng.random(len(grid)) < 0.9]
    design = make_design(train, order)
    num_images, num_effects = design.shape
    noise = rng.normal(size=(num_images, 7))
    effects = rng.normal(size=(num_effects, 7))
    sums = design @ effects

    of_noise = explain_images(train, noise, order)
    of_sums = explain_images(train, sums, order)

    expected = slow_leave_one_out(train, noise, order)
    assert of_noise == approx(expected)
    assert of_sums == approx(1)
    # Of as many effects as images nothing can be told.
    assert explain_images(train, noise, 3) is None


def test_order_of_training_images():
    """Bumps are products; pluses of stripes with both are sums."""
    orders = explain_training(make_data("smoke"))

    assert list(orders) == ["1"]
    assert orders["1"] < 0.6


@pytest.mark.parametrize(
    "flags, combinations, values",
    [
        ("--region=square:4-7", 128 / 144, 1),
        ("--region=gap:x:3-5", 108 / 144, 21 / 24),
        ("--region=none", 1, 1),
        # Held-out combinations count if they are trained,
        ("--region=square:4-7 --train_all", 1, 1),
        ("--region=square:4-7 --train_all --num_train=90", 90 / 144, 1),
        # and all of the grid, however few of them are scored.
        ("--region=square:4-7 --eval_points=20", 128 / 144, 1),
    ],
)
def test_narrow_bumps_light_one_pixel_each(
    flags,
    combinations,
    values,
):
    """A bump of this width changes its neighbors by less than 4 in 1000."""
    dataset = make_data(f"--grid_size=12 --sigma=0.3 {flags}")

    coverage = measure_coverage(dataset)

    assert coverage["combinations"] == approx(combinations)
    assert coverage["values"] == approx(values)
    assert coverage["pixels"] == approx(combinations)


def test_columns_of_a_design_are_counted():
    assert count_columns([2, 3, 4], 2) == 6 + 8 + 12
    assert count_columns([2] * 312, 3) == 8 * math.comb(312, 3)


@pytest.mark.parametrize(
    "certified, explained, answer, verdict",
    [
        ([1.0, 0.0], 0.14, "yes, if x and y", "interact"),
        ([1.0, 1.0, 0.5], 1.0, "at most 2", "add up"),
        ([0.311, 0.0], 0.5, "31.1%", "interact"),
        ([0.0, None], 0.5, "no, ", "interact"),
        ([None], 0.5, "", ""),
    ],
)
def test_the_certificate_in_words(
    certified,
    explained,
    answer,
    verdict,
):
    certificate = {}
    for order, share in enumerate(certified, start=1):
        certificate[str(order)] = {"certified": share}

    text = describe_identifiable("xy", certificate, {"1": explained})

    assert answer in text
    assert verdict in text
    assert bool(text) == bool(answer)
