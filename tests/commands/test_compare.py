"""Comparison over seeds: grouping, statistics, the command."""

import json
import shutil
from pathlib import Path

import pandas as pd
import pytest

from tfcomp import compare
from tfcomp.config.errors import ConfigError
from tfcomp.config.run_flags import format_flags, parse_config
from tfcomp.tables.read import read_finished


def write_run(folder: Path, mse: float, *flags: str):
    config = parse_config(["--flagfile=smoke.flags", *flags])
    metrics = {"id": {"mse": mse / 10}, "ood": {"mse": mse}}
    folder.mkdir()
    (folder / "run.flags").write_text(format_flags(config))
    (folder / "model.keras").write_bytes(b"")
    (folder / "metrics.json").write_text(json.dumps(metrics))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_run(tmp_path / "a0", 1.0)
    write_run(tmp_path / "a1", 2.0, "--seed=1")
    write_run(tmp_path / "a2", 6.0, "--seed=2")
    write_run(tmp_path / "b0", 5.0, "--depth=3")
    (tmp_path / "unfinished").mkdir()
    return tmp_path


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("metrics.json", "{}", ["a1/metrics.json"]),
        ("run.flags", "--depth=potato", ["a1", "--depth", "potato"]),
    ],
)
def test_a_damaged_run_is_left_out_and_named(
    folder: Path,
    name: str,
    text: str,
    words: list[str],
    capsys: pytest.CaptureFixture,
):
    (folder / "a1" / name).write_text(text)

    runs = read_finished([f"{folder}/*"]).runs

    assert len(runs) == 3
    (line,) = capsys.readouterr().err.splitlines()
    for word in words:
        assert word in line
    with pytest.raises(ConfigError, match=words[0]):
        read_finished([f"{folder}/a1"])


def test_runs_are_grouped_by_what_differs(
    folder: Path,
    capsys: pytest.CaptureFixture,
):
    # A copy of a run is no second seed.
    shutil.copytree(folder / "a0", folder / "copy")
    table = folder / "out" / "rate_0.1.csv"
    flags = [f"--runs={folder}/*", "--scores=ood/mse", f"--output={table}"]

    assert compare.main(["compare", *flags]) == 0

    printed = capsys.readouterr().out
    assert "| 2 | 3 | 3 ± 2.6 |" in printed
    assert "| 3 | 1 | 5 |" in printed
    assert table.with_name("rate_0.1.md").read_text() == printed
    rows = pd.read_csv(table)
    assert rows["depth"].tolist() == [2, 3]
    assert rows["seeds"].tolist() == [3, 1]
    assert rows["ood/mse mean"].tolist() == [3.0, 5.0]
    assert rows["ood/mse sd"].isna()[1]
    # Student's interval of 1, 2 and 6 reaches below 0; an MSE does not.
    assert 0 < rows["ood/mse low"][0] < 3 < rows["ood/mse high"][0]


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--runs=/nowhere/*"], "--runs"),
        (["--scores=ood/beauty"], "--scores"),
        (["--scores=id"], "--scores"),
        (["--output=tables/"], "--output"),
        (["--output=.csv"], "--output"),
        (["--output=scores", "--tables=tables"], "--output"),
    ],
)
def test_bad_input(
    folder: Path,
    flags: list[str],
    message: str,
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.chdir(folder)
    before = sorted(folder.rglob("*"))
    with pytest.raises(ConfigError, match=message):
        compare.main(["compare", f"--runs={folder}/*", *flags])
    assert sorted(folder.rglob("*")) == before
