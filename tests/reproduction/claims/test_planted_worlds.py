"""Planted images and activations go through their metric and the claim."""

from typing import Any

import numpy as np
import pytest

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
from tfcomp.metrics.scores import average_scores, score_images

PIXELS = np.arange(16)
GRID = np.array(list(np.ndindex(16, 16)))
IS_OOD = (GRID > 8).all(axis=1)
STRIPED = STRIPES | SHORT | {"precision": "float32"}
FORCED = LOW_RANK | {"region": CORNER}


def render(values: np.ndarray) -> np.ndarray:
    """Profiles of values along an axis [n, pixels]."""
    return np.exp(-((PIXELS - values[:, None]) ** 2) / 2)


ROWS = render(GRID[:, 1])[:, :, None]
COLUMNS = render(GRID[:, 0])[:, None, :]
BUMPS = ROWS * COLUMNS  # [n, rows, columns]


def score(images: np.ndarray, truth: np.ndarray) -> dict[str, Any]:
    """OOD scores of images, as a run records them."""
    scores = score_images(
        images[IS_OOD],
        truth[IS_OOD],
        GRID[IS_OOD],
        polarity="bright",
    )
    return average_scores(scores)


def judge(claim: Any, flags: dict, numbers: dict) -> list:
    evidence = plant((flags, claim.SEEDS, numbers))
    return list(claim.judge(evidence))


def summarize_volumes(jacobian: np.ndarray, start: str) -> dict[str, list]:
    """Deviations of the volumes of the last two stages, from [2, n, pixels]."""
    metrics = np.einsum("fnp,gnp->nfg", jacobian, jacobian)
    volume = compute_log_volume(metrics)
    distance = np.abs(volume - np.median(volume[~IS_OOD]))
    numbers = {}
    for subset, mask in {"id": ~IS_OOD, "ood": IS_OOD}.items():
        value = float(np.median(distance[mask]))
        name = f"{start}log_volume_median_deviation_{subset}"
        numbers[name] = [0.0, 0.0, 0.0, value, value]
    return numbers


def test_a_bump_that_fades_seems_to_warp() -> None:
    """So the page says that fading is not excluded."""
    dx = BUMPS * (PIXELS - GRID[:, :1])[:, None, :]
    dy = BUMPS * (PIXELS - GRID[:, 1:])[:, :, None]
    slopes = np.stack([dx, dy]).reshape(2, len(GRID), -1)
    contrast = np.where(IS_OOD, 0.2, 1.0)[:, None]
    numbers = summarize_volumes(slopes * contrast, "")
    numbers |= summarize_volumes(slopes, "start/")

    rows = judge(c09_warp, DONUTS["bump"], numbers)

    assert rows[0].holds == "yes"
    corrected = [row.holds for row in rows if "contrast" in row.quantity]
    assert corrected == ["open"]


@pytest.mark.parametrize(
    ("rows", "columns", "holds"),
    [(1, 1, "yes"), (0, 1, "yes"), (0, 0, "no")],
)
def test_a_plus_and_one_stripe_are_not_told_apart(
    rows: float,
    columns: float,
    holds: str,
) -> None:
    """So the page says that a plus is not shown."""
    images = rows * ROWS + columns * COLUMNS
    error = score(images, ROWS + COLUMNS)["relative_mse"]
    flags = STRIPED | {"num_bumps": 0, **c14_stripes_compose.PRECISION}

    answers = judge(
        c14_stripes_compose,
        flags,
        {"ood_plus/relative_mse": error},
    )

    assert answers[1].holds == holds
    assert answers[-1].holds == "open"


@pytest.mark.parametrize(("cell", "holds"), [(1, "yes"), (3, "no")])
def test_one_image_for_nine_neighbors_does_not_compose(
    cell: int,
    holds: str,
) -> None:
    centers = cell * (GRID // cell) + cell // 2
    rows = render(centers[:, 1])[:, :, None]
    columns = render(centers[:, 0])[:, None, :]
    scores = score(rows * columns, BUMPS)
    assert scores["position_accuracy"] == 1.0
    numbers = {
        "ood/relative_mse": scores["relative_mse"],
        "ood/position_accuracy": 1.0,
    }
    evidence = plant((FORCED | PENALTIES["both"], range(100, 120), numbers))

    row = next(iter(c11_forced_rendering.judge(evidence)))

    assert row.holds == holds


def test_a_control_that_rises_as_well_refutes() -> None:
    numbers = {
        "product_less_sum": [-0.5, -0.5, -0.5, 0.5, 0.5],
        "start/product_less_sum": [-0.5] * 5,
    }
    every = STRIPED | {"num_bumps": 784, "train_all": True}
    evidence = plant(
        (STRIPED | {"num_bumps": 50}, c18_units.SEEDS, numbers),
        (every, ALL_SEEDS, numbers),
    )

    rows = {row.part: row for row in c18_units.judge(evidence)}

    assert rows["50 bumps"].holds == "yes"
    assert rows["50 bumps"].specific == "no: trained on all"


@pytest.mark.parametrize(("ratio", "holds"), [(1.0, "yes"), (9.0, "no")])
def test_a_jump_at_the_gap_is_refuted(ratio: float, holds: str) -> None:
    numbers = {"gap_max_speed": [ratio] * 5, "gap_max_turning": [ratio] * 5}

    rows = judge(c20_no_jump, c19_interpolation.DIGIT, numbers)

    assert rows[0].holds == holds


def test_interpolation_is_open_without_networks_on_all_angles() -> None:
    numbers = {"edge_linear_r2": 0.9, "start/edge_linear_r2": 0.1}

    row, *_ = judge(c19_interpolation, c19_interpolation.DIGIT, numbers)

    assert row.holds == "yes"
    assert row.specific == "open"


def test_collapsed_stages_are_not_smooth() -> None:
    groups = []
    for name, spread, dead in (("none", 1.0, 0.0), ("both", 0.001, 1.0)):
        numbers = {"log_volume_sd": [spread] * 5, "dead_fraction": [dead] * 5}
        flags = FORCED | PENALTIES[name]
        groups.append((flags, c13_smoothness.SEEDS, numbers))

    row = next(iter(c13_smoothness.judge(plant(*groups))))

    assert row.holds == "open"
    assert row.number.n == 0
