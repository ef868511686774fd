"""All early numbers at once: planted networks, and the printed restatement."""

import itertools
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from tfcomp.studies.prediction import judgement, one_decoder
from tfcomp.studies.prediction.command import describe_answer
from tfcomp.studies.prediction.design import Cell, Found
from tfcomp.studies.prediction.evidence import make_evidence
from tfcomp.studies.prediction.forecast_report import (
    describe_forecasts,
    list_baselines,
    write_forecasts,
)
from tfcomp.studies.prediction.judgement import find_threshold, measure_power
from tfcomp.studies.prediction.one_decoder import (
    Forecast,
    describe_trust,
    forecast_fresh,
    forecast_left_out,
    judge_forecasts,
    make_groups,
)
from tfcomp.studies.prediction.predict_report import write_report

AXES = ["model", "region", "depth", "rate"]
TUPLES = [(name,) for name in AXES]
# Of a network: its outcome, and the number that is read off early.
Plant = Callable[[float, np.random.Generator], float]


def make_networks(
    plant: Plant, seeds: Sequence[int], rates: Sequence[float]
) -> list[Found]:
    """Networks whose outcome has a part that no hyperparameter knows."""
    rng = np.random.default_rng(seeds[0])
    found = []
    for model, region, depth, rate in itertools.product(
        ("cnn", "mlp"), ("square:1-2", "corner:3"), (2, 3, 4), rates
    ):
        values = (model, region, depth, rate)
        cell = Cell(dict(zip(AXES, values, strict=True)), None, ())
        for seed in seeds:
            hidden = rng.normal()
            log_error = 0.3 * depth + hidden + (region == "corner:3")
            record = {
                "reached": seed != 7,
                "id_relative_mse": 0.05 + 0.01 * rng.random(),
                "ood_relative_mse": float(10**log_error),
                "measures": make_measures(plant(hidden, rng), rng),
            }
            found.append(Found(cell, seed, record, ""))
    return found


def make_measures(planted: float, rng: np.random.Generator) -> dict:
    looks = ("0", "0.05", "0.1", "0.25", "1")
    return {
        time: {
            "share": 0.0 if time in looks[:2] else float(time),
            "id.planted": planted if time == "0.1" else rng.normal(),
            "id.noise": rng.normal(),
            "all.peeks": planted,
            "id_relative_mse": float(np.exp(rng.normal())),
        }
        for time in looks
    }


def read_well(hidden: float, rng: np.random.Generator) -> float:
    return hidden + 0.3 * rng.normal()


def read_nothing(hidden: float, rng: np.random.Generator) -> float:
    return rng.normal()


def judge(plant: Plant) -> dict:
    """Recorded networks, and fresh ones with another learning rate."""
    old = make_networks(plant, (1, 2, 3), (1e-3, 3e-3, 1e-2))
    fresh = make_networks(plant, (11, 12, 13), (2e-3, 5e-3))
    groups = make_groups([*old, *fresh], AXES)
    assert [g.name for g in groups][:2] == ["cnn, corner:3", "cnn, square:1-2"]
    pairs = [
        (g.take(g.index < len(old)), g.take(g.index >= len(old)))
        for g in groups
    ]
    rng = np.random.default_rng(0)
    others = [
        [forecast_fresh(a.permute(rng), b.permute(rng)) for a, b in pairs]
        for _ in range(9)
    ]
    return judge_forecasts([forecast_fresh(*pair) for pair in pairs], others)


