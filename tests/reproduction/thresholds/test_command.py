"""The command: from flags to tables, and started again."""

import csv
from contextlib import nullcontext
from pathlib import Path

import pytest

from reproduction.thresholds import command as threshold
from reproduction.thresholds import one_search
from reproduction.thresholds.command import ThresholdSearches
from tests.sweeps.pool_here import PoolHere
from tfcomp.config.errors import ConfigError
from tfcomp.config.run_config import RunConfig
from tfcomp.config.run_flags import parse_flags
from tfcomp.sweeps import sweep_run

FLAGS = (
    "--flagfile=threshold_quick.flags",
    "--grid_sizes=8",
    "--kinds=bumps",
    "--width=4",
    "--steps=5",
    "--target=1",  # out of reach: all numbers up to the maximum are tried
    "--max_bumps=32",
)


def search(folder: Path, *flags: str) -> int:
    return threshold.main(["threshold", *FLAGS, *flags, f"--log_dir={folder}"])


def make_searches(*flags: str) -> ThresholdSearches:
    return threshold.make_searches(parse_flags(flags, threshold.define_flags()))


def list_results(folder: Path) -> dict[str, int]:
    """Names of the recorded searches, and when they were written."""
    results = folder / "threshold_quick" / "searches"
    return {p.name: p.stat().st_mtime_ns for p in results.glob("[!.]*.json")}


def test_new_seeds_are_searched_and_finished_ones_do_nothing(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture,
) -> None:
    monkeypatch.setattr(
        sweep_run, "open_pool", lambda *_: nullcontext(PoolHere())
    )
    configs, train = [], one_search.train_and_score

    def train_once(config: RunConfig) -> one_search.Scores:
        configs.append(config)
        scores = {"position_accuracy": 0.1}  # of others than the first
        return scores if len(configs) > 1 else train(config)

    monkeypatch.setattr(one_search, "train_and_score", train_once)
    assert search(tmp_path, "--model=mlp", "--seeds=1") == 0
    before = list_results(tmp_path)
    assert len(before) == 1
    assert search(tmp_path, "--model=mlp", "--seeds=2") == 0
    printed = capsys.readouterr().out
    assert "1 searches to run" in printed
    assert "N=8 seed=1: position_accuracy not reached up to 32" in printed
    after = list_results(tmp_path)
    assert after.items() > before.items()
    folder = tmp_path / "threshold_quick"
    table = (folder / "thresholds.csv").read_text()
    first, _ = csv.DictReader(table.splitlines())
    assert (first["kind"], first["grid_size"]) == ("bumps", "8")
    assert (first["num_bumps"], first["reached"]) == ("32", "False")
    assert int(first["num_trainings"]) == 2
    assert [c.training.seed for c in configs] == [0, 0, 1, 1]
    assert (folder / "slopes.csv").exists()
    assert (folder / "figures" / "threshold_position_accuracy.png").exists()
    assert search(tmp_path, "--model=mlp", "--seeds=2") == 0
    assert "searches to run" not in capsys.readouterr().out
    assert list_results(tmp_path) == after and len(configs) == 4
    assert (folder / "thresholds.csv").read_text() == table


@pytest.mark.parametrize(
    ("flag", "message"),
    [
        ("--grid_sizes=8,18", "--grid_size must be a multiple of 4"),
        ("--regions=corner:4", "--regions must have bounds that are fractions"),
    ],
)
def test_bad_flags(tmp_path: Path, flag: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        search(tmp_path, flag)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["threshold", "threshold_quick"])
def test_shipped_flagfile_describes_a_search_that_can_start(name: str) -> None:
    searches = make_searches(f"--flagfile={name}.flags")
    assert searches.folder.name == name
    assert len(searches.items) in (4, 30)


def test_flags_of_a_search_repeat_it(tmp_path: Path) -> None:
    searches = make_searches(*FLAGS, "--seeds=2")
    file = tmp_path / "again.flags"
    file.write_text(searches.flags)
    again = make_searches(f"--flagfile={file}")
    assert (again.items, again.flags) == (searches.items, searches.flags)


@pytest.mark.parametrize(
    ("flag", "value"),
    [("seeds", 10**9), ("grid_size", 10**5), ("max_bumps", 10**12)],
)
def test_searches_are_counted_before_they_are_made(
    flag: str, value: int
) -> None:
    name = "grid_sizes" if flag == "grid_size" else flag
    with pytest.raises(ConfigError, match=f"--{flag} must be at most"):
        make_searches(f"--{name}={value}")
