"""Threshold searches: planted thresholds, trainings, table and figure."""

import math
from contextlib import nullcontext
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal
from pytest import approx

from reproduction.thresholds import command
from reproduction.thresholds.command import TOLERANCE, find_threshold
from reproduction.thresholds.laws import fit_law, plot_thresholds
from tests.sweeps.pool_here import PoolHere
from tfcomp.config.errors import ConfigError
from tfcomp.config.run_config import RunConfig
from tfcomp.config.run_flags import parse_flags
from tfcomp.datasets import make_dataset
from tfcomp.sweeps import sweep_run

QUICK = ["--flagfile=threshold_quick.flags", "--grid_sizes=16", "--seeds=1"]
SIZES = [16, 20, 24, 28, 32]


def make_searches(*flags: str) -> command.ThresholdSearches:
    values = parse_flags([*QUICK, *flags], command.define_flags())
    return command.make_searches(values)


def make_case(kind: str, *flags: str) -> command.Case:
    (case,) = make_searches(f"--kinds={kind}", *flags).items
    return case


@pytest.mark.parametrize(
    "threshold, largest, counts",
    [
        (0, 4096, [16, 8, 4, 2, 1]),
        (math.inf, 100, [16, 32, 64, 100]),
        # Up to the bracket (64, 128], then two halvings of a factor of 2.
        (100, 4096, [16, 32, 64, 128, 91, 108]),
    ],
)
def test_what_is_tried(
    threshold: float,
    largest: int,
    counts: list[int],
):
    tried = []

    def reaches(count: int) -> bool:
        tried.append(count)
        return count >= threshold

    assert find_threshold(reaches, 16, largest) == counts[-1]
    assert tried == counts


@pytest.mark.parametrize("seed", range(20))
def test_any_response_gives_a_count_above_a_failing_one(seed: int):
    rng = np.random.default_rng(seed)
    response = rng.uniform(size=1001) < rng.uniform(0.05, 0.95)
    response[0] = False
    tried = {0}

    def reaches(count: int) -> bool:
        tried.add(count)
        return bool(response[count])

    count = find_threshold(reaches, int(rng.integers(1, 1001)), 1000)

    if response[count]:
        below = max(n for n in tried if n < count and not response[n])
        assert count <= max(below * TOLERANCE, below + 1)
    else:
        assert count == 1000


def test_more_bumps_contain_the_fewer():
    case = make_case("bumps")

    few = make_dataset(case.make_config(37)).splits.train
    many = make_dataset(case.make_config(150)).splits.train

    assert np.abs(few - few.round()).max() > 0.1  # between the pixels
    assert_array_equal(few, many[:37])


def test_all_stripes_and_bumps_outside_of_the_corner():
    case = make_case("stripes_and_bumps")

    splits = make_dataset(case.make_config(9)).splits

    assert np.isnan(splits.train).any(axis=1).sum() == 32
    assert len(splits.train) == 41
    assert case.count_examples(9) == 41
    assert splits.is_ood.sum() == 64


@pytest.mark.parametrize(
    "count, steps",
    [
        (2, 40),
        (50, 63),
        (90, 113),
    ],
)
def test_passes_ask_for_steps_in_proportion_to_examples(
    count: int,
    steps: int,
):
    case = make_case("bumps", "--steps=40", "--passes=20", "--batch_size=16")

    assert case.make_config(count).training.steps_per_epoch == steps


@pytest.mark.parametrize(
    "criterion, missed",
    [
        ("position_accuracy", 0.49),
        ("relative_mse", 0.6),
    ],
)
def test_a_search_has_a_row(criterion: str, missed: float):
    case = make_case("bumps", f"--criterion={criterion}", "--target=.5")
    counts = []

    def train(config: RunConfig) -> command.Scores:
        count = config.data.num_train
        counts.append(count)
        if count < 20:
            return {criterion: None}  # diverged
        return {criterion: 0.5 if count >= 40 else missed}

    row = case.search(train)

    assert 40 <= row["num_bumps"] <= 48
    assert row["reached"]
    assert row["score"] == 0.5
    assert row["num_trainings"] == len(counts) == len(set(counts))


