"""Tuning against loops, and on units of known tuning."""

import numpy as np
import pytest
from numpy import ndarray as Array
from numpy.testing import assert_allclose
from pytest import approx

from tfcomp.metrics.tuning import (
    compute_tuning,
    measure_effects,
    select_units,
    summarize_shapes,
    summarize_tuning,
)

X, Y = np.indices((6, 5)).astype(float)
PRODUCT = (X - X.mean()) * (Y - Y.mean())


def to_activations(*maps: Array) -> Array:
    return np.stack([each.ravel() for each in maps], axis=1)  # [n, units]


def test_effects_of_a_factor_with_rare_levels(rng):
    values = rng.normal(size=(12, 3))
    levels = np.array([0] * 7 + [2] * 4 + [5])
    means = np.empty_like(values)
    for level in set(levels):
        is_level = levels == level
        means[is_level] = values[is_level].mean(axis=0)

    effects = measure_effects(values, levels)

    assert_allclose(effects, means.var(axis=0))


@pytest.mark.parametrize(
    "shape",
    [
        (7,),
        (4, 5),
        (3, 2, 4),
        (2, 3, 2, 2),
    ],
)
def test_shares_equal_the_slow_definition(shape, rng):
    maps = rng.normal(size=(9, *shape)) + 3

    tuning = compute_tuning(to_activations(*maps), shape)

    axes = set(range(len(shape)))
    shares = []
    for axis in axes:
        others = axes - {axis}
        variances = []
        for unit in maps:
            effects = unit.mean(axis=tuple(others))
            variances.append(effects.var())
        shares.append(variances / tuning.variance)
    assert_allclose(tuning.variance, [unit.var() for unit in maps])
    assert_allclose(tuning.factor_shares.T, shares)
    assert_allclose(tuning.additive_share, sum(shares))


def test_orders_of_three_factors():
    signs = [-1.0, 1.0]
    a, b, c = np.meshgrid(signs, [-1.0, 0.0, 1.0], signs, indexing="ij")
    triple = a * b * c
    activations = to_activations(
        a + b,
        a * b + 2 * a * c,
        triple,
        a * b + b + triple,
    )

    tuning = compute_tuning(activations, triple.shape)

    assert_allclose(tuning.additive_share, [1, 0, 0, 1 / 3], atol=1e-9)
    assert_allclose(tuning.pair_share, [0, 1, 0, 1 / 3], atol=1e-9)


def test_summary_weights_units_by_their_variance():
    activations = to_activations(3 * X, X, PRODUCT, 0 * X)
    tuning = compute_tuning(activations, X.shape)

    summary = summarize_tuning(tuning)

    additive = 10 * X.var()
    weighted = additive / (additive + PRODUCT.var())
    rest = 1 - weighted
    expected = {
        "additive_share_mean": 2 / 3,
        "additive_share_median": 1,
        "additive_share_weighted": weighted,
        "pair_share_mean": 1 / 3,
        "pair_share_weighted": rest,
        "dead_unit_fraction": 0.25,
        "product_share": rest,
        "sum_share": 0.0,
        "product_less_sum": rest,
    }
    assert summary == approx(expected)
    assert {type(value) for value in summary.values()} == {float}


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("value", [0.0, 0.1, np.nan, np.inf])
def test_dead_and_diverged_stages_have_no_share(value):
    activations = np.full((30, 4), value)
    tuning = compute_tuning(activations, X.shape)

    summary = summarize_tuning(tuning)
    shares = summarize_shapes(tuning)
    units = select_units(activations, tuning.variance, 3)

    assert summary.pop("dead_unit_fraction") == np.isfinite(value)
    assert {*summary.values(), *shares.values()} == {None}
    assert units.size == 0


def test_a_variance_of_rounding_selects_finite_units():
    constant = np.full((36, 2), 0.3, np.float32)
    variance = constant.var(axis=0)
    units = select_units(constant, variance, 3)
    assert np.isfinite(units).all()


def test_selection_is_pivoted_orthogonalization(rng):
    scales = rng.uniform(1, 2, size=12)
    activations = scales * rng.normal(size=(30, 12))
    # Copies, shifted and scaled, and a dead unit are not selected.
    copies = 0.9 * activations + 4
    stage = np.hstack([activations, copies, 0 * activations])
    variance = compute_tuning(stage, X.shape).variance

    units = select_units(stage, variance, 6)

    rest = activations - activations.mean(axis=0)
    expected = []
    for _ in range(6):
        unit = rest.var(axis=0).argmax()
        pivot = rest[:, unit]
        pivot = pivot / np.linalg.norm(pivot)
        rest = rest - np.outer(pivot, pivot @ rest)
        expected.append(unit)
    assert units.tolist() == expected


SIZES = (28, 28)


