"""Metrics of models whose answer is known."""

import json

import keras
import numpy as np
import pytest
from pytest import approx

from tests.metrics.conftest import render_truth
from tfcomp.metrics import (
    geometry,
    interpolation,
    manifolds,
    references,
    scores,
)
from tfcomp.metrics.registry import find_limits, list_metrics
from tfcomp.metrics.run_analysis import RunAnalysis, compute_metrics

pytestmark = pytest.mark.usefixtures("untraced")


def grow(f):
    x, y = keras.ops.unstack(f, axis=1)
    growing = 4 * keras.ops.exp(x / 4)
    return keras.ops.stack([growing, y], axis=1)


def fold(f):  # in the middle of the region
    x, y = keras.ops.unstack(f, axis=1)
    folded = (x - 7.5) ** 2 / 2
    return keras.ops.stack([folded, y], axis=1)


def kill(f):
    x, y = keras.ops.unstack(f, axis=1)
    is_near = keras.ops.abs(y - 8) < 2
    is_dead = (x == 7) & is_near
    return keras.ops.where(is_dead[:, None], 0.0, 3.0 * f)


def turn(factors):
    angle = factors * np.pi / 180
    circle = [keras.ops.cos(angle), keras.ops.sin(angle)]
    return keras.ops.concatenate(circle, axis=1)


def jump(factors):  # to the other side and back, within the gap
    up = keras.ops.sigmoid(4.0 * (factors - 170.0))
    down = keras.ops.sigmoid(4.0 * (factors - 190.0))
    parts = [turn(factors), up - down]
    return keras.ops.concatenate(parts, axis=1)


EVEN, GROWING, FOLDED, DYING = (f"stage_{i}" for i in range(4))


@pytest.fixture(scope="module")
def true_study(make_study) -> RunAnalysis:
    return make_study(
        "truth",
        stage_0=lambda f: 3.0 * f,
        stage_1=grow,
        stage_2=fold,
        stage_3=kill,
    )


@pytest.fixture(scope="module")
def turning(make_turned) -> RunAnalysis:
    return make_turned(
        "truth",
        stage_0=turn,
        stage_1=jump,
    )


def test_border_of_fading_images(make_study, true_study):
    study = make_study("fading")

    fading = references.measure_border(study)
    perfect = references.measure_border(true_study)

    # The region is 10 wide: distances 1 to 5, of images 1/6 fainter each.
    expected = (np.arange(1, 6) / 6) ** 2
    assert fading["border_rank_correlation"] > 0.95
    assert fading["border_relative_mse"] == approx(expected, rel=1e-4)
    # No error at all has no ranks.
    assert perfect["border_rank_correlation"] is None
    assert perfect["border_relative_mse"] == approx([0] * 5, abs=1e-9)

    study.border_distance[study.border_distance == 2] = 1  # none is that far
    lacks = references.measure_border(study)["border_relative_mse"]
    assert lacks[1] is None
    assert lacks[2:] == fading["border_relative_mse"][2:]
    # The ID points of a sample are few, and far from each other.
    few = study.for_explorer(40)
    expected = few.border_distance[few.splits.is_ood]
    np.testing.assert_array_equal(few.superposition.distance, expected)


def test_spread_of_log_volumes(true_study):
    x = true_study.splits.grid[:, 0]
    is_ood = true_study.splits.is_ood
    is_id = ~is_ood
    subsets = {"id": is_id, "ood": is_ood}

    rows = geometry.measure_volume_spread(true_study)

    even = rows[EVEN]
    growing = rows[GROWING]
    folded = rows[FOLDED]
    dying = rows[DYING]
    volume = np.log(np.abs(x - 7.5))
    deviations = np.abs(volume - np.median(volume[is_id]))
    for name, points in subsets.items():
        spread = x[points].std() / 4
        assert growing[f"log_volume_sd_{name}"] == approx(spread, rel=1e-4)
        assert even[f"log_volume_sd_{name}"] == approx(0, abs=1e-5)

        median = np.median(deviations[points])
        key = f"log_volume_median_deviation_{name}"
        assert folded[key] == approx(median, rel=1e-4)
        # Few dead points do not move it.
        assert dying[key] == approx(0, abs=1e-5)
    id_mean = x[is_id].mean()
    ood_mean = x[is_ood].mean()
    difference = (ood_mean - id_mean) / 4
    assert growing["log_volume_difference"] == approx(difference, abs=1e-5)
    assert growing["log_volume_sd"] == approx(x.std() / 4, rel=1e-4)
    assert even["log_volume_sd"] == approx(0, abs=1e-5)
    assert dying["log_volume_sd_ood"] > 0.1
    assert dying["floor_fraction_ood"] > 0
    assert dying["floor_fraction_id"] == 0


