"""Metrics of models whose answer is known."""

import json
import math
from collections.abc import Callable

import keras
import numpy as np
import pytest

from tests.metrics.conftest import draw_truth
from tfcomp.metrics import (
    distances,
    geometry,
    interpolation,
    manifolds,
    scores,
    superposition,
)
from tfcomp.metrics.registry import find_limits, list_metrics
from tfcomp.metrics.run_analysis import RunAnalysis
from tfcomp.metrics.run_metrics import compute_metrics


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


@pytest.fixture(scope="module")
def true_study(make_study: Callable) -> RunAnalysis:
    """True images, and stages: even, growing, folded, with dead points."""
    stages = {"stage_0": lambda f: 3.0 * f, "stage_1": grow}
    return make_study("truth", **stages, stage_2=fold, stage_3=kill)


@pytest.fixture(scope="module")
def turning(make_turned: Callable) -> RunAnalysis:
    return make_turned("truth", stage_0=turn, stage_1=jump)


def test_border_of_fading_images(make_study, true_study) -> None:
    study = make_study("fading")
    fading = distances.measure_border(study)
    assert fading["border_rank_correlation"] > 0.95
    # The region is 10 wide: distances 1 to 5, of images 1/6 fainter each.
    expected = (np.arange(1, 6) / 6) ** 2
    assert fading["border_relative_mse"] == pytest.approx(expected, rel=1e-4)
    # No error at all has no ranks.
    perfect = distances.measure_border(true_study)
    assert perfect["border_rank_correlation"] is None
    assert perfect["border_relative_mse"] == pytest.approx([0] * 5, abs=1e-9)
    study.border_distance[study.border_distance == 2] = 1  # none is that far
    lacks = distances.measure_border(study)["border_relative_mse"]
    assert lacks[1] is None and lacks[2:] == fading["border_relative_mse"][2:]
    # The ID points of a sample are few, and far from each other.
    few = study.for_explorer(40)
    expected = few.border_distance[few.splits.is_ood]
    np.testing.assert_array_equal(few.superposition.distance, expected)


def test_spread_of_log_volumes(true_study) -> None:
    x, is_ood = true_study.splits.grid[:, 0], true_study.splits.is_ood
    found = geometry.measure_volume_spread(true_study)
    even, growing, folded, dying = (found[f"stage_{i}"] for i in range(4))
    for name, rows in (("", slice(None)), ("_id", ~is_ood), ("_ood", is_ood)):
        key, spread = f"log_volume_sd{name}", x[rows].std() / 4
        assert even[key] == pytest.approx(0, abs=1e-5)
        assert growing[key] == pytest.approx(spread, rel=1e-4)
    difference = (x[is_ood].mean() - x[~is_ood].mean()) / 4
    expected = pytest.approx(difference, abs=1e-5)
    assert growing["log_volume_difference"] == expected
    volume = np.log(np.abs(x - 7.5))
    distance = np.abs(volume - np.median(volume[~is_ood]))
    for name, rows in (("ood", is_ood), ("id", ~is_ood)):
        key = f"log_volume_deviation_{name}"
        assert even[key] == pytest.approx(0, abs=1e-5)
        assert folded[key] == pytest.approx(distance[rows].mean(), rel=1e-4)
    # Few dead points move the mean and not the median.
    assert dying["floor_fraction_ood"] > 0 == dying["floor_fraction_id"]
    assert dying["log_volume_deviation_ood"] > 0.1
    median = dying["log_volume_median_deviation_ood"]
    assert median == pytest.approx(0, abs=1e-5)


def test_geometry_and_probes_as_published(make_study) -> None:
    """By differences per step, which for a linear stage are exact."""
    study = make_study("truth", stage_0=lambda f: f @ [[3.0, 4.0], [0.0, 5.0]])
    found = compute_metrics(study)
    stage = study.stages.index("stage_0")
    row = {
        name: values[stage]
        for name, values in found.items()
        if isinstance(values, list) and len(values) == len(study.stages)
    }
    score = 1 - 20 / 50  # of g = [[25, 20], [20, 25]]
    for name in ("gradient", "gradient_ratio_of_means"):
        assert row[f"factorization_{name}"] == pytest.approx(score)
    for name in ("id", "ood"):
        volume = row[f"log_volume_gradient_{name}"]
        assert volume == pytest.approx(math.log(15))
        deviation = row[f"log_volume_gradient_median_deviation_{name}"]
        assert deviation == pytest.approx(0, abs=1e-6)
    assert row["log_volume_gradient_sd"] == pytest.approx(0, abs=1e-6)
    assert row["probe_r2_fitted"] == pytest.approx(1)
    # A bump on 16 x 16 pixels, and a product of a kernel of x and one of y.
    assert found["interaction_amplitude_ood"] == pytest.approx(1)
    assert 0.5 < found["interaction_truth_variance_ood"] < 0.8
    assert found["schmidt_centered_explained_1"] > 0.9
    # All names are declared, and all values are plain.
    declared = {m.name for m in list_metrics("stages", "run", "stage")}
    assert found.keys() - {"stages"} <= declared
    for value in found.values():
        for item in value if isinstance(value, list) else [value]:
            assert item is None or isinstance(item, str) or math.isfinite(item)