def make_profile(width: float, center: int, size: int = 28) -> Array:
    """A Gaussian of one coordinate."""
    steps = (np.arange(size) - center) / width
    return np.exp(-0.5 * steps**2)


def tell_types(*maps: Array) -> float | None:
    activations = to_activations(*maps)
    tuning = compute_tuning(activations, SIZES)
    return summarize_tuning(tuning)["product_less_sum"]


@pytest.mark.parametrize(
    "level, sign",
    [
        (0.0, 1.0),
        (-0.5, -1.0),
    ],
)
@pytest.mark.parametrize("place", [(3, 20), (0, 0)])
@pytest.mark.parametrize(
    "width, sum_types",
    [
        (0.5, {-1}),
        # A sum of two very wide profiles is nearly a product, too: no type.
        (8.0, {-1, 0}),
    ],
)
def test_products_and_sums_of_any_width_are_told_apart(
    width, sum_types, place, sign, level
):
    """The additive share of such products is .09 to .93."""
    of_x, of_y = (make_profile(width, center) for center in place)
    product = np.multiply.outer(of_x, of_y)
    total = np.add.outer(of_x, of_y)

    product_type = tell_types(level + sign * product)
    sum_type = tell_types(level + sign * total)

    assert product_type == 1
    assert sum_type in sum_types


@pytest.mark.parametrize(
    "combine, expected",
    [
        (np.multiply.outer, 1),
        (np.add.outer, -1),
    ],
)
def test_noise_units_do_not_count(combine, expected, rng):
    """One of them moved the mean additive share from 1 to .73."""
    profile = make_profile(2.0, 14)
    unit = combine(profile, profile)
    noise = rng.normal(size=(9, *SIZES))
    noise[0] *= 10
    rounding = 1e-9 * rng.normal(size=SIZES)

    assert tell_types(unit, *noise, rounding) == expected
    assert tell_types(*noise) is None


def test_the_best_product_is_the_first_singular_component(rng):
    of_x, of_y = rng.normal(size=SIZES)[:2]
    product = np.outer(of_x, of_y)
    maps = product + rng.normal(size=(5, *SIZES))

    tuning = compute_tuning(to_activations(*maps), SIZES)

    for share, unit in zip(tuning.product_share, maps, strict=True):
        mean = unit.mean()
        end = unit.min()
        if unit.max() - mean < mean - end:
            end = unit.max()
        expected = []
        for rest in (mean, end):
            values = np.linalg.svd(unit - rest, compute_uv=False)
            error = np.sum(values[1:] ** 2) / unit.size
            expected.append(1 - error / unit.var())
        assert share == approx(max(expected), abs=0.01)


PLACE_X, PLACE_Y = np.indices((28, 28))
SUM = PLACE_X + PLACE_Y
STRIPE_X = make_profile(2, 6)[PLACE_X]
STRIPE_Y = STRIPE_X.T
BUMP = STRIPE_X * STRIPE_Y
UNIT_SHAPES = {
    "a bump": (BUMP, "bump"),
    "a bump at the corner": (make_profile(2, 0)[PLACE_X] * BUMP, "bump"),
    "a dip": (1 - BUMP, "bump"),
    "a stripe in x": (STRIPE_X, "stripe_x"),
    "a stripe in y": (STRIPE_Y, "stripe_y"),
    "two stripes in x": (STRIPE_X + STRIPE_X[::-1], "stripe_x"),
    "a plus": (STRIPE_X + STRIPE_Y, "other"),
    "a plus of unequal stripes": (STRIPE_X + 0.6 * STRIPE_Y, "other"),
    "an oblique wave": (np.cos(0.9 * SUM), "other"),
    "an oblique ridge": (make_profile(2, 27, 55)[SUM], "other"),
    "two bumps": (BUMP + BUMP[::-1, ::-1], "other"),
    "a checkerboard": (np.cos(PLACE_X) * np.cos(PLACE_Y), "other"),
}


@pytest.mark.parametrize("case", UNIT_SHAPES)
@pytest.mark.parametrize("scale", [3.0, -3.0])
def test_shapes_of_units(case, scale):
    unit, shape = UNIT_SHAPES[case]
    activations = to_activations(scale * unit)

    tuning = compute_tuning(activations, SIZES)

    shares = summarize_shapes(tuning)
    assert shares.pop(f"{shape}_share") == 1
    assert set(shares.values()) == {0}


def test_live_units_count_the_same_whatever_their_variance():
    faint = 1e-2 * STRIPE_X
    stage = to_activations(BUMP, faint, faint, 0 * BUMP)
    tuning = compute_tuning(stage, SIZES)

    shares = summarize_shapes(tuning)

    assert shares["bump_share"] == approx(1 / 3)
    assert shares["stripe_x_share"] == approx(2 / 3)