def test_the_published_factorization(make_study):
    """By differences per step, which for a linear stage are exact."""
    weights = [[3.0, 4.0], [0.0, 5.0]]
    study = make_study("truth", stage_0=lambda f: f @ weights)
    stage = study.stages.index("stage_0")

    metrics = compute_metrics(study)

    scores = metrics["factorization_gradient_ratio_of_means"]
    assert scores[stage] == approx(1 - 20 / 50)  # of g = [[25, 20], [20, 25]]
    # A product of a kernel of x and one of y.
    assert metrics["schmidt_centered_explained_1"] > 0.9
    # All names are declared, and all values are plain.
    listed = list_metrics("stages", "run", "stage")
    declared = {metric.name for metric in listed}
    assert metrics.keys() - {"stages"} <= declared
    json.dumps(metrics, allow_nan=False)


def test_factors_in_other_units(make_small):
    """Equation 7 of a stage with one factor counted in hundredths."""

    def merge(f):
        merged = f @ [[100.0], [1.0]]
        return keras.ops.stack([merged], 1)

    study = make_small("truth", stage_0=merge)

    rows = geometry.measure_orthogonality(study)

    merged = rows["stage_0"]
    assert merged["factorization"] > 0.98
    assert merged["worst_pair_factorization"] == approx(0)
    assert merged["chance_factorization"] == 0
    assert rows["image"]["chance_factorization"] > 0.85


def test_interpolation_of_edges(make_turned, turning):
    blend = make_turned("interpolated")
    negative = make_turned(lambda dataset: -render_truth(dataset))

    numbers = interpolation.measure_interpolation(blend)
    rotating = interpolation.measure_interpolation(turning)
    below = interpolation.measure_interpolation(negative)

    for name in ("edge_r2", "edge_r2_min", "edge_linear_r2", "edge_weight_r2"):
        assert numbers[name] == approx(1, abs=1e-3)
    truth_r2 = numbers["edge_truth_r2"]
    assert 0 < truth_r2 < 0.9
    # A network that turns the digit scores what the true images score.
    assert rotating["edge_r2"] == approx(truth_r2, abs=1e-3)
    # Its weights are nearly linear; R² on the edges tells it from a blend.
    assert rotating["edge_weight_r2"] < 0.96
    # Negative images are worse than no image.
    lowest = find_limits("edge_linear_r2").low
    assert lowest < below["edge_linear_r2"] < 0


def test_jump_in_the_gap(turning):
    rows = manifolds.measure_gap(turning)
    assert rows["stage_0"]["gap_max_speed"] == approx(1, abs=1e-2)
    assert rows["stage_1"]["gap_max_speed"] > 5


def test_metrics_without_a_meaning_are_absent(make_small, turning):
    of_one_factor = compute_metrics(turning)
    without_region = compute_metrics(make_small("truth", "--region=none"))

    for name in ("additive_share", "ratio_factorization", "faint_far_share"):
        assert name not in of_one_factor
    for name in ("alignment_factorized", "border_relative_mse", "edge_r2"):
        assert name not in without_region
    assert without_region["log_volume_sd_ood"] == [None]
    assert without_region["log_volume_sd"] != [None]


def test_a_diverged_model_gives_null(make_small):
    def diverge(dataset) -> np.ndarray:
        return np.nan * render_truth(dataset)

    study = make_small(diverge, stage_0=lambda f: np.nan * f)

    metrics = compute_metrics(study)

    for name in (
        "sharing_far_r2_centered",
        "interaction_r2_ood",
        "no_peak_ood",
        "multiple_peaks_ood",
        "peak_height_ood",
        "nearest_bump_share",
        "alignment_factorized",
        "alignment_additive_best",
        "border_rank_correlation",
    ):
        assert metrics[name] is None
    assert None in metrics["log_volume_sd"]
    assert None in metrics["log_volume_per_contrast_sd"]
    json.dumps(metrics, allow_nan=False)


def test_blank_outputs(make_small):
    metrics = compute_metrics(make_small("blank"))
    expected = {
        "sharing_near_r2_centered": None,
        "faint_near_share": 1,
        "no_peak_ood": 1,
        "multiple_peaks_ood": 0,
        "multiple_peaks_by_height_ood": [0] * len(scores.PEAK_HEIGHTS),
        "peak_height_ood": 0,
        "nearest_blank_share": 1,
        "bump_share": [None],
        "interaction_r2_ood": 0,
        "alignment_factorized": 0,
        "additive_share": [None],
    }
    assert metrics | expected == metrics
