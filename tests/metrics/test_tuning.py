"""Tuning against loops, and on units of known tuning."""

import numpy as np
import pytest

from tfcomp.metrics.tuning import (
    compute_tuning,
    select_units,
    summarize_tuning,
)

X, Y = np.meshgrid(np.arange(6.0), np.arange(5.0), indexing="ij")
PRODUCT = (X - X.mean()) * (Y - Y.mean())
SHAPE = X.shape


def to_activations(*maps: np.ndarray) -> np.ndarray:
    return np.stack([m.ravel() for m in maps], axis=1)  # [n, units]


def compute_share_slowly(unit: np.ndarray) -> list[float]:
    """Share of each factor in the variance of one map, by loops."""
    mean = sum(unit.ravel()) / unit.size
    total = sum((value - mean) ** 2 for value in unit.ravel()) / unit.size
    shares = []
    for axis, size in enumerate(unit.shape):
        effects = [unit.take(i, axis=axis).mean() - mean for i in range(size)]
        shares.append(sum(e**2 for e in effects) / size / total)
    return shares


@pytest.mark.parametrize("shape", [(7,), (4, 5), (3, 2, 4), (2, 3, 2, 2)])
def test_shares_equal_the_slow_definition(
    shape: tuple[int, ...], rng: np.random.Generator
) -> None:
    activations = rng.normal(size=(np.prod(shape), 9)) + 3
    tuning = compute_tuning(activations, shape)
    for unit in range(9):
        values = activations[:, unit].reshape(shape)
        slow = compute_share_slowly(values)
        np.testing.assert_allclose(tuning.factor_shares[unit], slow)
        np.testing.assert_allclose(tuning.variance[unit], values.var())
        assert tuning.additive_share[unit] == pytest.approx(sum(slow))
    if len(shape) == 1:
        np.testing.assert_allclose(tuning.additive_share, 1)


def test_orders_of_three_factors() -> None:
    a, b, c, d = np.ix_([-1, 1], [-1, 0, 1], [-1, 1], [7])
    units = [a + b, a * b + 2 * a * c, a * b * c, a * b + b + a * b * c]
    maps = [
        np.broadcast_to(unit + 0 * d * (a + b + c), (2, 3, 2, 1))
        for unit in units
    ]
    activations = to_activations(*maps).astype(float)
    tuning = compute_tuning(activations, (2, 3, 2, 1))
    np.testing.assert_allclose(
        tuning.additive_share, [1, 0, 0, 1 / 3], atol=1e-9
    )
    np.testing.assert_allclose(tuning.pair_share, [0, 1, 0, 1 / 3], atol=1e-9)
    assert not tuning.factor_shares[:, 3].any()


def test_summary_weights_units_by_their_variance() -> None:
    activations = to_activations(3 * X, X, PRODUCT, 0 * X)
    summary = summarize_tuning(compute_tuning(activations, SHAPE))
    weighted = 10 * X.var() / (10 * X.var() + PRODUCT.var())
    assert summary == {
        "additive_share_mean": pytest.approx(2 / 3),
        "additive_share_median": pytest.approx(1),
        "additive_share_weighted": pytest.approx(weighted),
        "pair_share_mean": pytest.approx(1 / 3),
        "pair_share_weighted": pytest.approx(1 - weighted),
        "dead_unit_fraction": 0.25,
        "product_share": pytest.approx(1 - weighted),
        "sum_share": 0.0,
        "product_less_sum": pytest.approx(1 - weighted),
    }
    assert all(type(value) is float for value in summary.values())


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("value", [0.0, 0.1, np.nan, np.inf])
def test_dead_and_diverged_stages_have_no_share(value: float) -> None:
    activations = np.full((30, 4), value)
    tuning = compute_tuning(activations, SHAPE)
    summary = summarize_tuning(tuning)
    assert summary.pop("dead_unit_fraction") == float(np.isfinite(value))
    assert set(summary.values()) == {None}
    assert select_units(activations, tuning.variance, 3).size == 0
    constant = np.full((36, 2), 0.3, np.float32)  # its variance is rounding
    assert np.isfinite(select_units(constant, constant.var(axis=0), 3)).all()


def test_selection_is_pivoted_orthogonalization(
    rng: np.random.Generator,
) -> None:
    activations = rng.normal(size=(30, 12)) * rng.uniform(1, 2, size=12)
    left = activations - activations.mean(axis=0)
    expected = []
    for _ in range(6):
        unit = int(np.argmax((left**2).sum(axis=0)))
        pivot = left[:, unit] / np.linalg.norm(left[:, unit])
        left = left - np.outer(pivot, pivot @ left)
        expected.append(unit)
    # Copies, shifted and scaled, and a dead unit are not chosen.
    more = np.hstack([activations, 0.9 * activations + 4, 0 * activations])
    variance = compute_tuning(more, SHAPE).variance
    assert select_units(more, variance, 6).tolist() == expected


WIDTHS = (0.5, 2.0, 8.0)
PLACES = np.arange(28)


def make_profiles(width: float, center: tuple[int, int]) -> list[np.ndarray]:
    """Gaussian profiles of x and of y on a 28 x 28 grid."""
    return [np.exp(-0.5 * ((PLACES - c) / width) ** 2) for c in center]


def summarize_maps(*maps: np.ndarray) -> dict[str, float | None]:
    return summarize_tuning(compute_tuning(to_activations(*maps), (28, 28)))


@pytest.mark.parametrize(("level", "sign"), [(0.0, 1.0), (-0.5, -1.0)])
@pytest.mark.parametrize("center", [(14, 14), (3, 20), (0, 0)])
@pytest.mark.parametrize("width", WIDTHS)
def test_products_and_sums_of_any_width_are_told_apart(
    width: float, center: tuple[int, int], sign: float, level: float
) -> None:
    """The additive share of such products is .09 to .93."""
    f, g = make_profiles(width, center)
    product = summarize_maps(level + sign * np.outer(f, g))
    total = summarize_maps(level + sign * np.add.outer(f, g))
    assert product["product_less_sum"] == 1
    # A sum of two very wide profiles is nearly a product, too: of no type.
    sums = (0, -1) if width == 8 else (-1,)
    assert total["product_less_sum"] in sums


def test_noise_units_do_not_count(rng: np.random.Generator) -> None:
    """One of them moved the mean additive share from 1 to .73."""
    f, g = make_profiles(2.0, (14, 14))
    noise = [rng.normal(size=(28, 28)) for _ in range(9)]
    rounding = 1e-9 * rng.normal(size=(28, 28))
    for kind, expected in ((np.multiply.outer, 1), (np.add.outer, -1)):
        units = [kind(f, g), 10 * noise[0], *noise[1:], rounding]
        assert summarize_maps(*units)["product_less_sum"] == expected
    assert summarize_maps(*noise)["product_less_sum"] is None


def test_the_best_product_is_the_first_singular_component(
    rng: np.random.Generator,
) -> None:
    maps = np.outer(*rng.normal(size=(2, 28))) + rng.normal(size=(5, 28, 28))
    units = maps.reshape(5, -1).T
    found = compute_tuning(units, (28, 28)).product_share
    for share, one in zip(found, maps, strict=True):
        middle, mean = (one.min() + one.max()) / 2, one.mean()
        rests = [mean, one.min() if mean <= middle else one.max()]
        slow = []
        for rest in rests:
            values = np.linalg.svd(one - rest, compute_uv=False)
            slow.append(1 - (values[1:] ** 2).sum() / one.var() / one.size)
        assert share == pytest.approx(max(slow), abs=0.01)