def test_sharing_and_peaks(make_study) -> None:
    flags = ("--grid_size=20", "--region=square:4-15")
    two, truth = (
        make_study(name, *flags) for name in ("two memories", "truth")
    )
    found = superposition.measure_sharing(two)
    assert found["sharing_far_r2"] == pytest.approx(1)
    assert found["sharing_far_r2_centered"] == pytest.approx(1)
    assert found["rival_far_r2"] < 0 < found["single_far_r2"] < 0.7
    bright = two.bright_outputs
    is_ood = two.splits.is_ood[:, None]
    vars(two)["bright_outputs"] = np.where(is_ood, 2e-3 * bright, bright)
    faint = superposition.measure_sharing(two)
    assert faint["sharing_far_r2"] is None and faint["faint_far_share"] == 1
    assert superposition.measure_sharing(truth)["sharing_far_r2"] < 0
    peaks = scores.measure_peaks(two)
    assert peaks["multiple_peaks_ood"] > 0.8 and peaks["multiple_peaks_id"] == 0
    assert scores.measure_peaks(truth)["multiple_peaks_ood"] == 0


def test_interpolation_of_edges(make_turned, turning) -> None:
    found = interpolation.measure_interpolation(make_turned("interpolated"))
    for name in ("edge_r2", "edge_r2_min", "edge_linear_r2"):
        assert found[name] == pytest.approx(1, abs=1e-4)
    assert 0 < found["edge_truth_r2"] < 0.9
    assert found["edge_weight_r2"] == pytest.approx(1, abs=1e-3)
    # A network that turns the digit scores what the true images score.
    rotating = interpolation.measure_interpolation(turning)
    expected = pytest.approx(found["edge_truth_r2"], abs=1e-3)
    assert rotating["edge_r2"] == expected
    # Its weights are nearly linear; R² on the edges tells it from a blend.
    assert rotating["edge_weight_r2"] < 0.96
    # Negative images are worse than no image.
    negative = make_turned(lambda data: -draw_truth(data))
    below = interpolation.measure_interpolation(negative)["edge_linear_r2"]
    assert find_limits("edge_linear_r2").low < below < 0


def test_jump_in_the_gap(turning) -> None:
    rows = manifolds.measure_gap(turning)
    assert rows["stage_0"]["gap_max_speed"] == pytest.approx(1, abs=1e-2)
    assert rows["stage_1"]["gap_max_speed"] > 5
    assert {
        "sharing_near_r2",
        "additive_share",
        "ratio_factorization",
    }.isdisjoint(compute_metrics(turning))


def test_metrics_without_a_meaning_are_absent(make_study) -> None:
    found = compute_metrics(make_study("truth", "--region=none"))
    absent = {"sharing_near_r2", "alignment_factorized"}
    absent |= {"border_rank_correlation", "edge_r2"}
    assert absent.isdisjoint(found)
    assert found["log_volume_sd_ood"] == [None]
    assert found["log_volume_sd"] != [None]


def test_a_diverged_model_gives_null(make_study) -> None:
    def diverge(dataset) -> np.ndarray:
        return np.full((len(dataset.splits.grid), *dataset.image_shape), np.nan)

    study = make_study(diverge, stage_0=lambda f: f * np.nan)
    found = compute_metrics(study)
    for name in (
        "sharing_far_r2",
        "interaction_r2_ood",
        "no_peak_ood",
        "multiple_peaks_ood",
        "alignment_factorized",
        "alignment_additive_best",
        "border_rank_correlation",
    ):
        assert found[name] is None
    assert found["log_volume_sd"][study.stages.index("stage_0")] is None
    json.dumps(found, allow_nan=False)


def test_blank_outputs(make_study) -> None:
    found = compute_metrics(make_study("blank"))
    assert found["sharing_near_r2"] is found["sharing_far_r2"] is None
    assert found["faint_near_share"] == found["no_peak_ood"] == 1
    assert found["interaction_r2_ood"] == found["multiple_peaks_ood"] == 0
    assert found["alignment_factorized"] == 0
    assert found["additive_share"] == [None]
