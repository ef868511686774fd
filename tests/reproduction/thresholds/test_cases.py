"""Flags of a search, and its trainings: what differs between them."""

import dataclasses
import math
from pathlib import Path

import numpy as np
import pytest

from reproduction.thresholds import cases as module
from reproduction.thresholds.cases import Case, list_cases, scale_region
from reproduction.thresholds.search_settings import SearchSettings, is_reached
from tfcomp.config.errors import ConfigError
from tfcomp.config.run_flags import parse_config
from tfcomp.datasets import make_dataset

BASE = parse_config(["--flagfile=donut.flags", "--width=8", "--batch_size=16"])


def make_case(kind: str, region: str = "none", **settings: object) -> Case:
    return Case(kind, region, 16, 3, BASE, SearchSettings(**settings))


@pytest.mark.parametrize(
    ("flag", "value", "message"),
    [
        ("grid_sizes", "16,x", "--grid_sizes must be positive integers"),
        ("grid_sizes", "", "--grid_sizes must be different values"),
        ("grid_sizes", "16,16", "--grid_sizes must be different values"),
        ("kinds", "stripes", "--kinds must be among: bumps"),
        ("regions", "none,", "--regions must be different values"),
        ("regions", '"none', "--regions must be quoted as in CSV"),
        ("criterion", "mse", "--criterion must be among"),
        ("target", "0.9,0.9", "--target must have a number above 0 for each"),
        ("target", "1.5", "--target must have a number above 0 for each"),
        ("target", "nan", "--target must have a number above 0 for each"),
    ],
)
def test_bad_values(flag: str, value: object, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        SearchSettings(**{flag: value})


@pytest.mark.parametrize(
    ("criterion", "missed"),
    [("position_accuracy", 0.49), ("relative_mse", 0.51)],
)
def test_reached(criterion: str, missed: float) -> None:
    scores = (0.5, missed, None)
    found = [is_reached(criterion, score, 0.5) for score in scores]
    assert found == [True, False, False]


@pytest.mark.parametrize(
    ("spec", "pixels"),
    [
        ("none", "none"),
        ("square:0.25-0.75", "square:6.75-20.25"),
        ("box:x:0-1,y:0.1-0.2", "box:x:0-27,y:2.7-5.4"),
        ("corner:0.3333333", "corner:8.999999"),
    ],
)
def test_fractions_of_a_grid_of_28(spec: str, pixels: str) -> None:
    assert scale_region(spec, 28) == pixels


def test_training_sets() -> None:
    case = make_case("bumps", "corner:0.5")
    few, many = (
        make_dataset(case.make_config(n)).splits.train for n in (37, 1500)
    )
    # Continuous positions, of which more contain the fewer.
    assert few.shape == (37, 2)
    assert np.abs(few - few.round()).max() > 0.1
    np.testing.assert_array_equal(few, many[:37])
    # All stripes, and bumps outside of the corner.
    case = make_case("stripes_and_bumps", "corner:0.5")
    splits = make_dataset(case.make_config(9)).splits
    is_stripe = np.isnan(splits.train).any(axis=1)
    assert (is_stripe.sum(), len(splits.train)) == (32, 41)
    assert case.count_examples(9) == 41
    assert (splits.train[~is_stripe].min(axis=1) <= 7).all()
    assert splits.is_ood.sum() == 64


@pytest.mark.parametrize("kind", ["bumps", "stripes_and_bumps"])
def test_passes_alone_ask_for_steps_in_proportion_to_examples(
    kind: str,
) -> None:
    case = make_case(kind, steps=40, passes=20)
    for count in (2, 50, 90):
        batches = 20 * case.count_examples(count) / 16  # of 16 examples
        training = case.make_config(count).training
        assert training.steps_per_epoch == max(40, math.ceil(batches))
        config = make_case(kind, steps=123).make_config(count)
        assert config.training.steps_per_epoch == 123
        assert (config.training.epochs, config.training.seed) == (1, 3)
        # Other flags hold.
        assert config.model == BASE.model
        assert config.data.polarity == BASE.data.polarity


def test_a_result_is_named_by_what_decides_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    base = dataclasses.replace(BASE, log_dir=str(tmp_path))

    def find(**settings: object) -> Path:
        chosen = SearchSettings(kinds="bumps", **settings)
        (first, *_) = list_cases(base, chosen)
        assert list_cases(base, first.settings) == [first]
        return first.path

    path = find()
    assert find(seeds=7, grid_sizes="16,24") == path  # more searches
    others = [find(target="0.8"), find(first_seed=1), find(grid_sizes="20")]
    others += [find(steps=7), find(tolerance=1.1)]
    monkeypatch.setattr(module, "SOURCES", ["reproduction.plans"])
    others.append(find())  # other code
    assert len({path, *others}) == 7


@pytest.mark.parametrize("text", ["{", "{}"])
def test_a_damaged_result_is_made_again(tmp_path: Path, text: str) -> None:
    base = dataclasses.replace(BASE, log_dir=str(tmp_path))
    case = list_cases(base, SearchSettings())[0]
    assert case.read_rows() == []
    case.path.parent.mkdir(parents=True)
    case.path.write_text(text)
    assert case.read_rows() == []


def test_range() -> None:
    first, largest, least = make_case("bumps").find_range()
    assert (largest, least) == (4 * 256, 1)
    stripes = make_case("stripes_and_bumps", "corner:0.5").find_range()
    assert stripes == (first, 256 - 64, 0)
    assert make_case("bumps", max_bumps=10).find_range()[0] == 10
    # Uniform in log scale by the seed, and other for each size.
    cases = [
        dataclasses.replace(make_case("bumps"), seed=s) for s in range(500)
    ]
    shifts = [math.log2(case.find_range()[0] / 64) for case in cases]
    assert 0 <= min(shifts) < 0.03 and 0.97 < max(shifts) <= 1
    assert np.mean(shifts) == pytest.approx(0.5, abs=0.05)


@pytest.mark.parametrize(
    ("flag", "message"),
    [
        ("--plateau_patience=2", "--plateau_patience must be 0"),
        ("--id_target=0.05", "--id_target must be 0"),
        ("--model=hard_rendering", "--axes must give each axis"),
        ("--examples_dir=somewhere", "--examples_dir must be empty"),
        ("--region=nope", r"--region is decided by the search .--regions"),
    ],
)
def test_flags_that_no_search_can_follow(flag: str, message: str) -> None:
    base = parse_config(["--flagfile=donut.flags", flag])
    with pytest.raises(ConfigError, match=message):
        list_cases(base, SearchSettings())
