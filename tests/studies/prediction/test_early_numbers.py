"""All early numbers at once: planted networks, and slow definitions."""

from pathlib import Path

import numpy as np
import pytest
from scipy import stats
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from tests.studies.prediction.planted import (
    Plant,
    plant,
    read_nothing,
    read_well,
)
from tfcomp.studies.prediction import early_numbers
from tfcomp.studies.prediction.early_numbers import (
    Features,
    Forecast,
    describe_trust,
    fit_ridges,
    judge_forecasts,
    permute,
)
from tfcomp.studies.prediction.report import list_baselines, write_report


@pytest.fixture(autouse=True)
def few_draws(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(early_numbers, "DRAWS", 80)
    monkeypatch.setattr(early_numbers, "PERMUTATIONS", 9)


def judge(read: Plant) -> dict:
    """Recorded networks, and fresh ones with another learning rate."""
    fresh = plant(read, rates=(2e-3, 5e-3), salt=11)
    features = Features(plant(read).join(fresh))
    assert list(features.groups)[:2] == ["cnn, corner:3", "cnn, square:1-2"]
    return judge_forecasts(features.forecast_fresh(), permute(features))


def test_a_number_that_knows_more_helps_and_noise_does_not() -> None:
    good, none = judge(read_well), judge(read_nothing)
    assert good["helps"] and good["spearman_gain_low"] > 0.3
    assert good["permuted_gain"] < 0.3
    assert not none["helps"] and none["spearman_gain_low"] < 0
    assert good["networks"] == 2 * 2 * 3 * 2 * 3


def test_numbers_that_see_held_out_points_are_not_used() -> None:
    """`all.peeks` is the outcome itself, and no help."""
    forecasts = Features(plant(read_nothing)).forecast_left_out()
    row = judge_forecasts(forecasts)
    assert row["spearman_gain"] < 0.15
    assert "helps" not in row  # there is no control


def test_a_setting_is_predicted_from_others_alone() -> None:
    """The outcomes of a setting change nothing in its own forecast."""
    features = Features(plant(read_well))
    before = features.forecast_left_out()[0]
    features.outcome[features.cells == before.cells[0]] += 100
    after = features.forecast_left_out()[0]
    own = before.cells == before.cells[0]
    np.testing.assert_allclose(after.table[own, 1:], before.table[own, 1:])
    assert abs(after.table[~own, 1:] - before.table[~own, 1:]).max() > 1


def test_ridges_are_those_of_scikit_learn(rng: np.random.Generator) -> None:
    x, y, new = (
        rng.normal(size=(30, 4)),
        rng.normal(size=30),
        rng.random((5, 4)),
    )
    penalties = np.array([0.1, 1.0])
    found = fit_ridges(x, y, new, penalties)
    for column, penalty in zip(found.T, penalties, strict=True):
        model = make_pipeline(StandardScaler(), Ridge(30 * penalty))
        np.testing.assert_allclose(column, model.fit(x, y).predict(new), 1e-6)


def test_scores_are_those_of_scipy(rng: np.random.Generator) -> None:
    tables = rng.normal(size=(3, 30, 3))
    forecasts = [Forecast("", np.arange(30), table) for table in tables]
    row = judge_forecasts(forecasts)
    expected = [stats.spearmanr(t[:, 2], t[:, 0]).statistic for t in tables]
    assert row["spearman_early"] == pytest.approx(np.mean(expected))
    rest = sum(((t[:, 1] - t[:, 0]) ** 2).sum() for t in tables)
    around = sum(((t[:, 0] - t[:, 0].mean()) ** 2).sum() for t in tables)
    assert row["r2_hyperparameters"] == pytest.approx(1 - rest / around)
    tau = stats.kendalltau(tables[0][:, 2], tables[0][:, 0]).statistic
    assert describe_trust(forecasts[0])["early"] == pytest.approx((1 + tau) / 2)


def test_baselines() -> None:
    networks = plant(read_nothing, seeds=2)
    networks.table["reached"] = networks.table["seed"] == "0"
    rows = {
        (row["what"], row["subject"]): row["number"]
        for row in list_baselines(networks)
    }
    assert rows["networks that missed the target", "cnn"] == 18
    assert rows["networks that are not trained yet", "the look at 5%"] == 1
    assert rows["networks that are not trained yet", "the look at 10%"] == 0
    met = networks.fitted
    model = met.table["model"].to_numpy()
    means = np.array([met.outcome[model == name].mean() for name in model])
    share = rows["share of the variance of the outcome", "decoder"]
    assert share == pytest.approx(means.var() / met.outcome.var())


def test_report_of_a_study_and_its_fresh_networks(tmp_path: Path) -> None:
    networks = plant(read_well)
    networks.table.loc[networks.table["seed"] == "2", "reached"] = False
    fresh = plant(read_well, rates=(2e-3, 5e-3), salt=11)
    lines = write_report(tmp_path, networks, fresh)
    cases = [line.split(":")[0] for line in lines if "Spearman" in line]
    # A third of the networks of every decoder missed the target.
    assert cases == [
        "early numbers, settings left out",
        "early numbers, given the ID error reached",
        "early numbers, fresh networks",
    ]
    assert any(line.endswith(": they help") for line in lines)
    assert sum("the better of two networks" in line for line in lines) == 4


def test_without_a_network_that_reached_the_target(tmp_path: Path) -> None:
    """Tables of another study that are in the folder are removed."""
    (tmp_path / "confirm.csv").write_text("measure,predicts\nother,True\n")
    lines = write_report(tmp_path, plant(read_well, reached=False))
    assert lines == ["no measure passes the rules"]
    assert list(tmp_path.iterdir()) == []


def test_a_study_that_is_too_small_has_no_groups(tmp_path: Path) -> None:
    lines = write_report(tmp_path, plant(read_well, rates=(1e-3,), seeds=2))
    assert not any("early numbers" in line for line in lines)
    assert not (tmp_path / "one_decoder.csv").exists()
