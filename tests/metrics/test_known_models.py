"""Metrics of models whose answer is known."""

import json

import keras
import numpy as np
import pytest
from pytest import approx

from tests.metrics.conftest import render_truth
from tfcomp.metrics import geometry, interpolation, manifolds, references
from tfcomp.metrics.registry import find_limits, list_metrics
from tfcomp.metrics.run_analysis import RunAnalysis, compute_metrics

pytestmark = pytest.mark.usefixtures("untraced")


def grow(f):
    return keras.ops.stack([4 * keras.ops.exp(f[:, 0] / 4), f[:, 1]], axis=1)


def fold(f):  # in the middle of the region
    return keras.ops.stack([(f[:, 0] - 7.5) ** 2 / 2, f[:, 1]], axis=1)


def kill(f):
    is_dead = (f[:, 0] == 7) & (keras.ops.abs(f[:, 1] - 8) < 2)
    return keras.ops.where(is_dead[:, None], 0.0, 3.0 * f)


def turn(factors):
    angle = factors * np.pi / 180
    circle = [keras.ops.cos(angle), keras.ops.sin(angle)]
    return keras.ops.concatenate(circle, axis=1)


def jump(factors):  # to the other side and back, within the gap
    up = keras.ops.sigmoid(4.0 * (factors - 170.0))
    down = keras.ops.sigmoid(4.0 * (factors - 190.0))
    return keras.ops.concatenate([turn(factors), up - down], axis=1)


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


def test_border_of_fading_images(make_study, true_study) -> None:
    study = make_study("fading")

    fading = references.measure_border(study)

    assert fading["border_rank_correlation"] > 0.95
    # The region is 10 wide: distances 1 to 5, of images 1/6 fainter each.
    expected = (np.arange(1, 6) / 6) ** 2
    assert fading["border_relative_mse"] == approx(expected, rel=1e-4)

    # No error at all has no ranks.
    perfect = references.measure_border(true_study)
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


def test_spread_of_log_volumes(true_study) -> None:
    x = true_study.splits.grid[:, 0]
    is_ood = true_study.splits.is_ood
    rows = geometry.measure_volume_spread(true_study)
    subsets = {
        "": slice(None),
        "_id": ~is_ood,
        "_ood": is_ood,
    }
    for name, points in subsets.items():
        spread = approx(x[points].std() / 4, rel=1e-4)
        assert rows[GROWING][f"log_volume_sd{name}"] == spread
        even = rows[EVEN][f"log_volume_sd{name}"]
        assert even == approx(0, abs=1e-5)
    difference = (x[is_ood].mean() - x[~is_ood].mean()) / 4
    value = rows[GROWING]["log_volume_difference"]
    assert value == approx(difference, abs=1e-5)

    volume = np.log(np.abs(x - 7.5))
    distance = np.abs(volume - np.median(volume[~is_ood]))
    for name in ("id", "ood"):
        key = f"log_volume_median_deviation_{name}"
        median = np.median(distance[subsets[f"_{name}"]])
        assert rows[FOLDED][key] == approx(median, rel=1e-4)
        # Few dead points do not move it.
        assert rows[DYING][key] == approx(0, abs=1e-5)
    assert rows[DYING]["log_volume_sd_ood"] > 0.1
    assert rows[DYING]["floor_fraction_ood"] > 0
    assert rows[DYING]["floor_fraction_id"] == 0


def test_the_published_factorization(make_study) -> None:
    """By differences per step, which for a linear stage are exact."""
    study = make_study("truth", stage_0=lambda f: f @ [[3.0, 4.0], [0.0, 5.0]])
    metrics = compute_metrics(study)
    stage = study.stages.index("stage_0")
    score = metrics["factorization_gradient_ratio_of_means"][stage]

    assert score == approx(1 - 20 / 50)  # of g = [[25, 20], [20, 25]]
    # A product of a kernel of x and one of y.
    assert metrics["schmidt_centered_explained_1"] > 0.9

    # All names are declared, and all values are plain.
    declared = {m.name for m in list_metrics("stages", "run", "stage")}
    assert metrics.keys() - {"stages"} <= declared

    json.dumps(metrics, allow_nan=False)


def test_factors_in_other_units(make_study) -> None:
    """Equation 7 of a stage with one factor counted in hundredths."""

    def merge(f):
        return keras.ops.stack([f @ [[100.0], [1.0]]], 1)

    rows = geometry.measure_orthogonality(make_study("truth", stage_0=merge))
    assert rows["stage_0"]["factorization"] > 0.98
    assert rows["stage_0"]["worst_pair_factorization"] == approx(0)
    assert rows["stage_0"]["chance_factorization"] == 0
    assert rows["image"]["chance_factorization"] > 0.9


def test_interpolation_of_edges(make_turned, turning) -> None:
    study = make_turned("interpolated")
    numbers = interpolation.measure_interpolation(study)
    for name in ("edge_r2", "edge_r2_min", "edge_linear_r2", "edge_weight_r2"):
        assert numbers[name] == approx(1, abs=1e-3)
    truth_r2 = numbers["edge_truth_r2"]

    assert 0 < truth_r2 < 0.9

    # A network that turns the digit scores what the true images score.
    rotating = interpolation.measure_interpolation(turning)
    assert rotating["edge_r2"] == approx(truth_r2, abs=1e-3)
    # Its weights are nearly linear; R² on the edges tells it from a blend.
    assert rotating["edge_weight_r2"] < 0.96

    # Negative images are worse than no image.
    negative = make_turned(lambda dataset: -render_truth(dataset))
    below = interpolation.measure_interpolation(negative)["edge_linear_r2"]
    assert find_limits("edge_linear_r2").low < below < 0


def test_jump_in_the_gap(turning) -> None:
    rows = manifolds.measure_gap(turning)
    assert rows["stage_0"]["gap_max_speed"] == approx(1, abs=1e-2)
    assert rows["stage_1"]["gap_max_speed"] > 5


def test_metrics_without_a_meaning_are_absent(make_study, turning) -> None:
    metrics = compute_metrics(turning)  # of one factor
    for name in ("additive_share", "ratio_factorization", "faint_far_share"):
        assert name not in metrics
    metrics = compute_metrics(make_study("truth", "--region=none"))
    for name in ("alignment_factorized", "border_relative_mse", "edge_r2"):
        assert name not in metrics

    assert metrics["log_volume_sd_ood"] == [None]
    assert metrics["log_volume_sd"] != [None]


def test_a_diverged_model_gives_null(make_study) -> None:
    def diverge(dataset) -> np.ndarray:
        return np.full((len(dataset.splits.grid), *dataset.image_shape), np.nan)

    metrics = compute_metrics(make_study(diverge, stage_0=lambda f: f * np.nan))
    for name in (
        "sharing_far_r2_centered",
        "interaction_r2_ood",
        "no_peak_ood",
        "multiple_peaks_ood",
        "alignment_factorized",
        "alignment_additive_best",
        "border_rank_correlation",
    ):
        assert metrics[name] is None
    assert None in metrics["log_volume_sd"]
    assert None in metrics["log_volume_per_contrast_sd"]
    json.dumps(metrics, allow_nan=False)


def test_blank_outputs(make_study) -> None:
    metrics = compute_metrics(make_study("blank"))
    expected = {
        "sharing_near_r2_centered": None,
        "faint_near_share": 1,
        "no_peak_ood": 1,
        "multiple_peaks_ood": 0,
        "interaction_r2_ood": 0,
        "alignment_factorized": 0,
        "additive_share": [None],
    }
    assert {name: metrics[name] for name in expected} == expected
