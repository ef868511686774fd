"""Determined and covered combinations, against slow definitions."""

import itertools

import numpy as np
import pytest

import tfcomp
from tfcomp.config.run_flags import parse_config
from tfcomp.datasets import make_dataset
from tfcomp.datasets.notes import describe_identifiable, describe_order
from tfcomp.datasets.solvable import (
    certify,
    certify_dataset,
    exceeds_columns,
    explain_images,
    explain_training,
    measure_coverage,
    measure_noise,
    summarize_certificates,
)

SPRITES = (
    "--dataset=sprites --model=mlp --encoding=one_hot --grid_size=16 "
    "--sprite_sizes=3,3,4,8,8"
).split()


def make_design(index: np.ndarray, order: int) -> np.ndarray:
    """One-hot rows with interactions, [n, columns]: the definition."""
    columns = [np.ones((len(index), 1))]
    for count in range(1, order + 1):
        for subset in itertools.combinations(range(index.shape[1]), count):
            chosen = index[:, subset]
            values = np.unique(chosen, axis=0)
            columns.append((chosen[:, None] == values).all(axis=2))
    return np.concatenate(columns, axis=1).astype(float)


def certify_by_svd(
    train: np.ndarray, every: np.ndarray, order: int
) -> tuple[np.ndarray, int]:
    """Rows that a projection leaves unchanged, and the missing rank."""
    rows = make_design(np.concatenate([train, every]), order)
    known = rows[: len(train)]
    rows = rows[len(train) :]
    _, values, basis = np.linalg.svd(known, full_matrices=False)
    basis = basis[values > 1e-9]
    rest = np.linalg.norm(rows - rows @ basis.T @ basis, axis=1)
    both = np.linalg.matrix_rank(np.concatenate([known, rows]))
    return rest < 1e-7, both - len(basis)


