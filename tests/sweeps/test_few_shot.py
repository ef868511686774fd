"""The few-shot command on a tiny series."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from tfcomp import few_shot
from tfcomp.config.errors import ConfigError


def run(folder: Path) -> None:
    few_shot.main(
        [
            "few_shot",
            "--flagfile=stripes.flags",
            "--counts=0,3",
            "--grid_size=12",
            "--region=corner:8",
            "--depth=2",
            "--width=4",
            "--epochs=1",
            "--steps_per_epoch=2",
            f"--log_dir={folder / 'logs'}",
            f"--export_dir={folder / 'models'}",
        ]
    )


def test_series_is_trained_once_and_drawn(
    tmp_path: Path, capsys: pytest.CaptureFixture
) -> None:
    run(tmp_path)
    printed = capsys.readouterr().out
    assert "0 bumps" in printed and "3 bumps" in printed
    folder = tmp_path / "logs" / "stripes_few_shot"
    assert (folder / "few_shot.png").stat().st_size < 300_000
    table = (folder / "few_shot.csv").read_text().splitlines()
    rows = list(csv.DictReader(table))
    assert [(r["num_bumps"], r["truth"]) for r in rows] == [
        ("0", "bump"),
        ("0", "plus"),
        ("3", "bump"),
        ("3", "plus"),
    ]
    model = tmp_path / "logs" / "stripes_3" / "model.keras"
    before = model.stat().st_mtime_ns
    run(tmp_path)
    assert model.stat().st_mtime_ns == before


@pytest.mark.parametrize("counts", ["", "1,x", "-1", "1.5"])
def test_bad_counts(counts: str) -> None:
    with pytest.raises(ConfigError, match="--counts must be integers"):
        few_shot.parse_counts(counts)
