"""One training: its scores, and that nothing before it changes them."""

import keras
import numpy as np
import pytest

from tfcomp.config.run_config import RunConfig
from tfcomp.config.run_flags import parse_config
from tfcomp.datasets import make_dataset
from tfcomp.studies.thresholds import threshold_trial as trial
from tfcomp.studies.thresholds.cases import Case
from tfcomp.studies.thresholds.search_settings import SearchSettings
from tfcomp.studies.thresholds.threshold_trial import train_and_score

FLAGS = (
    "--flagfile=smoke.flags",
    "--polarity=bright",
    "--depth=2",
    "--width=8",
    "--batch_size=8",
    "--learning_rate=1e-2",
)


def make_config(
    kind: str, region: str, count: int, steps: int, *flags: str
) -> RunConfig:
    base = parse_config([*FLAGS, *flags])
    settings = SearchSettings(steps=steps)
    return Case(kind, region, 8, 0, base, settings).make_config(count)


def test_scores_do_not_depend_on_what_ran_before() -> None:
    first = make_config("bumps", "none", 60, 20)
    other = make_config(
        "stripes_and_bumps", "corner:0.5", 5, 20, "--precision=mixed_bfloat16"
    )
    before = train_and_score(first)
    assert train_and_score(other) != before
    assert train_and_score(first) == before
    assert keras.config.floatx() == "float32"


def test_plenty_of_data_is_learned() -> None:
    """Else no threshold would say anything about data."""
    scores = train_and_score(make_config("bumps", "none", 250, 150))
    assert scores["position_accuracy"] > 0.9
    assert scores["relative_mse"] < 0.5


def test_region_is_what_is_scored(monkeypatch: pytest.MonkeyPatch) -> None:
    config = make_config("bumps", "corner:0.5", 10, 1)
    monkeypatch.setattr(trial, "fit_without_pause", lambda *arguments: None)
    monkeypatch.setattr(trial, "score_subsets", lambda *args: {"all": args[3]})
    (rows,) = train_and_score(config).values()
    np.testing.assert_array_equal(rows, make_dataset(config).splits.is_ood)


def test_divergence_reaches_nothing() -> None:
    config = make_config("bumps", "none", 20, 5, "--learning_rate=1e30")
    scores = train_and_score(config)
    assert scores["position_accuracy"] == 0.0
    assert scores["relative_mse"] is None
