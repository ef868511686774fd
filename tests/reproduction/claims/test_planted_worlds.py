"""Planted images and activations go through their metric and the claim."""

import math
from typing import Any

import numpy as np

from reproduction.claims import (
    c09_warp,
    c11_forced_rendering,
    c13_smoothness,
    c14_stripes_compose,
    c18_units,
    c19_interpolation,
    c20_no_jump,
)
from reproduction.claims.networks import (
    ALL_SEEDS,
    CORNER,
    DONUTS,
    LOW_RANK,
    PENALTIES,
    SHORT,
    STRIPES,
)
from tests.reproduction.claims.worlds import plant
from tfcomp.metrics.geometry import compute_log_volume
from tfcomp.metrics.interpolation import (
    compute_interpolation,
    summarize_interpolation,
)
from tfcomp.metrics.manifolds import compute_gap_statistics
from tfcomp.metrics.scores import average_scores, score_images
from tfcomp.metrics.tuning import compute_tuning, summarize_tuning

SIZE = 16
PIXELS = np.arange(SIZE)
GRID = np.array([(x, y) for x in PIXELS for y in PIXELS])
IS_OOD = (GRID > SIZE // 2).all(axis=1)
STRIPED = STRIPES | SHORT | {"precision": "float32"}


def draw(values: np.ndarray) -> np.ndarray:
    """Profiles of values along an axis [n, pixels]."""
    return np.exp(-((PIXELS - values[:, None]) ** 2) / 2)


X, Y = draw(GRID[:, 0]), draw(GRID[:, 1])
BUMPS = Y[:, :, None] * X[:, None, :]  # [n, rows, columns]


def score(images: np.ndarray, truth: np.ndarray = BUMPS) -> dict[str, Any]:
    """OOD scores of images, as a run records them."""
    each = score_images(
        images[IS_OOD], truth[IS_OOD], GRID[IS_OOD], polarity="bright"
    )
    return average_scores(each)


def answer(claim: Any, evidence: Any, place: int = 0) -> str:
    return list(claim.judge(evidence))[place].holds


def test_a_bump_that_fades_seems_to_warp() -> None:
    """So the page says that fading is not excluded."""
    dx = (PIXELS - GRID[:, :1]) * X
    dy = (PIXELS - GRID[:, 1:]) * Y
    slopes = np.stack(
        [Y[:, :, None] * dx[:, None], dy[:, :, None] * X[:, None]]
    )
    contrast = np.where(IS_OOD, 0.2, 1.0)[:, None, None]
    numbers = {}
    for name, images in {"": slopes * contrast, "start/": slopes}.items():
        flat = images.reshape(2, len(GRID), -1)
        volume = compute_log_volume(np.einsum("fnp,gnp->nfg", flat, flat))
        distance = np.abs(volume - np.median(volume[~IS_OOD]))
        for subset, mask in {"id": ~IS_OOD, "ood": IS_OOD}.items():
            value = float(np.median(distance[mask]))
            path = f"{name}log_volume_median_deviation_{subset}"
            numbers[path] = [0.0, 0.0, 0.0, value, value]
    evidence = plant((DONUTS["bump"], c09_warp.SEEDS, numbers))
    assert answer(c09_warp, evidence) == "yes"
    corrected = [
        r for r in c09_warp.judge(evidence) if "contrast" in r.quantity
    ]
    assert [row.holds for row in corrected] == ["open"]


def test_a_plus_and_one_stripe_are_not_told_apart() -> None:
    """So the page says that a plus is not shown."""
    plus = Y[:, :, None] + X[:, None, :]
    stripe = np.broadcast_to(X[:, None, :], plus.shape)
    flags = STRIPED | {"num_bumps": 0, **c14_stripes_compose.PRECISION}
    answers = []
    for images in (plus, stripe, np.zeros_like(plus)):
        error = score(images, plus)["relative_mse"]
        numbers = {"ood_plus/relative_mse": error}
        evidence = plant((flags, c14_stripes_compose.SEEDS, numbers))
        rows = list(c14_stripes_compose.judge(evidence))
        answers.append((rows[1].holds, rows[-1].holds))
    assert answers == [("yes", "open"), ("yes", "open"), ("no", "open")]


def test_one_image_for_nine_neighbours_does_not_compose() -> None:
    nearest = 3 * (GRID // 3) + 1
    images = draw(nearest[:, 1])[:, :, None] * draw(nearest[:, 0])[:, None, :]
    for drawn, holds in ((BUMPS, "yes"), (images, "no")):
        scores = score(drawn)
        assert scores["position_accuracy"] == 1.0
        numbers = {f"ood/{name}": scores[name] for name in ("relative_mse",)}
        numbers["ood/position_accuracy"] = 1.0
        flags = LOW_RANK | PENALTIES["both"] | {"region": CORNER}
        evidence = plant((flags, range(100, 120), numbers))
        assert answer(c11_forced_rendering, evidence) == holds


def test_oblique_ridges_count_as_products() -> None:
    """So that networks on a bump at every position are the control."""
    first = [np.cos(0.4 * k * GRID[:, k % 2]) for k in range(1, 9)]
    last = [np.cos(0.4 * k * GRID.sum(axis=1)) for k in range(1, 9)]
    numbers = {}
    for name, units in {"": last, "start/": first}.items():
        rows = []
        for stage in (first, units):
            tuning = compute_tuning(np.stack(stage, 1), (SIZE, SIZE))
            rows.append(summarize_tuning(tuning)["product_less_sum"])
        begin, end = rows
        path = f"{name}product_less_sum"
        numbers[path] = [begin, begin, begin, end, end]
    every = STRIPED | {"num_bumps": 784, "train_all": True}
    evidence = plant(
        (STRIPED | {"num_bumps": 50}, c18_units.SEEDS, numbers),
        (every, ALL_SEEDS, numbers),
    )
    rows = [r for r in c18_units.judge(evidence) if r.part == "50 bumps"]
    assert rows[0].holds == "yes"
    assert rows[0].specific == "no: trained on all"


def test_a_jump_at_the_gap_is_refuted() -> None:
    angle = np.linspace(0, 2 * np.pi, 90, endpoint=False)
    curve = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    is_gap = (angle > 2.5) & (angle < 3.8)
    jump = np.where((angle > 3.1)[:, None] & is_gap[:, None], -curve, curve)
    answers = []
    for points in (curve, jump):
        ratios = compute_gap_statistics(points, is_gap, periodic=True)
        numbers = {
            "gap_max_speed": [ratios["max_speed_ratio"]] * 5,
            "gap_max_turning": [ratios["max_turning_ratio"]] * 5,
        }
        flags = c19_interpolation.DIGIT
        evidence = plant((flags, c20_no_jump.SEEDS, numbers))
        answers.append(answer(c20_no_jump, evidence))
    assert answers == ["yes", "no"]


def test_a_true_rotation_can_pass_for_interpolation() -> None:
    """So that networks trained on all angles must decide."""
    x, y = np.meshgrid(PIXELS - 7.5, PIXELS - 7.5)
    angles = np.deg2rad(np.arange(0, 180, 4))
    images = []
    for angle in angles:
        along = x * np.cos(angle) + y * np.sin(angle)
        across = y * np.cos(angle) - x * np.sin(angle)
        images.append(np.exp(-(along**2) / 30 - across**2 / 8))
    turned = np.stack(images)
    is_gap = (angles > 1.2) & (angles < 1.9)
    scores = summarize_interpolation(
        compute_interpolation(turned, turned, is_gap)
    )
    numbers = {"edge_linear_r2": scores["linear_r2"]}
    numbers["start/edge_linear_r2"] = 0.1
    flags = c19_interpolation.DIGIT
    evidence = plant((flags, c19_interpolation.SEEDS, numbers))
    row = next(iter(c19_interpolation.judge(evidence)))
    assert (row.holds, row.specific) == ("yes", "open")


def test_collapsed_stages_are_not_smooth() -> None:
    groups = []
    for name, spread, dead in (("none", 1.0, 0.0), ("both", 0.001, 1.0)):
        flags = LOW_RANK | PENALTIES[name] | {"region": CORNER}
        numbers = {"log_volume_sd": [spread] * 5, "dead_fraction": [dead] * 5}
        groups.append((flags, c13_smoothness.SEEDS, numbers))
    row = next(iter(c13_smoothness.judge(plant(*groups))))
    assert row.holds == "open" and row.number.n == 0
    assert math.isnan(row.number.mean)
