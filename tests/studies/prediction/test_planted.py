"""Planted cases: what predicts is found, what only seems to is rejected."""

import itertools

import numpy as np
import pytest
from scipy import stats

from tfcomp.studies.prediction.design import HALVES
from tfcomp.studies.prediction.evidence import Evidence, Networks
from tfcomp.studies.prediction.pairs import (
    compare_orders,
    compute_conditional,
    compute_granulated,
    compute_information,
    compute_sign_error,
    list_given,
)
from tfcomp.studies.prediction.predict_report import judge_halves

LEVELS = {"model": 4, "width": 3, "rate": 2, "region": 3}
SEEDS = 3


def make_networks(rng: np.random.Generator) -> tuple[Networks, np.ndarray]:
    """Errors that follow `width`, something hidden, and the seed."""
    grid = list(itertools.product(*map(range, LEVELS.values())))
    table = np.repeat(np.array(grid), SEEDS, axis=0)
    hidden = rng.normal(size=len(table))
    seeds = 0.1 * rng.normal(size=len(table))
    outcome = 1.5 * table[:, 1] + 0.3 * table[:, 0] + hidden + seeds
    settings = dict(zip(LEVELS, table.T, strict=True))
    return Networks(outcome, settings, 0.1), hidden


def make_evidence(rng: np.random.Generator) -> Evidence:
    networks, hidden = make_networks(rng)
    count = len(hidden)
    planted = {
        "true": -hidden + 0.3 * rng.normal(size=count),
        "width_only": networks.settings["width"] + 0.1 * rng.normal(size=count),
        "null": rng.normal(size=count),
        "id_relative_mse": 0.01 * rng.normal(size=count),
    }
    measures = {(name, "0.05"): values for name, values in planted.items()}
    return Evidence(networks, measures, "model", list("abcd"))


def test_only_the_true_predictor_is_found() -> None:
    halves = {
        half: make_evidence(np.random.default_rng(i))
        for i, half in enumerate(HALVES)
    }
    tables = judge_halves(halves)
    first = {row["measure"]: row for row in tables["explore"]}
    assert [name for name, row in first.items() if row["passes"]] == ["true"]
    assert first["true"]["sign"] == -1 and first["true"]["tau"] > 0.2
    # As high over all pairs, and nothing once its hyperparameter is shared.
    confounded = first["width_only"]
    assert confounded["tau_low"] > 0.2
    assert confounded["conditional_tau_low"] <= 0
    assert "width" in confounded["given"]
    assert confounded["information"] < 0.01 < first["true"]["information"]
    second = {row["measure"]: row for row in tables["confirm"]}
    assert set(second) == set(first)
    for column in ("proposed", "predicts"):
        assert [n for n, row in second.items() if row[column]] == ["true"]


def test_a_sign_that_turns_is_no_prediction() -> None:
    first, second = (make_evidence(np.random.default_rng(i)) for i in range(2))
    turned = {key: -values for key, values in second.measures.items()}
    second = Evidence(second.networks, turned, "model", list("abcd"))
    tables = judge_halves(dict(zip(HALVES, (first, second), strict=True)))
    assert not any(row["predicts"] for row in tables["confirm"])


def test_intervals_hold_under_a_null() -> None:
    held = []
    for seed in range(200):
        rng = np.random.default_rng(seed)
        networks, _ = make_networks(rng)
        pairs = compare_orders(rng.normal(size=216), networks)
        low, high = pairs.average().get_interval()
        held.append(low <= 0 <= high)
    assert stats.binomtest(sum(held), 200, 0.95).pvalue > 0.01


def test_tau_is_kendalls(rng: np.random.Generator) -> None:
    networks, hidden = make_networks(rng)
    expected = stats.kendalltau(hidden, networks.outcome).statistic
    found = compare_orders(hidden, networks).average().value
    assert found == pytest.approx(expected)


def test_pairs_one_by_one(rng: np.random.Generator) -> None:
    """Every statistic against loops over pairs."""
    networks, hidden = make_networks(rng)
    settings = np.column_stack(list(networks.settings.values()))
    names = list(networks.settings)
    pairs = list(itertools.combinations(range(0, 216, 5), 2))
    keep = np.zeros(216, bool)
    keep[::5] = True
    part = Networks(
        networks.outcome[keep],
        {name: v[keep] for name, v in networks.settings.items()},
        0.1,
    )
    measure = hidden[keep]

    def agree(i: int, j: int) -> float:
        return np.sign(hidden[i] - hidden[j]) * np.sign(
            networks.outcome[i] - networks.outcome[j]
        )

    compared = compare_orders(measure, part)
    lines = compute_granulated(compared)
    errors = compute_sign_error(compared)
    for column, name in enumerate(names):
        own = [
            (i, j)
            for i, j in pairs
            if np.flatnonzero(settings[i] != settings[j]).tolist() == [column]
        ]
        agreed = [agree(i, j) for i, j in own]
        assert lines[name].value == pytest.approx(np.mean(agreed))
        gaps = [abs(networks.outcome[i] - networks.outcome[j]) for i, j in own]
        sure = 2 * stats.norm.cdf(np.array(gaps) / (0.1 * 2**0.5)) - 1
        wrong = np.average((1 - np.array(agreed)) / 2, weights=sure**2)
        assert errors[name].value == pytest.approx(wrong)
    taus = {}
    for shared in list_given(networks.settings):
        columns = [names.index(name) for name in shared]
        agreed = [
            agree(i, j)
            for i, j in pairs
            if (settings[i, columns] == settings[j, columns]).all()
        ]
        if agreed:
            taus[shared] = np.mean(agreed)
    given, lowest = compute_conditional(compared)
    assert lowest.value == pytest.approx(min(taus.values()))
    assert taus[given] == pytest.approx(lowest.value)


def test_leaving_out_a_block(rng: np.random.Generator) -> None:
    networks, hidden = make_networks(rng)
    found = compare_orders(hidden, networks).average().values
    keep = networks.blocks[:, 3] == 0
    rest = stats.kendalltau(hidden[keep], networks.outcome[keep]).statistic
    assert found[4] == pytest.approx(rest)


def test_information_of_perfect_order_and_of_none() -> None:
    rng = np.random.default_rng(3)
    networks, _ = make_networks(rng)
    perfect = compare_orders(networks.outcome, networks)
    assert compute_information(perfect) == pytest.approx(1)
    none = compare_orders(rng.normal(size=216), networks)
    assert compute_information(none) < 0.01