def draw_split(seed: int) -> tuple[np.ndarray, np.ndarray]:
    """A part of a random grid, and a part of that as training."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(2, 6, rng.integers(2, 5))
    grid = np.indices(sizes).reshape(len(sizes), -1).T
    every = grid[rng.random(len(grid)) < rng.choice([0.5, 0.8, 1.0])]
    share = rng.choice([0.05, 0.1, 0.2, 0.4, 0.8])
    return every[rng.random(len(every)) < share], every


@pytest.mark.parametrize("seed", range(10))
def test_random_splits_equal_an_svd(seed: int) -> None:
    train, every = draw_split(seed)
    for order in (1, 2, 3):
        found = certify(train, every, order)
        certified, missing = certify_by_svd(train, every, order)
        assert found.certified.tolist() == certified.tolist()
        assert len(found.images) == missing
        assert len({*found.images.tolist()}) == missing
        # Added, the suggested images certify everything.
        more = np.concatenate([train, every[found.images]])
        again = certify(more, every, order)
        assert again.certified.all()
        assert len(again.images) == 0


@pytest.mark.parametrize(
    ("region", "shares", "missing", "noise"),
    [
        (
            "montero:range",
            (1, 0, 0),
            (0, 4),
            (0.027, 0.028),
        ),
        (
            "wiedemer:orthogonal",
            (1, 0, 0),
            (0, 163),
            (12.8, 21),
        ),
        (
            "wiedemer:diagonal:.4",
            (0.3112, 0, 0),
            (2, 128),
            (0.7, 1.2),
        ),
        (
            "montero:extrapolation",
            (0, 0, 0),
            (4, 60),
            (None, None),
        ),
    ],
)
def test_published_splits_of_sprites(
    region: str, shares: tuple, missing: tuple, noise: tuple
) -> None:
    flags = [
        *SPRITES,
        f"--region={region}",
        "--eval_points=100",
    ]
    dataset = make_dataset(parse_config(flags))
    found = summarize_certificates(dataset, certify_dataset(dataset))
    certified = [found[str(k)]["certified"] for k in (1, 2, 3)]
    assert certified == pytest.approx(shares, abs=1e-4)
    assert tuple(found[str(k)]["missing_rank"] for k in (1, 2)) == missing
    for name, expected in zip(("mean", "max"), noise, strict=True):
        assert found["1"][f"noise_{name}"] == pytest.approx(expected, abs=0.06)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("order", [1, 2])
def test_noise_equals_the_variance_of_least_squares(
    seed: int, order: int
) -> None:
    train, every = draw_split(seed)
    asked = every[certify(train, every, order).certified]
    if not len(asked):
        return
    rows = make_design(np.concatenate([train, asked]), order)
    # Weights of the training images in the estimate of each sum.
    weights = rows[len(train) :] @ np.linalg.pinv(rows[: len(train)], 1e-9)
    expected = np.sum(weights**2, axis=1)
    np.testing.assert_allclose(measure_noise(train, asked, order), expected)


def test_stripes_determine_sums_of_their_effects() -> None:
    """An absent factor once cost an unknown: 0 % and one image missing."""
    dataset = make_dataset(parse_config(["--flagfile=stripes.flags"]))
    found = summarize_certificates(dataset, certify_dataset(dataset))
    assert found["1"]["certified"] == 1 and found["1"]["missing_rank"] == 0
    # The sum of two images, one of x and one of y.
    assert found["1"]["noise_mean"] == pytest.approx(2)
    assert found["1"]["noise_max"] == pytest.approx(2)
    assert found["2"]["certified"] == 0


def slow_leave_one_out(
    train: np.ndarray, images: np.ndarray, order: int
) -> float:
    """Least squares without each image, where the others determine it."""
    design = make_design(train, order)
    wrong = 0.0
    total = 0.0
    for i in range(len(train)):
        others = np.arange(len(train)) != i
        if not certify_by_svd(train[others], train[[i]], order)[0].all():
            continue
        weights = design[i] @ np.linalg.pinv(design[others], 1e-9)
        wrong += np.sum((images[i] - weights @ images[others]) ** 2)
        total += np.sum((images[i] - images.mean(axis=0)) ** 2)
    return 1 - wrong / total


@pytest.mark.parametrize("order", [1, 2])
def test_training_images_from_the_others(
    order: int,
) -> None:
    rng = np.random.default_rng(1)
    grid = np.indices((3, 4, 3)).reshape(3, -1).T
    train = grid[rng.random(len(grid)) < 0.9]
    images = rng.normal(size=(len(train), 7))
    expected = slow_leave_one_out(train, images, order)
    found = explain_images(train, images, order)
    assert found == pytest.approx(expected, rel=1e-6)
    effects = rng.normal(size=(make_design(train, order).shape[1], 7))
    images = make_design(train, order) @ effects
    assert explain_images(train, images, order) == pytest.approx(1)
    # Of as many effects as images nothing can be told.
    assert explain_images(train, images, 3) is None


def test_order_of_training_images() -> None:
    """Bumps are products; pluses of stripes with both are sums."""
    dataset = make_dataset(parse_config(["--flagfile=smoke.flags"]))
    found = explain_training(dataset)
    assert list(found) == ["1"] and found["1"] < 0.6
    assert "no sums" in describe_order(found)
    assert "order 2" in describe_order({"1": 0.5, "2": 0.999})
    assert describe_order({}) == ""


def measure(*flags: str) -> dict[str, float]:
    config = parse_config(["--grid_size=12", "--sigma=0.3", *flags])
    return measure_coverage(make_dataset(config))


@pytest.mark.parametrize(
    ("region", "combinations", "values", "pixels"),
    [
        ("square:4-7", 128 / 144, 1.0, 128 / 144),
        ("corner:6", 108 / 144, 1.0, 108 / 144),
        ("gap:x:3-5", 108 / 144, 21 / 24, 108 / 144),
        ("none", 1.0, 1.0, 1.0),
    ],
)
def test_narrow_bumps_light_one_pixel_each(
    region: str,
    combinations: float,
    values: float,
    pixels: float,
) -> None:
    found = measure(f"--region={region}")
    assert found["combinations"] == pytest.approx(combinations)
    assert found["values"] == pytest.approx(values)
    # A bump of this width changes its neighbors by less than 4 in 1000.
    assert found["pixels"] == pytest.approx(pixels)


def test_pixels_of_faint_images_count(
    rng: np.random.Generator,
) -> None:
    images = rng.random((9, 2, 2))
    classes = np.argwhere(np.ones((3, 3)))
    shares = []
    for scale in (1, 1e-3, 1e-5):
        table = tfcomp.FactorTable(scale * images, classes)
        found = tfcomp.evaluate(table.draw, table, "square:1-2")
        shares.append(found.coverage["pixels"])
    assert shares[0] > 0 and shares == [shares[0]] * 3


@pytest.mark.parametrize("count", [0, 90])
def test_combinations_of_the_region_count_if_trained(
    count: int,
) -> None:
    found = measure(
        "--region=square:4-7",
        "--train_all",
        f"--num_train={count}",
    )
    assert found["combinations"] == pytest.approx((count or 144) / 144)


@pytest.mark.parametrize("points", [64, 0])
def test_combinations_are_those_of_the_whole_grid(
    points: int,
) -> None:
    """However few of them are scored, half of them OOD on purpose."""
    flags = [
        "--region=orthotopic:1",
        f"--eval_points={points}",
    ]
    found = measure_coverage(make_dataset(parse_config([*SPRITES, *flags])))
    assert found["combinations"] == pytest.approx(4 / 9)


def test_columns_of_a_design_are_counted_up_to_a_limit() -> None:
    sizes = [2, 3, 4]
    assert not exceeds_columns(sizes, 2, 6 + 8 + 12)
    assert exceeds_columns(sizes, 2, 6 + 8 + 11)
    assert exceeds_columns([2] * 10_000, 3, 6000)  # 10^11 triples


@pytest.mark.parametrize(
    ("certified", "explained", "answer", "verdict"),
    [
        ([1.0, 0.0], 0.14, "yes, if x and y", "interact"),
        ([1.0, 1.0, 0.5], 1.0, "at most 2", "add up"),
        ([0.311, 0.0], 0.5, "31.1%", "interact"),
        ([0.0, None], 0.5, "no, ", "interact"),
        ([None], 0.5, "", ""),
    ],
)
def test_the_certificate_in_words(
    certified: list[float | None], explained: float, answer: str, verdict: str
) -> None:
    certificate = {
        str(order): {"certified": share}
        for order, share in enumerate(certified, start=1)
    }
    text = describe_identifiable("xy", certificate, {"1": explained})
    assert answer in text and verdict in text
    assert bool(text) == bool(answer)
