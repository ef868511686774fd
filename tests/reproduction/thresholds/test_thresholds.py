"""Threshold searches: planted thresholds, trainings, table and figure."""

import math
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

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
SIZES = (16, 20, 24, 28, 32)


def make_searches(*flags: str) -> command.ThresholdSearches:
    values = parse_flags([*QUICK, *flags], command.define_flags())
    return command.make_searches(values)


def make_case(kind: str, *flags: str) -> command.Case:
    (case,) = make_searches(f"--kinds={kind}", *flags).items
    return case


@pytest.mark.parametrize("threshold", [1, 2, 16, 17, 100, 4095, 4096])
@pytest.mark.parametrize("first", [1, 10, 4096])
def test_a_step_is_found_within_the_tolerance(
    threshold: int, first: int
) -> None:
    count = find_threshold(lambda n: n >= threshold, first, 4096)
    largest = max(threshold * TOLERANCE, threshold + 1)
    assert threshold <= count <= largest


@pytest.mark.parametrize(
    ("threshold", "largest", "least", "count", "tried"),
    [
        (0, 4096, 0, 0, [0]),
        (1, 4096, 0, 1, [0, 16, 8, 4, 2, 1]),
        (0, 4096, 1, 1, [16, 8, 4, 2, 1]),
        (math.inf, 100, 1, 100, [16, 32, 64, 100]),
        # Up to the bracket (64, 128], then two halvings of a factor of 2.
        (100, 4096, 1, 108, [16, 32, 64, 128, 91, 108]),
    ],
)
def test_what_is_tried(
    threshold: float, largest: int, least: int, count: int, tried: list[int]
) -> None:
    asked = []

    def reaches(n: int) -> bool:
        asked.append(n)
        return n >= threshold

    assert find_threshold(reaches, 16, largest, least) == count
    assert asked == tried


def test_any_response_gives_a_count_above_a_failing_one(
    rng: np.random.Generator,
) -> None:
    for _ in range(100):
        table = rng.uniform(size=1001) < rng.uniform(0.05, 0.95)
        failed = [0]

        def reaches(n: int, table: Any = table, failed: Any = failed) -> bool:
            if not table[n]:
                failed.append(n)
            return bool(table[n])

        count = find_threshold(reaches, int(rng.integers(1, 1001)), 1000)
        if table[count]:
            below = max(n for n in failed if n < count)
            assert count <= max(below * TOLERANCE, below + 1)
        else:
            assert count == 1000


def test_training_sets() -> None:
    case = make_case("bumps")
    few = make_dataset(case.make_config(37)).splits.train
    many = make_dataset(case.make_config(150)).splits.train
    # Continuous positions, of which more contain the fewer.
    assert np.abs(few - few.round()).max() > 0.1
    np.testing.assert_array_equal(few, many[:37])

    # All stripes, and bumps outside of the corner.
    case = make_case("stripes_and_bumps")
    splits = make_dataset(case.make_config(9)).splits
    is_stripe = np.isnan(splits.train).any(axis=1)
    assert (is_stripe.sum(), len(splits.train)) == (32, 41)
    assert case.count_examples(9) == 41
    assert splits.is_ood.sum() == 64


def test_passes_ask_for_steps_in_proportion_to_examples() -> None:
    case = make_case("bumps", "--steps=40", "--passes=20", "--batch_size=16")
    for count in (2, 50, 90):
        steps = case.make_config(count).training.steps_per_epoch
        assert steps == max(40, math.ceil(20 * count / 16))


@pytest.mark.parametrize(
    ("criterion", "missed"),
    [("position_accuracy", 0.49), ("relative_mse", 0.6)],
)
def test_a_search_has_a_row(criterion: str, missed: float) -> None:
    flags = [f"--criterion={criterion}", "--target=.5"]
    case = make_case("bumps", *flags)
    counts = []

    def train(config: RunConfig) -> command.Scores:
        counts.append(config.data.num_train)
        if counts[-1] < 20:
            return {criterion: None}  # diverged
        return {criterion: 0.5 if counts[-1] >= 40 else missed}

    row = case.search(train)
    assert 40 <= row["num_bumps"] <= 48
    assert (row["reached"], row["score"]) == (True, 0.5)
    assert row["num_trainings"] == len(counts) == len(set(counts))


