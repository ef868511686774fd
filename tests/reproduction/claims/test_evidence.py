"""Evidence from files and packs; tables of docs are those that it gives."""

import io
import json
import re
from pathlib import Path

import matplotlib
import pandas
import PIL.Image
import pytest

from reproduction.claims import read_evidence
from reproduction.claims.claim_pictures import draw_claims
from reproduction.claims.command import judge_all, list_rows, make_tables
from reproduction.claims.evidence import pack_evidence
from reproduction.command import main
from reproduction.decoders import command as decoders
from reproduction.decoders import report
from tests.reproduction.claims.planted import make_study, plant_claim
from tfcomp.config.errors import ConfigError, RunError
from tfcomp.storage.files import write_csv


def test_threshold_tables(tmp_path: Path) -> None:
    folder = tmp_path / "logs" / "threshold"
    folder.mkdir(parents=True)
    (folder / "thresholds.csv").write_text(
        "kind,grid_size,reached,num_examples\nbumps,16,True,120\n"
        "bumps,24,False,\n"
    )
    damaged = tmp_path / "logs" / "damaged"
    damaged.mkdir()
    (damaged / "slopes.csv").write_bytes(b"\xff")
    (folder / "slopes.csv").write_text(
        "kind,criterion,slope,low,high,n\n"
        "bumps,position_accuracy,2.9,2.6,3.2,9\n"
    )
    evidence = read_evidence([str(tmp_path / "logs"), str(folder)])
    (found,) = evidence.studies  # found twice, read once
    assert found.flags == {} and found.path.name == "threshold"
    first, second = found.thresholds.to_dict("records")
    assert (first["grid_size"], first["num_examples"]) == (16, 120)
    assert (first["reached"], second["reached"]) == (True, False)
    # An empty cell, and a column that the file lacks.
    assert pandas.isna(second["num_examples"]) and pandas.isna(first["seed"])
    assert found.slopes["slope"].tolist() == [2.9]
    assert f"{damaged / 'slopes.csv'} is damaged" in evidence.notes[0]
    assert evidence.groups == ()


def write_sweep(folder: Path, *flags: str) -> None:
    """The files of a planted sweep, with a file that is no evidence."""
    for run in plant_claim("C3", "reproduced").runs:
        path = folder / "trials" / f"{run.seed:04d}"
        path.mkdir(parents=True)
        values = run.flags | {"log_dir": "/home/me/logs"}
        lines = [f"--{k}={str(v).lower()}" for k, v in values.items()]
        text = "\n".join(["# tensorflow: 2", *lines, *flags])
        (path / "run.flags").write_text(text)
        (path / "metrics.json").write_text(json.dumps(run.metrics))
        (path / "measures.json").write_text(json.dumps(run.measures))
        (path / "model.keras").write_text("weights")


def write_study(folder: Path) -> None:
    """The files of a planted threshold study."""
    folder.mkdir(parents=True)
    planted = make_study("study")
    planted.thresholds.to_csv(folder / "thresholds.csv", index=False)
    planted.slopes.to_csv(folder / "slopes.csv", index=False)
    (folder / "threshold.flags").write_text("--log_dir=/home/me\n--depth=2\n")
    write_sweep(folder / "searches")


def test_packed_evidence_is_the_same(tmp_path: Path, capsys) -> None:
    write_sweep(tmp_path / "logs" / "donuts")
    write_study(tmp_path / "logs" / "slopes")
    output = tmp_path / "evidence"
    flags = [f"--runs={tmp_path / 'logs'}", f"--pack={output}"]
    assert main("claims", ["", *flags]) == 0
    printed = capsys.readouterr().out
    written = [path for path in output.rglob("*") if path.is_file()]
    assert all(f"{path}\n" in printed for path in written)
    names = {str(path.relative_to(output)) for path in written}
    tables = ("slopes.csv", "threshold.flags", "thresholds.csv")
    assert names == {"donuts.csv.xz", *(f"slopes/{name}" for name in tables)}
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


