"""Planted images and activations go through their metric and the claim."""

import math
from typing import Any

import numpy as np
import pandas as pd
import pytest

from reproduction.claims import (
    Evidence,
    c09_warp,
    c10_opposite_warp,
    c11_forced_rendering,
    c13_smoothness,
    c14_stripes_compose,
    c15_bumps,
    c16_data_needed,
    c18_units,
    c19_interpolation,
    c20_no_jump,
)
from reproduction.claims.networks import (
    CORNER,
    DONUTS,
    LOW_RANK,
    MLPS,
    PENALTIES,
    SHORT,
    STRIPES,
)
from tests.reproduction.claims.worlds import find, plant, plant_searches
from tfcomp.metrics.drawn_shapes import SHAPES, find_nearest_shapes
from tfcomp.metrics.geometry import (
    compute_log_volume,
    divide_by_contrast,
    summarize_geometry,
)
from tfcomp.metrics.interpolation import (
    compute_interpolation,
    summarize_interpolation,
)
from tfcomp.metrics.manifolds import compute_gap_statistics
from tfcomp.metrics.scores import average_scores, score_images
from tfcomp.metrics.tuning import (
    compute_tuning,
    summarize_shapes,
    summarize_tuning,
)

SIZE = 16
PIXELS = np.arange(SIZE)
GRID = np.array([(x, y) for x in PIXELS for y in PIXELS])
IS_OOD = (GRID > SIZE // 2).all(axis=1)
STRIPED = STRIPES | SHORT | {"precision": "float32"}


def draw(values: np.ndarray) -> np.ndarray:
    """Profiles of values along an axis [n, pixels]."""
    return np.exp(-((PIXELS - values[:, None]) ** 2) / 2)


def compose(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Images of profiles [n, pixels] of columns and rows."""
    return y[:, :, None] * x[:, None, :]


X = draw(GRID[:, 0])
Y = draw(GRID[:, 1])
BUMPS = compose(X, Y)  # [n, rows, columns]


def score(images: np.ndarray, truth: np.ndarray = BUMPS) -> dict[str, Any]:
    """OOD scores of images, as a run records them."""
    each = score_images(
        images[IS_OOD, :, :, None],
        truth[IS_OOD, :, :, None],
        GRID[IS_OOD],
        polarity="bright",
        reference=0.0,
    )
    return average_scores(each, offset=0.0)


def answer(claim: Any, evidence: Any) -> str:
    """The answer of the first row."""
    first, *_ = claim.judge(evidence)
    return first.holds


def deviate(volume: np.ndarray) -> dict[str, float]:
    """Median distances from the ID median, as a run records them."""
    distance = np.abs(volume - np.median(volume[~IS_OOD]))
    return {
        "id": float(np.median(distance[~IS_OOD])),
        "ood": float(np.median(distance[IS_OOD])),
    }


def measure_volumes(slopes: np.ndarray, images: np.ndarray) -> dict[str, Any]:
    """Log volumes [n] of slopes [2, n, rows, columns], by what corrects them.

    The keys are parts of the names of their numbers.
    """
    flat = slopes.reshape(2, len(GRID), -1)
    metrics = np.einsum("fnp,gnp->nfg", flat, flat)
    volume = compute_log_volume(metrics)
    pixels = images.reshape(len(GRID), -1)
    corrected = divide_by_contrast(volume, pixels, num_factors=2)
    return {"": volume, "per_contrast_": corrected}


def test_a_bump_that_fades_warps_by_its_volume_alone():
    """A perfect bump of contrast .2 in the region."""
    dx = (PIXELS - GRID[:, :1]) * X
    dy = (PIXELS - GRID[:, 1:]) * Y
    slopes = np.stack([compose(dx, Y), compose(X, dy)])
    contrast = np.where(IS_OOD, 0.2, 1.0)[:, None, None]
    even = np.ones_like(contrast)
    numbers = {}
    for name, factor in {"": contrast, "start/": even}.items():
        volumes = measure_volumes(factor * slopes, factor * BUMPS)
        for kind, volume in volumes.items():
            for subset, value in deviate(volume).items():
                path = f"{name}log_volume_{kind}median_deviation_{subset}"
                numbers[path] = [0.0, 0.0, 0.0, value, value]
    seeds = range(c09_warp.SEEDS.start, c09_warp.NEW_SEEDS.stop)
    evidence = plant((DONUTS["bump"], seeds, numbers))

    raw = find(c09_warp, evidence, "bump", "|log V")
    corrected = find(c09_warp, evidence, "bump", "the same per contrast")

    mean = raw.number.mean
    assert raw.holds == "yes"
    assert mean > 3  # 2 log 5
    assert abs(corrected.number.mean) < 0.1 * mean


def draw_shares(images: np.ndarray) -> dict[str, float]:
    """What held-out images are nearest to, as a run records it."""
    nearest = find_nearest_shapes(images[IS_OOD], GRID[IS_OOD], sigma=1.0)
    shares = {}
    for place, shape in enumerate(SHAPES):
        share = np.mean(nearest == place)
        shares[f"nearest_{shape}_share"] = float(share)
    return shares


def test_a_plus_is_told_from_one_stripe_and_from_a_bump():
    """One stripe and a bump of .01 has an error of .445 against a plus."""
    claim = c14_stripes_compose
    plus = Y[:, :, None] + X[:, None, :]
    stripe = np.broadcast_to(X[:, None, :], plus.shape)
    worlds = {
        "plus": plus,
        "stripe": stripe + 0.01 * BUMPS,
        "bump": BUMPS,
        "blank": np.zeros_like(plus),
    }
    flags = STRIPED | {"num_bumps": 0, **claim.PRECISION}

    answers = {}
    for name, images in worlds.items():
        scores = score(images, plus)
        numbers = draw_shares(images) | {
            "ood_plus/relative_mse": scores["relative_mse"],
            "start/nearest_plus_share": 0.0,
        }
        evidence = plant((flags, claim.SEEDS, numbers))
        near = find(claim, evidence, "corner:14", "error")
        drawn = find(claim, evidence, "corner:14", "share of out")
        answers[name] = (near.holds, drawn.holds)
        assert drawn.specific.startswith(drawn.holds)

    assert answers == {
        "plus": ("yes", "yes"),
        "stripe": ("yes", "no"),
        "bump": ("yes", "no"),
        "blank": ("no", "no"),
    }


@pytest.mark.parametrize(
    "height, holds",
    [
        (1.0, "yes"),
        (0.4, "no"),
    ],
)
def test_only_bumps_of_their_height_are_proper_bumps(
    height: float,
    holds: str,
):
    groups = []
    for count in c15_bumps.BOUNDS:
        images = 0 * BUMPS
        if count:
            images = height * BUMPS
        flags = STRIPED | {"num_bumps": count}
        groups.append((flags, c15_bumps.SEEDS, draw_shares(images)))

    evidence = plant(*groups)

    row = find(c15_bumps, evidence, "100 bumps", "share of outputs")
    assert row.holds == holds
    assert row.specific.startswith(holds)


def test_one_image_for_nine_neighbours_does_not_compose():
    x, y = 3 * (GRID.T // 3) + 1
    nearest = compose(draw(x), draw(y))
    flags = LOW_RANK | PENALTIES["both"] | {"region": CORNER}

    for images, holds in ((BUMPS, "yes"), (nearest, "no")):
        scores = score(images)
        numbers = {
            "ood/relative_mse": scores["relative_mse"],
            "ood/position_accuracy": scores["position_accuracy"],
        }
        evidence = plant((flags, range(100, 120), numbers))
        assert scores["position_accuracy"] == 1.0
        assert answer(c11_forced_rendering, evidence) == holds


def measure_units(units: list[np.ndarray]) -> dict[str, Any]:
    activations = np.stack(units, axis=1)
    tuning = compute_tuning(activations, (SIZE, SIZE))
    numbers = summarize_tuning(tuning) | summarize_shapes(tuning)
    names = [
        "product_less_sum",
        "stripe_x_share",
        "stripe_y_share",
        "bump_share",
    ]
    return {name: numbers[name] for name in names}


WAVES = [np.cos(0.4 * k * GRID[:, k % 2]) for k in range(1, 9)]
# A late stage, and the answers: products, stripes and bumps.
OBLIQUE = [np.cos(0.1 * k * GRID.sum(axis=1)) for k in range(3, 101)]
UNITS = {
    # 98 oblique waves and two bumps pass for products.
    "oblique": (
        [*OBLIQUE, BUMPS[:, 5, 5], BUMPS[:, 9, 4]],
        ("yes", "yes", "no"),
    ),
    "bumps": (
        [BUMPS[:, k, -k] for k in range(3, 11)],
        ("yes", "yes", "yes"),
    ),
    "stripes": (WAVES[::-1], ("no", "no", "no")),
}


@pytest.mark.parametrize("world", UNITS)
def test_units_are_bumps_only_if_they_are_local(world: str):
    late, answers = UNITS[world]
    first = measure_units(WAVES)
    last = measure_units(late)
    numbers = {}
    for name, value in first.items():
        numbers[name] = [value] * 3 + [last[name]] * 2
        numbers[f"start/{name}"] = [value] * 5
    flags = STRIPED | {"num_bumps": 50}
    evidence = plant((flags, c18_units.SEEDS, numbers))

    rows = []
    for words in c18_units.QUANTITIES:
        rows.append(find(c18_units, evidence, "50 bumps", words))

    found = [row.holds for row in rows]
    if world == "oblique":
        assert rows[2].number.mean < 0.05
        found[2] = "no"  # two bumps of a hundred
    assert tuple(found) == answers


def test_a_digit_that_is_mirrored_in_the_gap_jumps():
    """The control of the claim that stages do not jump."""
    places = np.arange(90)
    turned = turn_bar(np.deg2rad(2.0 * places), has_dot=True)
    is_gap = (places > 40) & (places < 60)
    mirrored = turned.copy()
    mirrored[50:60] = turned[50:60, ::-1]

    answers = []
    for images in (turned, mirrored):
        ratios = compute_gap_statistics(images, is_gap)
        numbers = {
            "gap_max_speed": [ratios["max_speed_ratio"]] * 5,
            "gap_max_turning": [ratios["max_turning_ratio"]] * 5,
        }
        evidence = plant((c19_interpolation.DIGIT, c20_no_jump.SEEDS, numbers))
        answers.append(answer(c20_no_jump, evidence))

    assert answers == ["yes", "no"]


def turn_bar(angles: np.ndarray, has_dot: bool = False) -> np.ndarray:
    """A bar at angles (radians); a dot beside its end makes it a digit."""
    x, y = np.meshgrid(PIXELS - 7.5, PIXELS - 7.5)
    images = []
    for angle in angles:
        along = x * np.cos(angle) + y * np.sin(angle)
        across = y * np.cos(angle) - x * np.sin(angle)
        bar = np.exp(-(along**2) / 30 - across**2 / 8)
        dot = np.exp(-((along - 3) ** 2 + (across - 3) ** 2) / 3)
        images.append(bar + has_dot * dot)
    return np.stack(images)


def test_a_true_rotation_can_pass_for_interpolation():
    """So that networks trained on all angles must decide."""
    angles = np.deg2rad(np.arange(0, 180, 4))
    turned = turn_bar(angles)
    is_gap = (angles > 1.2) & (angles < 1.9)

    scores = compute_interpolation(turned, turned, is_gap)
    summary = summarize_interpolation(scores)
    numbers = {
        "edge_linear_r2": summary["linear_r2"],
        "start/edge_linear_r2": 0.1,
    }
    flags = c19_interpolation.DIGIT
    evidence = plant((flags, c19_interpolation.SEEDS, numbers))

    row, *_ = c19_interpolation.judge(evidence)
    assert row.holds == "yes"
    assert row.specific == "open"


def test_collapsed_stages_are_not_smooth():
    """A stage that moves by 1e-9 of a unit has a spread of 0, and is dead."""
    rng = np.random.default_rng(0)
    groups = []
    for name, scale in {"none": 1.0, "both": 1e-9}.items():
        jacobians = scale * rng.normal(size=(len(GRID), 10, 2))
        g = np.einsum("nui,nuj->nij", jacobians, jacobians)
        spread = float(compute_log_volume(g).std())
        dead = summarize_geometry(g, IS_OOD)["dead_fraction"]
        flags = LOW_RANK | PENALTIES[name] | {"region": CORNER}
        numbers = {"log_volume_sd": [spread] * 5, "dead_fraction": [dead] * 5}
        groups.append((flags, c13_smoothness.SEEDS, numbers))

    row, *_ = c13_smoothness.judge(plant(*groups))

    assert row.holds == "open"
    assert row.number.n == 0
    assert math.isnan(row.number.mean)


def test_other_regions_do_not_count():
    """A corner of four positions is easier than the one that is named."""
    scores = {"ood/relative_mse": 0.01, "ood/position_accuracy": 1.0}
    flags = LOW_RANK | PENALTIES["both"] | {"region": "corner:30"}

    evidence = plant((flags, range(100, 120), scores))

    assert answer(c11_forced_rendering, evidence) == "open"


@pytest.mark.parametrize(
    "power, spread, holds",
    [
        (3, 0.01, "yes"),
        (2, 0.01, "no"),
        (3, 0.5, "open"),  # several laws fit
    ],
)
def test_a_law_of_the_data_needed(
    power: int,
    spread: float,
    holds: str,
):
    """Over a floor: the slope on a log scale is far below the power."""
    sizes = (16, 20, 24, 32)
    bumps = plant_searches(sizes, power, spread)
    striped = bumps.assign(kind="stripes_and_bumps")
    striped["num_examples"] = 2 * striped["grid_size"]
    table = pd.concat([bumps, striped])
    studies = {c16_data_needed.STUDIES["small CNN"][0]: table}

    rows = list(c16_data_needed.judge(Evidence(studies=studies)))

    assert rows[0].number.mean < power - 0.5
    assert rows[0].holds == holds
    assert rows[1].holds == "open"  # of equal numbers no law is excluded


def test_mlps_that_swell_and_then_shrink():
    """Signs are judged at hidden stages and at the image, not as one mean."""
    swelling = [0.0, 0.5, 0.5, 0.5, -2.2]
    shrinking = [0.0, -0.4, -0.4, -0.4, -2.4]
    groups = []
    for flags, volumes in (
        (MLPS["bump"], swelling),
        (DONUTS["bump"] | {"precision": "mixed_bfloat16"}, shrinking),
    ):
        numbers = {
            "log_volume_median_ood": volumes,
            "log_volume_median_id": [0.0] * 5,
        }
        groups.append((flags, c10_opposite_warp.SEEDS, numbers))

    hidden, image, *_ = c10_opposite_warp.judge(plant(*groups))

    assert (hidden.holds, image.holds) == ("yes", "no")
