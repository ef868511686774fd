"""Comparison over seeds: grouping, statistics, the command."""

from __future__ import annotations

import csv
import dataclasses
import json
from pathlib import Path

import numpy as np
import pytest

from tfcomp import compare
from tfcomp.config.errors import ConfigError
from tfcomp.config.run_config import RunConfig
from tfcomp.config.run_flags import format_flags
from tfcomp.config.run_flags import parse_config
from tfcomp.statistics.seed_statistics import compute_statistics
from tfcomp.statistics.seed_statistics import group_by_setting


def fake_run(folder: Path, name: str, mse: float, *flags: str) -> None:
    config: RunConfig = parse_config(
        ["--flagfile=smoke.flags", f"--run_name={name}", *flags]
    )
    path = folder / name
    path.mkdir(parents=True)
    (path / "run.flags").write_text(format_flags(config))
    (path / "model.keras").write_bytes(b"")
    metrics = {"id": {"mse": mse / 10}, "ood": {"mse": mse}}
    (path / "metrics.json").write_text(json.dumps(metrics))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for seed, mse in enumerate((1.0, 2.0, 6.0)):
        fake_run(tmp_path, f"a{seed}", mse, f"--seed={seed}")
    fake_run(tmp_path, "b0", 5.0, "--depth=3")
    (tmp_path / "unfinished").mkdir()
    return tmp_path


def test_statistics_against_a_textbook() -> None:
    found = compute_statistics([1.0, 2.0, 6.0])
    assert found.mean == 3.0
    assert found.deviation == pytest.approx(np.sqrt(7.0))
    # Student's quantile for 2 degrees of freedom is 4.303.
    expected = 4.3027 * np.sqrt(7.0) / np.sqrt(3.0)
    assert found.half_width == pytest.approx(expected, rel=1e-4)
    assert found.count == 3


def test_degenerate_statistics() -> None:
    assert compute_statistics([]) is None
    assert compute_statistics([None, None]) is None
    # The mean over those that did not diverge would flatter.
    assert compute_statistics([1.0, 2.0, None]) is None
    single = compute_statistics([2.0])
    assert dataclasses.astuple(single) == (2.0, None, None, 1)


def test_runs_are_grouped_by_what_differs(folder: Path) -> None:
    runs = compare.read_runs(str(folder / "*"))
    settings = group_by_setting(runs)
    assert [(s.flags, s.seeds) for s in settings] == [
        ({"depth": 2}, [0, 1, 2]),
        ({"depth": 3}, [0]),
    ]


def test_a_copy_of_a_run_is_no_second_seed(folder: Path) -> None:
    runs = compare.read_runs(str(folder / "*"))
    assert group_by_setting([*runs, *runs]) == group_by_setting(runs)


def test_command_writes_the_table(
    folder: Path, capsys: pytest.CaptureFixture
) -> None:
    status = compare.main(
        [
            "compare",
            f"--runs={folder}/*",
            "--scores=ood/mse",
            f"--output={folder}/out/table",
        ]
    )
    assert status == 0
    printed = capsys.readouterr().out
    assert "| 2 | 3 | 3 ± 2.6 |" in printed
    assert "| 3 | 1 | 5 |" in printed
    assert (folder / "out/table.md").read_text() == printed
    text = (folder / "out/table.csv").read_text().splitlines()
    rows = list(csv.DictReader(text))
    assert float(rows[0]["ood/mse mean"]) == 3.0
    assert rows[1]["ood/mse sd"] == ""


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--runs=/nowhere/*"], "--runs must match"),
        (["--scores=ood/beauty"], "--scores must name scores"),
    ],
)
def test_bad_input(folder: Path, flags: list[str], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        compare.main(["compare", f"--runs={folder}/*", *flags])
