"""All early numbers at once: planted networks, and slow definitions."""

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from tests.studies.prediction.planted import make_networks, make_table
from tfcomp.config.errors import RunError
from tfcomp.studies.prediction import early_numbers, rules
from tfcomp.studies.prediction.early_numbers import Group, Networks
from tfcomp.studies.prediction.report import judge_early_numbers, write_report

# The hidden part of an outcome to a number that is read off early.
Plant = Callable[[np.ndarray, np.random.Generator], np.ndarray]


def read_well(hidden: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    return hidden + 0.3 * rng.normal(size=len(hidden))


def read_nothing(hidden: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    return rng.normal(size=len(hidden))


def plant(
    read: Plant, rates: Sequence[float] = (1e-3, 3e-3, 1e-2), salt: int = 0
) -> Networks:
    """Returns networks of two decoders and regions."""
    rng = np.random.default_rng(salt)
    grid = {"model": ("cnn", "mlp"), "region": ("square:1-2", "corner:3")}
    table = make_table({**grid, "depth": (2, 3, 4), "rate": rates}, 3)
    table["half"] = table["seed"].map({"0": "confirm"}).fillna("explore")
    count = len(table)
    hidden = rng.normal(size=count)
    outcome = 0.3 * table["depth"].astype(float).to_numpy() + hidden
    outcome += table["region"] == "corner:3"
    numbers = {}
    for time in (0, 0.05, 0.1, 0.25, 1):
        numbers[f"{time}|id.noise"] = rng.normal(size=count)
        numbers[f"{time}|id_relative_mse"] = rng.normal(size=count)
        numbers[f"{time}|all.peeks"] = np.asarray(outcome)
        numbers[f"{time}|share"] = np.full(count, time * (time > 0.05))
    numbers["0.1|id.planted"] = read(hidden, rng)
    errors = 0.05 + 0.01 * rng.random(count)
    numbers["id_relative_mse"] = errors
    return make_networks(table, np.asarray(outcome), numbers)


@pytest.fixture(autouse=True)
def few_draws(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(early_numbers, "DRAWS", 80)
    monkeypatch.setattr(early_numbers, "PERMUTATIONS", 9)
    monkeypatch.setattr(rules, "DRAWS", 1)
    monkeypatch.setattr(rules, "STRENGTHS", (0.9,))


@pytest.mark.parametrize("read", [read_well, read_nothing])
def test_early_numbers_help_if_they_know_more(read: Plant) -> None:
    # Networks with other learning rates, which nothing was chosen on.
    new = plant(read, rates=(2e-3, 5e-3), salt=11)
    left_out, fresh = judge_early_numbers(plant(read), new)
    assert fresh["networks"] == 2 * 2 * 3 * 2 * 3
    assert fresh["helps"] is (read is read_well)
    assert fresh["permuted_gain"] < 0.3
    assert (fresh["spearman_gain_low"] > 0.3) is np.bool(read is read_well)
    # `all.peeks` is the outcome itself, and no help.
    assert (left_out["spearman_gain"] < 0.15) is np.bool(read is read_nothing)


def test_only_fresh_networks_count_as_fresh() -> None:
    """Of another decoder there are none, or no others to predict them from."""
    table = plant(read_nothing, rates=(2e-3, 5e-3), salt=11).table
    table = table[table["model"] == "cnn"].reset_index(drop=True)
    _, fresh = judge_early_numbers(plant(read_well), Networks(table))
    assert fresh["networks"] == len(table) and fresh["helps"] is False
    slots = table[table["region"] == "corner:3"].assign(model="slots")
    both = Networks(pd.concat([table, slots], ignore_index=True))
    again = judge_early_numbers(plant(read_well), both)[1]
    assert again["networks"] == len(table) and again["helps"] is False
    with pytest.raises(RunError, match="a decoder and region of --runs"):
        judge_early_numbers(plant(read_well), Networks(slots))


def test_tables_of_a_study(tmp_path: Path) -> None:
    lines = write_report(tmp_path, plant(read_well))
    assert lines[0].startswith("all.peeks at ") and "predicts" in lines[0]
    (line,) = [line for line in lines if line.startswith("early numbers")]
    assert not line.endswith("help")  # there is no control
    found = pd.read_csv(tmp_path / "baselines.csv").set_index("subject")
    networks = plant(read_well)
    model = networks.table["model"].to_numpy()
    means = [networks.outcome[model == name].mean() for name in model]
    share = np.var(means) / networks.outcome.var()
    assert found["number"]["decoder"] == pytest.approx(share)
    names = "explore confirm power baselines one_decoder"
    assert {p.stem for p in tmp_path.iterdir()} == set(names.split())


def test_a_setting_is_predicted_from_others_alone() -> None:
    """The outcomes of a setting change nothing in its own forecast."""
    group = early_numbers.list_groups(plant(read_well))["cnn, corner:3"]
    before, own = group.forecast(), group.cells == group.cells[0]
    group.outcome[own] += 100
    after = group.forecast()
    np.testing.assert_allclose(after[own, 1:], before[own, 1:])
    assert abs(after[~own, 1:] - before[~own, 1:]).max() > 1


def test_ridges_agree_with_scikit_learn(rng: np.random.Generator) -> None:
    x, y = rng.normal(size=(30, 4)), rng.normal(size=30)
    new, penalties = rng.random((5, 4)), np.array([0.1, 1.0])
    found = early_numbers.fit_ridges(x, y, new, penalties)
    for column, penalty in zip(found.T, penalties, strict=True):
        model = make_pipeline(StandardScaler(), Ridge(30 * penalty))
        np.testing.assert_allclose(column, model.fit(x, y).predict(new), 1e-6)


def test_scores_agree_with_scipy(rng: np.random.Generator) -> None:
    empty = np.empty(30)
    group = Group(empty, empty, empty, np.arange(30), np.zeros(30, bool))
    forecasts = {name: rng.normal(size=(30, 3)) for name in "abc"}
    row = early_numbers.judge_forecasts(forecasts, dict.fromkeys("abc", group))
    assert row["helps"] is None  # there is no control
    tables = forecasts.values()
    expected = [stats.spearmanr(t[:, 2], t[:, 0]).statistic for t in tables]
    assert row["spearman_early"] == pytest.approx(np.mean(expected))
    rest = sum(((t[:, 1] - t[:, 0]) ** 2).sum() for t in tables)
    around = sum(((t[:, 0] - t[:, 0].mean()) ** 2).sum() for t in tables)
    assert row["r2_hyperparameters"] == pytest.approx(1 - rest / around)
