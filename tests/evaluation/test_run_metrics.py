"""Every measure on models whose answer is known."""

import json
import math

import keras
import numpy as np
import pytest

from tfcomp.evaluation import (
    geometry_metrics,
    image_metrics,
    run_metrics,
    stage_metrics,
)
from tfcomp.evaluation.metrics import list_metrics


def by_stage(study, values: list[float]) -> dict[str, float]:
    return dict(zip(study.stages, values, strict=True))


def test_border_of_fading_images(make_study) -> None:
    fading = image_metrics.compute_border(make_study("fading"))
    assert fading["border_rank_correlation"] > 0.95
    # The region is 10 wide: distances 1 to 5, of images 1/6 fainter each.
    expected = (np.arange(1, 6) / 6) ** 2
    assert fading["border_relative_mse"] == pytest.approx(expected, rel=1e-4)
    # No error at all has no ranks.
    perfect = image_metrics.compute_border(make_study("truth"))
    assert perfect["border_rank_correlation"] is None
    assert perfect["border_relative_mse"] == pytest.approx([0] * 5, abs=1e-9)


def test_log_volume(make_study) -> None:
    rate = 0.25
    study = make_study(
        "truth",
        stage_0=lambda f: 3.0 * f,
        stage_1=lambda f: keras.ops.stack(
            [keras.ops.exp(rate * f[:, 0]) / rate, f[:, 1]], axis=1
        ),
    )
    found = geometry_metrics.compute_volume_spread(study)
    even, growing = (study.stages.index(f"stage_{i}") for i in (0, 1))
    # The log-volume is rate * x: its spread is that of x, times the rate.
    x, is_ood = study.splits.grid[:, 0], study.splits.is_ood
    for name, rows in (("", slice(None)), ("_id", ~is_ood), ("_ood", is_ood)):
        sd = found[f"log_volume_sd{name}"]
        assert sd[even] == pytest.approx(0, abs=1e-5)
        assert sd[growing] == pytest.approx(rate * x[rows].std(), rel=1e-4)
    expected = rate * (x[is_ood].mean() - x[~is_ood].mean())
    difference = found["log_volume_difference"]
    assert difference[even] == pytest.approx(0, abs=1e-5)
    assert difference[growing] == pytest.approx(expected, abs=1e-5)


def test_folds_deviate_and_even_manifolds_do_not(make_study) -> None:
    # Folded along x = 7.5, in the middle of the region.
    study = make_study(
        "truth",
        stage_0=lambda f: 3.0 * f,
        stage_1=lambda f: keras.ops.stack(
            [keras.ops.square(f[:, 0] - 7.5) / 2, f[:, 1]], axis=1
        ),
    )
    found = geometry_metrics.compute_volume_spread(study)
    outside, within = (
        by_stage(study, found[f"log_volume_deviation_{name}"])
        for name in ("ood", "id")
    )
    assert outside["stage_0"] == pytest.approx(0, abs=1e-5)
    assert within["stage_0"] == pytest.approx(0, abs=1e-5)
    # log V = log |x - 7.5|.
    volume = np.log(np.abs(study.splits.grid[:, 0] - 7.5))
    is_ood = study.splits.is_ood
    distance = np.abs(volume - np.median(volume[~is_ood]))
    expected = distance[is_ood].mean()
    assert outside["stage_1"] == pytest.approx(expected, rel=1e-4)
    assert within["stage_1"] == pytest.approx(
        distance[~is_ood].mean(), rel=1e-4
    )
    assert outside["stage_1"] > within["stage_1"] + 0.1


def test_sharing_and_peaks(make_study) -> None:
    flags = ("--grid_size=20", "--region=square:4-15")
    two, truth = (
        make_study(name, *flags) for name in ("two memories", "truth")
    )
    found = image_metrics.compute_sharing(two) | image_metrics.compute_peaks(
        two
    )
    assert found["sharing_far_r2"] == pytest.approx(1)
    assert found["rival_far_r2"] < 0 < found["single_far_r2"] < 0.7
    assert found["multiple_peaks_ood"] > 0.8
    assert found["multiple_peaks_id"] == 0
    found = image_metrics.compute_sharing(truth) | image_metrics.compute_peaks(
        truth
    )
    assert found["sharing_far_r2"] < 0
    assert found["multiple_peaks_ood"] == 0


def test_probes_over_the_whole_grid(make_study) -> None:
    def shuffle(dataset) -> np.ndarray:
        rng = np.random.default_rng(0)
        images = dataset.render_array(dataset.splits.grid)
        return 1 - rng.permutation(images)

    study = make_study(shuffle, stage_0=lambda f: 3.0 * f)
    score = by_stage(
        study, stage_metrics.compute_grid_probes(study)["probe_r2_grid"]
    )
    assert score["stage_0"] == pytest.approx(1, abs=1e-3)
    assert score["image"] < 0.1
    study = make_study("truth")
    score = by_stage(
        study, stage_metrics.compute_grid_probes(study)["probe_r2_grid"]
    )
    assert score["image"] > 0.9


