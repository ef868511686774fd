"""The trainings of a search: what differs between them and what must not."""

import dataclasses
import math
from pathlib import Path

import numpy as np
import pytest

from tfcomp.config.errors import ConfigError
from tfcomp.config.run_config import RunConfig
from tfcomp.config.run_flags import parse_config
from tfcomp.datasets import make_dataset
from tfcomp.studies.thresholds import cases as module
from tfcomp.studies.thresholds.cases import Case, Scores, list_cases
from tfcomp.studies.thresholds.search_settings import CRITERIA, SearchSettings

BASE = parse_config(["--flagfile=donut.flags", "--width=8", "--batch_size=16"])


def make_case(kind: str, region: str = "none", **settings: object) -> Case:
    return Case(kind, region, 16, 3, BASE, SearchSettings(**settings))


def test_bumps_are_continuous_and_as_many_as_asked_for() -> None:
    config = make_case("bumps").make_config(37)
    train = make_dataset(config).splits.train
    assert train.shape == (37, 2)
    assert 0 <= train.min() and train.max() <= 15
    assert np.abs(train - train.round()).max() > 0.1


def test_more_bumps_contain_the_fewer_ones() -> None:
    case = make_case("bumps", "corner:0.5")
    few, many = (
        make_dataset(case.make_config(n)).splits.train for n in (50, 1500)
    )
    np.testing.assert_array_equal(few, many[:50])


def test_stripes_are_all_there_and_bumps_outside_the_corner() -> None:
    case = make_case("stripes_and_bumps", "corner:0.5")
    splits = make_dataset(case.make_config(9)).splits
    is_stripe = np.isnan(splits.train).any(axis=1)
    assert (is_stripe.sum(), len(splits.train)) == (32, 41)
    assert case.count_examples(9) == 41
    assert (splits.train[~is_stripe].min(axis=1) <= 7).all()
    assert splits.is_ood.sum() == 64


def test_steps_do_not_depend_on_the_data_and_other_flags_hold() -> None:
    case = make_case("bumps", steps=123)
    for count in (1, 1000):
        config = case.make_config(count)
        training = config.training
        assert (training.epochs, training.steps_per_epoch) == (1, 123)
        assert (training.batch_size, training.seed) == (16, 3)
        assert config.model == BASE.model
        assert config.data.polarity == BASE.data.polarity


@pytest.mark.parametrize("kind", ["bumps", "stripes_and_bumps"])
def test_passes_ask_for_steps_in_proportion_to_examples(kind: str) -> None:
    case = make_case(kind, steps=40, passes=20)
    for count in (2, 50, 90):
        batches = 20 * case.count_examples(count) / 16  # of 16 examples
        training = case.make_config(count).training
        assert training.steps_per_epoch == max(40, math.ceil(batches))


class Trainer:
    """Made-up scores: the position is right from 40 bumps on, all from 200."""

    def __init__(self) -> None:
        self.counts: list[int] = []

    def __call__(self, config: RunConfig) -> Scores:
        count = config.data.num_train
        self.counts.append(count)
        return {
            "position_accuracy": 1.0 if count >= 40 else 0.1,
            "relative_mse": 0.1 if count >= 200 else 0.9,
        }


def test_a_search_has_a_row_for_each_criterion() -> None:
    settings = {"criterion": "position_accuracy,relative_mse"}
    case = make_case("bumps", target="0.9,0.5", **settings)
    trainer = Trainer()
    right, proper = case.search(trainer)
    assert len(trainer.counts) == len(set(trainer.counts))
    assert (right["criterion"], proper["criterion"]) == tuple(CRITERIA)
    assert 40 <= right["num_bumps"] <= 48
    assert 200 <= proper["num_bumps"] <= 240
    assert right["num_examples"] == right["num_bumps"]
    assert right["reached"] is True
    assert (right["score"], proper["score"]) == (1.0, 0.1)


def test_a_result_is_named_by_what_decides_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    base = dataclasses.replace(BASE, log_dir=str(tmp_path))

    def find(**settings: object) -> Path:
        chosen = SearchSettings(kinds="bumps", **settings)
        (first, *_) = list_cases(base, chosen)
        return first.path

    path = find()
    assert find(seeds=7, grid_sizes="16,24") == path  # more searches
    others = [find(target="0.8"), find(first_seed=1), find(grid_sizes="20")]
    others += [find(steps=7), find(tolerance=1.1)]
    monkeypatch.setattr(module, "SOURCES", ["tfcomp.studies.thresholds.laws"])
    others.append(find())  # other code
    assert len({path, *others}) == 7


@pytest.mark.parametrize("text", ["", "{", "[]", "{}"])
def test_a_damaged_result_is_made_again(tmp_path: Path, text: str) -> None:
    base = dataclasses.replace(BASE, log_dir=str(tmp_path))
    case = list_cases(base, SearchSettings())[0]
    assert case.read_rows() == []
    case.path.parent.mkdir(parents=True)
    case.path.write_text(text)
    assert case.read_rows() == []


def test_limits() -> None:
    limits = make_case("bumps").make_limits()
    assert (limits.minimum, limits.maximum) == (1, 4 * 256)
    assert 64 <= limits.first <= 128
    stripes = make_case("stripes_and_bumps", "corner:0.5").make_limits()
    assert (stripes.minimum, stripes.maximum) == (0, 256 - 64)
    assert make_case("bumps", max_bumps=10).make_limits().first == 10


@pytest.mark.parametrize(
    ("flag", "message"),
    [
        ("--plateau_patience=2", "--plateau_patience must be 0"),
        ("--examples_dir=somewhere", "--examples_dir must be empty"),
        ("--region=nope", r"--region is decided by the search .--regions"),
        ("--grid_size=12", "--grid_size is decided by the search"),
        ("--seed=3", r"--seed is decided by the search .--first_seed"),
    ],
)
def test_flags_that_no_search_can_follow(flag: str, message: str) -> None:
    base = parse_config(["--flagfile=donut.flags", flag])
    with pytest.raises(ConfigError, match=message):
        list_cases(base, SearchSettings())
