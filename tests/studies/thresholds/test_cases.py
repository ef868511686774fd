"""The trainings of a search: what differs between them and what must not."""

import dataclasses
import math

import numpy as np
import pytest

from tfcomp.config.errors import ConfigError
from tfcomp.config.run_flags import parse_config
from tfcomp.datasets import make_dataset
from tfcomp.studies.thresholds.cases import Case, list_cases
from tfcomp.studies.thresholds.threshold_settings import SearchSettings

BASE = parse_config(["--flagfile=donut.flags", "--width=8", "--batch_size=16"])


def make_case(kind: str, region: str = "none", **settings: object) -> Case:
    return Case(kind, region, 16, 3, BASE, SearchSettings(**settings))


def test_cases_are_the_product() -> None:
    settings = SearchSettings(grid_sizes="8,16", seeds=2, first_seed=5)
    cases = list_cases(BASE, settings)
    assert [(c.kind, c.region, c.grid_size, c.seed) for c in cases] == [
        (kind, region, size, seed)
        for kind, region in settings.variants
        for size in (8, 16)
        for seed in (5, 6)
    ]
    assert len({case.name for case in cases}) == len(cases)


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


def test_what_makes_no_difference_gives_the_same_training() -> None:
    other = dataclasses.replace(
        BASE,
        run_name="other",
        eval_every=7,
        layerwise_every=7,
        checkpoint_seconds=7.0,
    )
    case = make_case("bumps")
    twin = dataclasses.replace(case, base=other)
    assert twin.make_config(5).identity() == case.make_config(5).identity()


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