@pytest.fixture(autouse=True)
def few_draws(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(one_decoder, "DRAWS", 80)
    monkeypatch.setattr(one_decoder, "PERMUTATIONS", 5)
    monkeypatch.setattr(judgement, "DRAWS", 4)


def test_a_number_that_knows_more_helps_and_noise_does_not() -> None:
    good, none = judge(read_well), judge(read_nothing)
    assert good["helps"] and good["spearman_gain_low"] > 0.3
    assert good["permuted_gain"] < 0.3
    assert not none["helps"] and none["spearman_gain_low"] < 0
    assert good["networks"] == 2 * 2 * 3 * 2 * 3


def test_peeking_numbers_are_not_used() -> None:
    """`all.` looks at held-out combinations: outcome itself, and no help."""
    found = make_networks(read_nothing, (1, 2, 3), (1e-3, 3e-3, 1e-2))
    for each in found:
        for look in each.record["measures"].values():
            look["all.peeks"] = np.log10(each.record["ood_relative_mse"])
    forecasts = [forecast_left_out(group) for group in make_groups(found, AXES)]
    assert judge_forecasts(forecasts)["spearman_gain"] < 0.15


def test_without_a_control_there_is_no_verdict() -> None:
    found = make_networks(read_well, (1, 2, 3), (1e-3, 3e-3, 1e-2))
    forecasts = [forecast_left_out(group) for group in make_groups(found, AXES)]
    row = judge_forecasts(forecasts)
    assert row["spearman_gain"] > 0.3 and "helps" not in row


def test_a_setting_is_predicted_from_others_alone() -> None:
    """The outcomes of a setting change nothing in its own forecast."""
    found = make_networks(read_well, (1, 2), (1e-3, 3e-3, 1e-2))
    group = make_groups(found, AXES)[0]
    before = forecast_left_out(group)
    group.outcome[group.cells == group.cells[0]] += 100
    after = forecast_left_out(group)
    own = group.cells == group.cells[0]
    np.testing.assert_allclose(after.early[own], before.early[own])
    assert abs(after.early[~own] - before.early[~own]).max() > 1


def test_scores_are_those_of_scipy(rng: np.random.Generator) -> None:
    forecasts = [
        Forecast("", *rng.normal(size=(1, 30)), np.arange(30), *other)
        for other in rng.normal(size=(3, 2, 30))
    ]
    row = judge_forecasts(forecasts)
    expected = [
        stats.spearmanr(f.early, f.outcome).statistic for f in forecasts
    ]
    assert row["spearman_early"] == pytest.approx(np.mean(expected))
    rest = sum(((f.known - f.outcome) ** 2).sum() for f in forecasts)
    around = sum(((f.outcome - f.outcome.mean()) ** 2).sum() for f in forecasts)
    assert row["r2_hyperparameters"] == pytest.approx(1 - rest / around)
    tau = stats.kendalltau(forecasts[0].early, forecasts[0].outcome).statistic
    assert describe_trust(forecasts[0])["early"] == pytest.approx((1 + tau) / 2)


def test_power_rises_and_noise_is_not_seen() -> None:
    found = make_networks(read_nothing, range(20, 26), (1e-3, 3e-3, 1e-2))
    halves = {
        half: make_evidence(found, TUPLES) for half in ("explore", "confirm")
    }
    rows = measure_power(halves, 1, (0.0, 0.95))
    assert [row["found"] for row in rows] == [0.0, 1.0]
    assert rows[1]["spearman"] == pytest.approx(0.95, abs=0.05)
    assert 0 < find_threshold(rows) < 0.95
    assert find_threshold(rows[:1]) is None


def test_baselines() -> None:
    found = make_networks(read_nothing, (6, 7), (1e-3, 3e-3))
    rows = {
        (r["what"], r["subject"]): r["number"]
        for r in list_baselines(found, TUPLES)
    }
    assert rows["networks that missed the target", "cnn"] == 12
    assert rows["networks that are not trained yet", "the look at 5%"] == 1
    assert rows["networks that are not trained yet", "the look at 10%"] == 0
    met = [each for each in found if each.record["reached"]]
    table = np.log10([each.record["ood_relative_mse"] for each in met])
    model = np.array([each.cell.setting["model"] for each in met])
    means = np.array([table[model == m].mean() for m in model])
    share = rows["share of the variance of the outcome", "decoder"]
    assert share == pytest.approx(means.var() / table.var())


def test_report_of_a_study_and_its_fresh_networks(tmp_path) -> None:
    old = make_networks(read_well, (1, 2, 7), (1e-3, 3e-3, 1e-2))
    fresh = make_networks(read_well, (11, 12), (2e-3, 5e-3))
    write_forecasts(tmp_path, old, TUPLES, fresh)
    lines = describe_forecasts(tmp_path)
    # A third of the networks of every decoder missed the target.
    assert [line.split(":")[0] for line in lines[:3]] == [
        "early numbers, settings left out",
        "early numbers, given the ID error reached",
        "early numbers, fresh networks",
    ]
    assert lines[2].endswith(": they help")
    assert sum("the better of two networks" in line for line in lines) == 4
    assert "cnn, corner:3" in lines[3]


def test_without_a_network_that_met_the_target_nothing_is_said(
    tmp_path: Path,
) -> None:
    """Tables of another study in the folder are none of this one."""
    (tmp_path / "confirm.csv").write_text("measure,predicts\nother,True\n")
    write_report(tmp_path, make_networks(read_well, (7,), (1e-3, 3e-3)), TUPLES)
    assert not (tmp_path / "confirm.csv").exists()
    assert not (tmp_path / "baselines.csv").exists()
    for confirm in (False, True):
        found = describe_answer(tmp_path, confirm)
        assert found == ["no measure passes the rules"]


def test_a_study_that_is_too_small_says_nothing(tmp_path) -> None:
    found = make_networks(read_well, (1,), (1e-3,))
    write_forecasts(tmp_path, found, TUPLES)
    assert [path.name for path in tmp_path.iterdir()] == ["baselines.csv"]
    assert describe_forecasts(tmp_path) == []