@pytest.mark.parametrize("threshold", [0, 1])
def test_stripes_alone_are_tried_first(threshold: int):
    case = make_case("stripes_and_bumps", "--target=.5")
    counts = []

    def train(config: RunConfig) -> command.Scores:
        counts.append(config.data.num_bumps)
        return {"position_accuracy": float(counts[-1] >= threshold)}

    row = case.search(train)

    assert counts[0] == 0
    assert row["num_bumps"] == threshold


@pytest.mark.usefixtures("untraced")
def test_trainings_depend_on_their_data_alone():
    flags = ["--model=mlp", "--width=4", "--depth=1", "--grid_sizes=8"]
    config = make_case("bumps", *flags, "--steps=2").make_config(50)
    other = make_case("stripes_and_bumps", *flags, "--steps=1").make_config(5)

    before = command.train_and_score(config)
    command.train_and_score(other)

    assert command.train_and_score(config) == before


@pytest.mark.parametrize(
    "flag",
    [
        "--grid_sizes=16,x",
        "--grid_sizes=8,18",
        "--kinds=stripes",
        "--criterion=mse",
        "--target=0",
        "--region=corner:4",
        "--seeds=1000000",
    ],
)
def test_bad_flags(tmp_path: Path, flag: str):
    with pytest.raises(ConfigError):
        command.main(["thresholds", *QUICK, flag, f"--log_dir={tmp_path}"])

    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["threshold", "threshold_quick"])
def test_flags_of_a_search_repeat_it(name: str, tmp_path: Path):
    searches = make_searches(f"--flagfile={name}.flags")
    file = tmp_path / "again.flags"
    file.write_text(searches.flags)

    again = make_searches(f"--flagfile={file}")

    assert again.items == searches.items
    assert again.flags == searches.flags


def test_new_seeds_are_searched_and_finished_ones_are_not(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
):
    seeds = []

    def train(config: RunConfig) -> command.Scores:
        seeds.append(config.training.seed)
        return {"position_accuracy": 1.0}

    def search(count: int):
        flags = ["--kinds=bumps", f"--log_dir={tmp_path}", f"--seeds={count}"]
        seeds.clear()
        assert command.main(["thresholds", *QUICK, *flags]) == 0

    monkeypatch.setattr(
        sweep_run, "open_pool", lambda *_: nullcontext(PoolHere())
    )
    monkeypatch.setattr(command, "train_and_score", train)
    folder = tmp_path / "threshold_quick"

    search(1)
    assert set(seeds) == {0}
    search(2)
    assert set(seeds) == {1}
    search(2)
    assert seeds == []
    table = pd.read_csv(folder / "thresholds.csv")
    assert sorted(table["seed"]) == [0, 1]
    assert (folder / "thresholds.png").exists()

    # A damaged result is made again.
    (file, *_) = (folder / "searches").glob("*.json")
    file.write_text("{")
    search(2)
    assert len(set(seeds)) == 1


def test_a_result_is_named_by_what_decides_it():
    paths = {make_case("bumps").path, make_case("bumps").path}
    for flag in ("--target=.7", "--steps=7", "--first_seed=1"):
        paths.add(make_case("bumps", flag).path)

    assert len(paths) == 4


def plant(exponent: float) -> pd.DataFrame:
    """Searches of three seeds with thresholds of 2 N^p, and one that failed."""
    rows = []
    for size in SIZES:
        for seed, factor in enumerate((0.9, 1, 1 / 0.9)):
            count = 2 * size**exponent * factor
            rows.append(("bumps", size, seed, count, True))
    rows.append(("bumps", 32, 3, 10**6, False))
    columns = ["kind", "grid_size", "seed", "num_examples", "reached"]
    return pd.DataFrame(rows, columns=columns)


@pytest.mark.parametrize("exponent", [1, 2, 3])
def test_a_planted_exponent_is_recovered(exponent: int):
    means, law = fit_law(plant(exponent))

    assert list(means) == SIZES
    assert law.slope == approx(exponent)
    assert law.constant == approx(2)


def test_the_figure_has_points_means_law_and_guides():
    searches = plant(2)

    missed, reached, _, *lines = plot_thresholds(searches).axes[0].lines

    assert len(missed.get_xdata()) == 1
    assert len(reached.get_xdata()) == len(searches) - 1
    slopes = []
    for line in lines:
        x, y = np.log(line.get_xydata()).T
        slopes.append(np.polyfit(x, y, 1)[0])
    assert slopes == approx([2, 1, 3])
