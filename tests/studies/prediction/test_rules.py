"""Planted cases, slow definitions, and the committed study."""

import itertools
import lzma
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from scipy import stats
from sklearn.linear_model import Ridge
from sklearn.model_selection import LeaveOneGroupOut, cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

from tests.studies.prediction.planted import make_networks, make_table
from tfcomp.config.errors import ConfigError
from tfcomp.storage.files import DamagedFileError
from tfcomp.studies.prediction import rules
from tfcomp.studies.prediction.command import main
from tfcomp.studies.prediction.early_numbers import Networks, read_networks
from tfcomp.studies.prediction.report import find_threshold
from tfcomp.studies.prediction.rules import Order, judge_numbers


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """Matrices are small: threads of a busy machine wait for each other."""
    with threadpool_limits(1):
        yield


GRID = {"model": "abcd", "width": "012", "rate": "01", "region": "012"}


def make_half(seed: int, sign: float = 1.0) -> tuple[Networks, np.ndarray]:
    """Errors that follow `width`, a hidden part, and the seed."""
    rng = np.random.default_rng(seed)
    table = make_table(GRID, seeds=3)
    width = table["width"].astype(float).to_numpy()
    hidden, noise = rng.normal(size=(2, len(table)))
    model = table["model"].map("abcd".index).to_numpy()
    outcome = 1.5 * width + 0.3 * model + hidden + 0.1 * noise
    planted = {
        "true": -hidden + 0.3 * rng.normal(size=len(table)),
        "width_only": width + 0.1 * rng.normal(size=len(table)),
        "null": rng.normal(size=len(table)),
        "id_relative_mse": 0.01 * rng.normal(size=len(table)),
    }
    numbers = {f"0.05|{n}": sign * values for n, values in planted.items()}
    return make_networks(table, outcome, numbers), hidden


def test_only_the_true_predictor_is_found() -> None:
    explored, confirmed = rules.judge_halves(make_half(0)[0], make_half(1)[0])
    first = {row["measure"]: row for row in explored}
    assert [name for name, row in first.items() if row["passes"]] == ["true"]
    assert first["true"]["sign"] == -1 and first["true"]["tau"] > 0.2
    # As high over all pairs, and nothing once its hyperparameter is shared.
    confounded = first["width_only"]
    assert confounded["tau_low"] > 0.2
    assert confounded["conditional_tau_low"] <= 0
    assert "width" in confounded["given"]
    second = {row["measure"]: row for row in confirmed}
    assert set(second) == set(first)
    for column in ("proposed", "predicts"):
        assert [n for n, row in second.items() if row[column]] == ["true"]


def test_a_sign_that_turns_is_no_prediction() -> None:
    other, _ = make_half(1, sign=-1.0)
    rows = judge_numbers(other, ["0.05|true"], {"0.05|true": -1.0})
    assert not rows["0.05|true"]["passes"]


def test_intervals_hold_under_a_null() -> None:
    order, held = Order(make_half(0)[0]), []
    for seed in range(100):
        values = np.random.default_rng(seed).normal(size=216)
        low, high = rules.compute_interval(order.compute_taus(values)[()])
        held.append(low <= 0 <= high)
    assert stats.binomtest(sum(held), 100, 0.95).pvalue > 0.01


def test_taus_pair_by_pair() -> None:
    """Tau by what pairs share, of some networks, against loops."""
    networks, hidden = make_half(3)
    keep = np.arange(216) % 5 == 0
    networks, values = networks.select(keep), hidden[keep]
    found = Order(networks).compute_taus(values)
    assert len(found) == 1 + 4 + 6
    settings = networks.table[list(GRID)].to_numpy()
    outcome, expected = networks.outcome, {}
    for shared in found:
        columns = [list(GRID).index(name) for name in shared]
        signs = [
            np.sign((values[i] - values[j]) * (outcome[i] - outcome[j]))
            for i, j in itertools.combinations(range(len(values)), 2)
            if (settings[i, columns] == settings[j, columns]).all()
        ]
        if signs:
            expected[shared] = np.mean(signs)
    assert {k: v[0] for k, v in found.items()} == pytest.approx(expected)
    kept = Order(networks).left_in[3]  # without a block
    for place, rows in ((0, slice(None)), (3, kept)):
        tau = stats.kendalltau(values[rows], outcome[rows]).statistic
        assert found[()][place] == pytest.approx(tau)