def test_interpolation_of_edges(make_turned) -> None:
    found = image_metrics.compute_interpolation(make_turned("interpolated"))
    for name in ("edge_r2", "edge_r2_min", "edge_linear_r2"):
        assert found[name] == pytest.approx(1, abs=1e-4)
    assert 0 < found["edge_truth_r2"] < 0.9
    # A network that turns the digit scores what the true images score.
    rotating = image_metrics.compute_interpolation(make_turned("truth"))
    expected = pytest.approx(found["edge_truth_r2"], abs=1e-3)
    assert rotating["edge_r2"] == expected


def test_error_curve(make_turned) -> None:
    study = make_turned("interpolated")
    found = image_metrics.compute_error_curve(study)
    values, error = map(np.array, (found["curve_values"], found["curve_mse"]))
    inside = (values >= 160) & (values <= 200)
    assert error[~inside].max() < 1e-9 < error[inside].min()
    correlation = image_metrics.compute_border(study)["border_rank_correlation"]
    assert correlation > 0.8  # the error rises towards the middle of the gap


def test_jump_in_the_gap(make_turned) -> None:
    def turn(factors):
        angle = factors * np.pi / 180
        circle = [keras.ops.cos(angle), keras.ops.sin(angle)]
        return keras.ops.concatenate(circle, axis=1)

    def jump(factors):  # to the other side and back, within the gap
        up = keras.ops.sigmoid(4.0 * (factors - 170.0))
        down = keras.ops.sigmoid(4.0 * (factors - 190.0))
        return keras.ops.concatenate([turn(factors), up - down], axis=1)

    study = make_turned("truth", stage_0=turn, stage_1=jump)
    speed = by_stage(study, stage_metrics.compute_gap(study)["gap_max_speed"])
    assert speed["stage_0"] == pytest.approx(1, abs=1e-2)
    assert speed["stage_1"] > 5


def test_measures_without_a_meaning_are_absent(make_study, make_turned) -> None:
    found = run_metrics.compute_metrics(make_study("truth", "--region=none"))
    absent = {"sharing_near_r2", "alignment_factorized"}
    absent |= {"border_rank_correlation", "edge_r2"}
    assert not absent & set(found)
    assert found["log_volume_sd_ood"] == [None]
    assert found["log_volume_sd"] != [None]
    turning = run_metrics.compute_metrics(make_turned("truth"))
    absent = {"sharing_near_r2", "additive_share", "ratio_factorization"}
    assert not absent & set(turning)
    assert len(turning["gap_max_speed"]) == len(turning["stages"])


def test_a_diverged_model_gives_null(make_study) -> None:
    def diverge(dataset) -> np.ndarray:
        return np.full((len(dataset.splits.grid), *dataset.image_shape), np.nan)

    study = make_study(diverge, stage_0=lambda f: f * np.nan)
    found = run_metrics.compute_metrics(study)
    for name in (
        "sharing_far_r2",
        "interaction_r2_ood",
        "no_peak_ood",
        "multiple_peaks_ood",
        "alignment_factorized",
        "alignment_additive_best",
    ):
        assert found[name] is None
    assert found["border_rank_correlation"] is None
    assert found["log_volume_sd"][study.stages.index("stage_0")] is None
    json.dumps(found, allow_nan=False)


def test_blank_outputs(make_study) -> None:
    found = run_metrics.compute_metrics(make_study("blank"))
    assert found["sharing_near_r2"] is found["sharing_far_r2"] is None
    assert found["faint_near_share"] == found["no_peak_ood"] == 1
    assert found["interaction_r2_ood"] == found["multiple_peaks_ood"] == 0
    assert found["alignment_factorized"] == 0
    assert found["additive_share"] == [None]


def test_names_are_unique_and_values_plain(make_study) -> None:
    study = make_study("superposed", stage_0=lambda f: f)
    declared = list_metrics("stages", "run")
    functions = dict.fromkeys(measure.function for measure in declared)
    names = [name for function in functions for name in function(study)]
    assert len(names) == len(set(names))
    for value in run_metrics.compute_metrics(study).values():
        for item in value if isinstance(value, list) else [value]:
            assert item is None or isinstance(item, str) or math.isfinite(item)


def test_few_dead_points_move_the_mean_and_not_the_median(make_study) -> None:
    def kill(f):
        is_dead = (f[:, 0] == 7) & (keras.ops.abs(f[:, 1] - 8) < 2)
        return keras.ops.where(is_dead[:, None], 0.0, 3.0 * f)

    study = make_study("truth", stage_0=kill)
    found = geometry_metrics.compute_volume_spread(study)
    dead, within, mean, median = (
        by_stage(study, found[name])["stage_0"]
        for name in (
            "floor_fraction_ood",
            "floor_fraction_id",
            "log_volume_deviation_ood",
            "log_volume_median_deviation_ood",
        )
    )
    assert dead > 0 == within
    assert mean > 0.1
    assert median == pytest.approx(0, abs=1e-5)
