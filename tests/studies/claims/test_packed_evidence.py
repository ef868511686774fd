"""Packed evidence is the evidence, without the machine that made it."""

import json
from pathlib import Path

import pytest

from tests.studies.claims.planted import make_study, plant_claim
from tfcomp import study
from tfcomp.config.errors import ConfigError, RunError
from tfcomp.studies.claims import read_evidence
from tfcomp.studies.claims.packed_evidence import pack_evidence


def write_sweep(folder: Path) -> None:
    """The files of a planted sweep, with a file that is no evidence."""
    for run in plant_claim("C3", "reproduced").runs:
        path = folder / "trials" / f"{run.seed:04d}"
        path.mkdir(parents=True)
        flags = run.flags | {"log_dir": "/home/me/logs"}
        lines = [f"--{k}={str(v).lower()}" for k, v in flags.items()]
        (path / "run.flags").write_text("# tensorflow: 2\n" + "\n".join(lines))
        (path / "metrics.json").write_text(json.dumps(run.metrics))
        (path / "measures.json").write_text(json.dumps(run.measures))
        (path / "model.keras").write_text("weights")


def write_study(folder: Path) -> None:
    """The files of a planted threshold study."""
    folder.mkdir(parents=True)
    study = make_study("study")
    study.thresholds.to_csv(folder / "thresholds.csv", index=False)
    study.slopes.to_csv(folder / "slopes.csv", index=False)
    (folder / "threshold.flags").write_text("--log_dir=/home/me\n--depth=2\n")
    write_sweep(folder / "searches")


def test_packed_evidence_is_the_same(tmp_path: Path) -> None:
    write_sweep(tmp_path / "logs" / "donuts")
    write_study(tmp_path / "logs" / "slopes")
    output = tmp_path / "evidence"
    written = pack_evidence([str(tmp_path / "logs")], output)
    assert sorted(str(path.relative_to(output)) for path in written) == [
        "donuts.csv.xz",
        "slopes/slopes.csv",
        "slopes/threshold.flags",
        "slopes/thresholds.csv",
    ]
    before = read_evidence([str(tmp_path / "logs" / "donuts")])
    after = read_evidence([str(output)])
    assert not after.notes and after.num_runs == 10
    (old,), (new,) = before.groups, after.groups
    assert (old.flags, old.seeds) == (new.flags, new.seeds)
    assert old.columns == new.columns
    (threshold,) = after.studies
    assert threshold.path.name == "slopes" and len(threshold.thresholds) == 24
    assert threshold.flags["depth"] == 2
    assert "/home" not in (output / "slopes/threshold.flags").read_text()
    # The same runs give the same bytes, and no file is written for nothing.
    assert pack_evidence([str(tmp_path / "logs")], output) == []
    # What is packed can be packed again.
    again = pack_evidence([str(output / "donuts.csv.xz")], tmp_path / "again")
    assert again[0].read_bytes() == (output / "donuts.csv.xz").read_bytes()


def test_two_sweeps_of_one_name(tmp_path: Path) -> None:
    write_sweep(tmp_path / "a" / "donuts")
    write_sweep(tmp_path / "b" / "donuts")
    runs = tmp_path / "b" / "donuts" / "trials"
    for flags in runs.glob("*/run.flags"):
        flags.write_text(flags.read_text() + "\n--depth=7\n")
    with pytest.raises(RunError, match="two sweeps have one name"):
        pack_evidence([str(tmp_path)], tmp_path / "evidence")
    assert not (tmp_path / "evidence").exists()


def test_command(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    write_sweep(tmp_path / "logs" / "donuts")
    output = tmp_path / "evidence"
    flags = [f"--runs={tmp_path / 'logs'}", f"--pack={output}"]
    assert study.main(["", "claims", *flags]) == 0
    assert "donuts.csv.xz" in capsys.readouterr().out


def test_nothing_to_pack_is_an_error(tmp_path: Path) -> None:
    """Before, it was 0 kB and exit status 0."""
    (tmp_path / "empty").mkdir()
    (tmp_path / "file").touch()
    for name in ("empty", "file"):
        with pytest.raises(ConfigError, match="--runs must match finished"):
            pack_evidence([str(tmp_path / name)], tmp_path / "packed")
    assert not (tmp_path / "packed").exists()
