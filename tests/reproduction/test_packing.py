"""Packed evidence has every number of the runs, and loses none."""

import json
from pathlib import Path

import pytest

from reproduction.claims import read_evidence
from reproduction.claims.evidence import SEARCH_COLUMNS, SEARCHES
from reproduction.packing import pack_evidence
from tfcomp.config.errors import ConfigError, RunError


def write_sweep(folder: Path, flags: str = ""):
    """The files of three runs of a sweep."""
    for seed in range(3):
        path = folder / "trials" / f"{seed}"
        path.mkdir(parents=True)
        (path / "run.flags").write_text(f"--seed={seed}\n{flags}")
        metrics = {"id": {"mse": 0.1}, "ood": {"mse": 1 / 3 + seed}}
        (path / "metrics.json").write_text(json.dumps(metrics))
        (path / "model.keras").write_text("weights")


def test_packed_evidence_is_the_same(tmp_path: Path):
    logs = tmp_path / "logs"
    output = tmp_path / "packed"
    write_sweep(logs / "donuts")
    study = logs / "slopes"
    study.mkdir()
    (study / SEARCHES).write_text(f"{','.join(SEARCH_COLUMNS)}\nbumps,,,,,,\n")

    pack_evidence([str(logs)], output)

    before = read_evidence([str(logs / "donuts")])
    after = read_evidence([str(output)])
    for path in ("id/mse", "ood/mse"):
        scores = after.select().score(path)
        assert scores.equals(before.select().score(path))
    assert after.studies["slopes"]["kind"].tolist() == ["bumps"]
    # The same runs give the same bytes, and no pack is written for nothing.
    files = pack_evidence([str(logs)], output)
    assert [file.name for file in files] == [SEARCHES]


def test_what_cannot_be_packed(tmp_path: Path):
    output = tmp_path / "packed"
    with pytest.raises(ConfigError):
        pack_evidence([str(tmp_path)], output)

    write_sweep(tmp_path / "a" / "donuts")
    write_sweep(tmp_path / "b" / "donuts", "--depth=7\n")
    with pytest.raises(RunError):
        pack_evidence([str(tmp_path)], output)
    assert not output.exists()