def test_trainings_depend_on_their_data_alone() -> None:
    flags = ["--model=mlp", "--width=16", "--depth=1", "--grid_sizes=8"]
    config = make_case("bumps", *flags, "--steps=150").make_config(250)
    before = command.train_and_score(config)
    other = make_case("stripes_and_bumps", *flags, "--steps=2").make_config(5)
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
def test_bad_flags(tmp_path: Path, flag: str) -> None:
    with pytest.raises(ConfigError):
        command.main(["thresholds", *QUICK, flag, f"--log_dir={tmp_path}"])
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["threshold", "threshold_quick"])
def test_flags_of_a_search_repeat_it(name: str, tmp_path: Path) -> None:
    searches = make_searches(f"--flagfile={name}.flags")
    file = tmp_path / "again.flags"
    file.write_text(searches.flags)
    again = make_searches(f"--flagfile={file}")
    assert (again.items, again.flags) == (searches.items, searches.flags)


def test_new_seeds_are_searched_and_finished_ones_are_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        sweep_run, "open_pool", lambda *_: nullcontext(PoolHere())
    )
    seeds = []

    def train(config: RunConfig) -> command.Scores:
        seeds.append(config.training.seed)
        return {"position_accuracy": 1.0}

    monkeypatch.setattr(command, "train_and_score", train)
    flags = [*QUICK, "--kinds=bumps", f"--log_dir={tmp_path}"]
    for count in (1, 2, 2):
        assert command.main(["thresholds", *flags, f"--seeds={count}"]) == 0
    folder = tmp_path / "threshold_quick"
    table = pd.read_csv(folder / "thresholds.csv")
    assert sorted(table["seed"]) == [0, 1]
    assert len(seeds) == table["num_trainings"].sum()
    assert (folder / "thresholds.png").exists()
    # A damaged result is made again.
    (file, *_) = (folder / "searches").glob("*.json")
    file.write_text("{")
    assert command.main(["thresholds", *flags, "--seeds=2"]) == 0
    assert len(seeds) > table["num_trainings"].sum()


def test_a_result_is_named_by_what_decides_it() -> None:
    case = make_case("bumps")
    paths = {case.path, make_case("bumps", "--target=.7").path}
    paths.add(make_case("bumps", "--steps=7").path)
    paths.add(make_case("bumps", "--first_seed=1").path)
    assert len(paths) == 4
    assert make_case("bumps").path == case.path


def plant(exponent: float, missed: int = 0) -> pd.DataFrame:
    """Searches of three seeds with thresholds of 2 N^p."""
    rows = []
    for size in SIZES:
        for seed in range(3):
            count = 2 * size**exponent * (0.9, 1, 1 / 0.9)[seed]
            rows.append(("bumps", size, seed, count, True))
    for seed in range(missed):
        rows.append(("bumps", 32, 3 + seed, 10**6, False))
    columns = ["kind", "grid_size", "seed", "num_examples", "reached"]
    return pd.DataFrame(rows, columns=columns)


@pytest.mark.parametrize("exponent", [1, 2, 3])
def test_a_planted_exponent_is_recovered(exponent: int) -> None:
    means, law = fit_law(plant(exponent, missed=2))
    assert [mean.size for mean in means] == list(SIZES)
    assert law is not None
    assert law.slope == pytest.approx(exponent)
    assert law.constant == pytest.approx(2)


def test_the_figure_has_points_means_law_and_guides() -> None:
    searches = plant(2, missed=1)
    lines = plot_thresholds(searches).axes[0].lines
    points = sum(len(line.get_xdata()) for line in lines[:2])
    assert points == len(searches)
    slopes = []
    for line in lines[3:]:
        x, y = np.log(line.get_xydata()[[0, -1]]).T
        slopes.append(np.diff(y)[0] / np.diff(x)[0])
    assert slopes == pytest.approx([2, 1, 3])