def test_what_cannot_be_packed(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="--runs must match finished"):
        pack_evidence([str(tmp_path)], tmp_path / "packed")
    write_sweep(tmp_path / "a" / "donuts")
    write_sweep(tmp_path / "b" / "donuts", "--depth=7\n")
    with pytest.raises(RunError, match="two sweeps have one name"):
        pack_evidence([str(tmp_path)], tmp_path / "packed")
    assert not (tmp_path / "packed").exists()


def test_packing_loses_no_run(tmp_path: Path, capsys) -> None:
    logs, output = tmp_path / "logs", tmp_path / "packed"
    write_sweep(logs / "donuts")
    pack_evidence([str(logs)], output)
    packed = (output / "donuts.csv.xz").read_bytes()
    # Of a damaged run there is a line, and no file gets less.
    (logs / "donuts" / "trials" / "0103" / "metrics.json").write_text("{")
    pack_evidence([str(logs)], tmp_path / "other")
    assert "left out: 0103 cannot be read" in capsys.readouterr().err
    with pytest.raises(RunError, match="donuts.csv.xz, but 1 are not among"):
        pack_evidence([str(logs)], output)
    assert (output / "donuts.csv.xz").read_bytes() == packed


ROOT = Path(__file__).parents[3]
EVIDENCE = ROOT / "reproduction" / "evidence"
DECODERS = ROOT / "reproduction" / "decoders" / "evidence"
PAGES = (
    "docs/results.md",
    "docs/claims.md",
    "reproduction/evidence/history.md",
)
NAMED = re.compile(r"<!-- (docs/\S+\.md) -->\n((?:\|.*\n)*)")


@pytest.mark.skipif(not EVIDENCE.exists(), reason="no evidence is committed")
def test_the_tables_of_the_pages_are_those_of_the_evidence(
    tmp_path: Path,
) -> None:
    evidence = read_evidence([str(EVIDENCE)])
    judged = judge_all(evidence)
    made = make_tables(evidence, judged)
    # Every verdict and number, to the last digit.
    rows = [row for r in judged["results"] for row in list_rows(r)]
    write_csv(tmp_path / "claims.csv", rows)
    expected = (ROOT / "docs/tables/claims.csv").read_text("utf-8")
    assert (tmp_path / "claims.csv").read_text("utf-8") == expected
    pinned = (ROOT / "constraints.txt").read_text("utf-8").split()
    if f"matplotlib=={matplotlib.__version__}" in pinned:  # others move text
        shown = PIL.Image.open(ROOT / "docs/figures/verdicts.png")
        made_now = io.BytesIO(draw_claims(judged["results"]) or b"")
        assert shown.tobytes() == PIL.Image.open(made_now).tobytes()
    pages = [(ROOT / page).read_text("utf-8") for page in PAGES]
    shown = NAMED.findall("".join(pages))
    for name, table in shown:
        assert made[Path(name).name].strip() == table.strip(), name
    found = {Path(name).stem for name, _ in shown}
    assert found >= {"verdicts", "controls", "history", "scores_hard_found"}


@pytest.mark.skipif(not DECODERS.exists(), reason="no evidence is committed")
def test_the_tables_of_decoders_are_those_of_the_evidence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The figures are made, and not tested here.
    monkeypatch.setattr(report, "figure_to_png", lambda *_, **__: b"")
    flags = ["decoders", f"--runs={DECODERS}", f"--output={tmp_path}"]
    assert decoders.main(flags) == 0
    page = (ROOT / "docs/decoders.md").read_text("utf-8")
    for name in ("decoders.md", "solved.md", "distinct.md"):
        for table in (tmp_path / name).read_text("utf-8").split("\n\n"):
            assert table.strip() in page
    for name in ("decoders.csv", "solved.csv", "distinct.csv"):
        made = (tmp_path / name).read_text("utf-8")
        assert (ROOT / "docs/tables" / name).read_text("utf-8") == made
