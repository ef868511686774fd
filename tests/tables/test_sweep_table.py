"""A sweep as one table for pandas."""

from pathlib import Path

import pytest

import tfcomp
from tests.tables.test_read import write_metrics, write_run
from tfcomp.config.errors import ConfigError, RunError


@pytest.fixture
def sweep(tmp_path) -> Path:
    """Two depths with two seeds; the deeper network has one stage more."""
    folder = tmp_path / "s[1]"  # no pattern
    trials = [
        (2, 0),
        (2, 1),
        (3, 0),
        (3, 1),
    ]
    for number, (depth, seed) in enumerate(trials):
        run = folder / "trials" / str(number)
        write_run(run, f"--depth={depth}", f"--seed={seed}")
        stages = ["code", "image"]
        if depth == 3:
            stages.insert(1, "middle")
        layers = {}
        for place, stage in enumerate(stages):
            layers[stage] = {
                "probe": place + number / 4,
                "seed": 9,
            }
        write_metrics(
            run,
            layers=layers,
            ood={"mse": number / 8},
            measures={},
        )
    return folder


def test_a_row_for_each_run(sweep):
    loaded = tfcomp.load_sweep(sweep)
    table = loaded.to_frame()

    assert loaded.varied == ["depth"]
    assert list(table.columns[:3]) == ["depth", "seed", "run"]
    assert "middle" not in str(table.columns)
    assert list(table["depth"]) == [2, 2, 3, 3]
    assert list(table["ood/mse"]) == [0, 1 / 8, 2 / 8, 3 / 8]
    folders = [Path(run).name for run in table["run"]]
    assert folders == ["0", "1", "2", "3"]


def test_a_row_for_each_stage(sweep):
    loaded = tfcomp.load_sweep(sweep)
    table = loaded.to_frame("stages")

    shallow = table[table["depth"] == 2]
    assert list(shallow["stage"]) == ["code", "image"] * 2
    deep = table[table["depth"] == 3]
    assert list(deep["stage"]) == ["code", "middle", "image"] * 2
    assert list(deep["probe"]) == [0.5, 1.5, 2.5, 0.75, 1.75, 2.75]
    assert set(table["seed (flag)"]) == {0, 1}
    assert set(table["seed"]) == {9}
    with pytest.raises(ValueError, match="runs or stages"):
        loaded.to_frame("layers")


def test_sweeps_and_runs_are_told_apart(sweep):
    """Each error says what to call instead, and names no flag."""
    with pytest.raises(RunError, match="^run .* a sweep: .*/trials/"):
        tfcomp.load_run(sweep)
    with pytest.raises(RunError, match="tfcomp.load_run"):
        tfcomp.load_sweep(sweep / "trials" / "0")
    (sweep.parent / "empty" / "trials").mkdir(parents=True)
    with pytest.raises(ConfigError, match="^runs "):
        tfcomp.load_sweep(sweep.parent / "empty")
