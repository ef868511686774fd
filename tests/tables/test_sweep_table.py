"""A sweep as one table for pandas."""

import json
from pathlib import Path

import numpy as np
import pytest

import tfcomp
from tests.tables.test_read import METRICS, write_run
from tfcomp.config.errors import ConfigError, RunError


@pytest.fixture
def sweep(tmp_path: Path) -> Path:
    """Two depths with two seeds; the deeper network has one stage more."""
    for number, (depth, seed) in enumerate([(2, 0), (2, 1), (3, 0), (3, 1)]):
        flags = f"--depth={depth}", f"--seed={seed}"
        folder = write_run(tmp_path / "s[1]" / "trials" / f"{number}", *flags)
        stages = ["code", *["middle"] * (depth == 3), "image"]
        probes = {s: n + number / 4 for n, s in enumerate(stages)}
        layers = {s: {"probe": n, "seed": 9} for s, n in probes.items()}
        metrics = METRICS | {"layers": layers, "ood": {"mse": number / 8}}
        (folder / "metrics.json").write_text(json.dumps(metrics))
    return tmp_path / "s[1]"  # no pattern


def test_a_row_for_each_run(sweep: Path) -> None:
    loaded = tfcomp.load_sweep(sweep)
    assert loaded.varied == ["depth"]
    table = loaded.to_frame()
    assert list(table.columns[:3]) == ["depth", "seed", "run"]
    assert list(table["ood/mse"]) == [0, 1 / 8, 2 / 8, 3 / 8]
    assert "middle" not in str(table.columns)
    folders = [Path(run).name for run in table["run"]]
    assert folders == ["0", "1", "2", "3"]
    assert table.groupby("depth")["ood/mse"].mean().to_dict() == {
        2: 1 / 16,
        3: 5 / 16,
    }


def test_a_row_for_each_stage(sweep: Path) -> None:
    table = tfcomp.load_sweep(sweep).to_frame("stages")
    shallow, deep = (table[table["depth"] == d] for d in (2, 3))
    assert list(shallow["stage"]) == ["code", "image"] * 2
    assert list(deep["stage"]) == ["code", "middle", "image"] * 2
    np.testing.assert_array_equal(
        deep["probe"], [0.5, 1.5, 2.5, 0.75, 1.75, 2.75]
    )
    assert set(table["seed (flag)"]) == {0, 1} and set(table["seed"]) == {9}
    with pytest.raises(ValueError, match="kind must be runs or stages"):
        tfcomp.load_sweep(sweep).to_frame("layers")


def test_sweeps_and_runs_are_told_apart(sweep: Path) -> None:
    """Each error says what to call instead, and names no flag."""
    with pytest.raises(RunError, match=r"^run must .* is a sweep: .*/trials/"):
        tfcomp.load_run(sweep)
    with pytest.raises(RunError, match="for a run, use tfcomp.load_run"):
        tfcomp.load_sweep(sweep / "trials" / "0")
    (sweep.parent / "empty" / "trials").mkdir(parents=True)
    with pytest.raises(ConfigError, match="^runs must match at least one"):
        tfcomp.load_sweep(sweep.parent / "empty")
