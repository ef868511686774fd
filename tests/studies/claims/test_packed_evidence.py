"""Packed evidence is the evidence, without the machine that made it."""

import json
import os
import tarfile
from pathlib import Path

import pytest

from tests.studies.claims.planted import make_study, plant_claim
from tfcomp import study
from tfcomp.config.errors import ConfigError, RunError
from tfcomp.storage.files import DamagedFileError
from tfcomp.studies.claims.evidence import read_evidence
from tfcomp.studies.claims.packed_evidence import pack_evidence, unpack


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
    write_sweep(folder / "searches")


def test_packed_evidence_is_the_same(tmp_path: Path) -> None:
    write_sweep(tmp_path / "logs" / "donuts")
    write_study(tmp_path / "logs" / "slopes")
    output = tmp_path / "evidence"
    written = pack_evidence([str(tmp_path / "logs")], output)
    assert [path.name for path in written] == ["slopes.tar.xz", "donuts.tar.xz"]
    before = read_evidence([str(tmp_path / "logs" / "donuts")])
    after = read_evidence([str(output)])
    assert not after.notes and len(after.runs) == 10
    for old, new in zip(before.runs, after.runs, strict=True):
        assert (old.name, old.setting, old.seed) == (
            new.name,
            new.setting,
            new.seed,
        )
        assert (old.metrics, old.measures, old.origin) == (
            new.metrics,
            new.measures,
            new.origin,
        )
        assert "/home/me" not in str(new.flags)
    (study,) = after.studies
    assert study.name.endswith("slopes") and len(study.thresholds) == 24
    # The same runs give the same bytes, and no file is written for nothing.
    assert pack_evidence([str(tmp_path / "logs")], output) == []
    with tarfile.open(output / "donuts.tar.xz") as tar:
        assert {Path(name).name for name in tar.getnames()} == {
            "run.flags",
            "metrics.json",
            "measures.json",
        }


def test_mistakes(tmp_path: Path) -> None:
    for place in ("a", "b"):
        write_sweep(tmp_path / place / "donuts")
    with pytest.raises(RunError, match="two sweeps have one name"):
        pack_evidence([str(tmp_path)], tmp_path / "evidence")
    (tmp_path / "c").mkdir()
    (tmp_path / "c" / "x.tar.xz").write_text("no archive")
    with pytest.raises(DamagedFileError, match="x.tar.xz is damaged"):
        read_evidence([str(tmp_path / "c")])


def test_command(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    write_sweep(tmp_path / "logs" / "donuts")
    output = tmp_path / "evidence"
    flags = [f"--runs={tmp_path / 'logs'}", f"--pack={output}"]
    assert study.main(["", "claims", *flags]) == 0
    assert "donuts.tar.xz" in capsys.readouterr().out


def test_nothing_to_pack_is_an_error(tmp_path: Path) -> None:
    """Before, it was 0 kB and exit status 0."""
    (tmp_path / "empty").mkdir()
    (tmp_path / "file").touch()
    for name in ("empty", "file"):
        with pytest.raises(ConfigError, match="--runs must match finished"):
            pack_evidence([str(tmp_path / name)], tmp_path / "packed")
    assert not (tmp_path / "packed").exists()


def test_an_archive_that_is_a_pipe(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "a.tar.xz")
    with pytest.raises(DamagedFileError, match="it is a pipe or a device"):
        with unpack([str(tmp_path)]):
            pass