def test_transfer_agrees_with_scikit_learn() -> None:
    """With a column of noise, so that no two predictions are equal."""
    networks, hidden = make_half(5)
    features = np.column_stack([rules.make_features(networks), hidden])
    found = Order(networks).compute_transfer(features)
    groups = networks.table["model"].to_numpy()
    model = make_pipeline(StandardScaler(), Ridge(rules.RIDGE[0] * 162))
    predicted = cross_val_predict(
        model, features, networks.outcome, groups=groups, cv=LeaveOneGroupOut()
    )
    taus = [
        stats.kendalltau(predicted[rows], networks.outcome[rows]).statistic
        for rows in (groups == name for name in "abcd")
    ]
    assert found[0] == pytest.approx(np.mean(taus))


def test_power_rises_and_noise_is_not_seen(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(rules, "DRAWS", 2)
    monkeypatch.setattr(rules, "STRENGTHS", (0.0, 0.95))
    rows = rules.measure_power([make_half(i)[0] for i in (0, 1)], 1)
    assert [row["found"] for row in rows] == [0.0, 1.0]
    assert rows[1]["spearman"] == pytest.approx(0.95, abs=0.05)
    threshold = find_threshold(rows)
    assert threshold is not None and 0 < threshold < 0.95
    assert find_threshold(rows[:1]) is None


DOCS = Path(__file__).parents[3] / "docs"
# Of 460 numbers, those that the page speaks of most. The exploring half has
# proposed the last one alone.
KEYS = [
    "0.1|id.factorization.last",
    "0.25|id_relative_mse",
    "1|all.alignment_radial",
]


def test_page_shows_what_the_networks_give() -> None:
    study = read_networks(DOCS / "predict_evidence/networks.csv.xz")
    assert len(study.table) == 1152 and study.table["reached"].sum() == 1046
    names = study.hyperparameters
    assert names[0] == "model" and names[-1] == "region" and len(names) == 7
    explored, half = map(study.get_half, ("explore", "confirm"))
    assert (len(explored.table), len(half.table)) == (508, 538)
    assert len(explored.list_numbers()) == 460
    page = (DOCS / "predict.md").read_text("utf-8").replace("−", "-")
    first = judge_numbers(explored, KEYS)
    rows = list(first.values())
    assert [row["passes"] for row in rows] == [False, False, True]
    signs = {key: row["sign"] for key, row in first.items()}
    for row in rows + [*judge_numbers(half, KEYS, signs, KEYS[2:]).values()]:
        for name in ("tau", "conditional_tau", "gain"):
            ends = (row[f"{name}{end}"] for end in ("", "_low", "_high"))
            tau, low, high = (f"{end:.2f}".replace("0.", ".") for end in ends)
            assert f"{tau} [{low}, {high}]" in page


def test_mistakes_are_one_line(tmp_path: Path) -> None:
    path = tmp_path / "networks.csv.xz"
    head = "half,model,region,seed,reached,id_relative_mse,ood_relative_mse\n"
    lacking = head + "explore,cnn,x,0,True,.1,\n"
    half = f"{head}explore,cnn,x,0,True,.1,1\nexplore,mlp,x,0,True,.1,1\n"
    path.write_bytes(lzma.compress(half.encode()))
    with pytest.raises(ConfigError, match="two decoders in each half"):
        main(["prediction", f"--runs={tmp_path}", f"--output={tmp_path}/new"])
    cut = "", "half,model\n", "half,model,seed\nexplore,cnn,0\n", lacking
    for text in cut:
        path.write_bytes(lzma.compress(text.encode()))
        with pytest.raises(DamagedFileError, match="networks.csv"):
            read_networks(path)
    output = f"--output={tmp_path / 'new'}"
    with pytest.raises(ConfigError, match="--runs must name"):
        main(["prediction", output])
    with pytest.raises(ConfigError, match="one prediction study, not 2"):
        main(["prediction", output, f"--runs={DOCS}"])
    assert not (tmp_path / "new").exists()
