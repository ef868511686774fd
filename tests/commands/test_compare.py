"""Comparison over seeds: grouping, statistics, the command."""

import csv
import json
import shutil
from pathlib import Path

import pandas as pd
import pytest

from tfcomp import compare
from tfcomp.config.errors import ConfigError
from tfcomp.config.run_flags import format_flags, parse_config
from tfcomp.tables.read import read_finished


def fake_run(folder: Path, name: str, mse: float, *flags: str) -> None:
    base = ("--flagfile=smoke.flags", f"--run_name={name}")
    path = folder / name
    path.mkdir(parents=True)
    (path / "run.flags").write_text(format_flags(parse_config([*base, *flags])))
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


def tabulate(pattern: str, *scores: str) -> pd.DataFrame:
    results = read_finished([pattern], history=False)
    return compare.tabulate_settings(results.runs, results.scores, scores)


def test_runs_are_grouped_by_what_differs(folder: Path) -> None:
    # A copy of a run is no second seed.
    shutil.copytree(folder / "a0", folder / "copy")
    table = tabulate(f"{folder}/*", "ood/mse")
    found = table[["depth", "seeds", "ood/mse mean"]].to_numpy().tolist()
    assert found == [[2, 3, 3.0], [3, 1, 5.0]]
    # Student's interval of 1, 2 and 6 reaches below 0; an MSE does not.
    assert 0 < table["ood/mse low"][0] < 3 < table["ood/mse high"][0]


@pytest.mark.parametrize("content", [b"{}", b"\xff"])
def test_a_damaged_run_is_left_out(
    content: bytes, folder: Path, capsys: pytest.CaptureFixture
) -> None:
    file = folder / "a1" / "metrics.json"
    file.write_bytes(content)
    assert len(read_finished([f"{folder}/*"]).runs) == 3
    error = capsys.readouterr().err
    start = f"left out: a1 cannot be read: {file} is damaged ("
    assert error.startswith(start) and error.count("\n") == 1
    rule = rf"finished run \(a1 cannot be read: {file} is damaged \(.*, got "
    with pytest.raises(ConfigError, match=rule):  # one line, where none is left
        read_finished([str(file.parent)])
    assert capsys.readouterr().err == ""


def test_command_writes_the_table(
    folder: Path, capsys: pytest.CaptureFixture
) -> None:
    flags = [f"--runs={folder}/*", "--scores=ood/mse"]
    output = f"--output={folder}/out/rate_0.1.csv"
    assert compare.main(["compare", *flags, output]) == 0
    printed = capsys.readouterr().out
    assert "| 2 | 3 | 3 ± 2.6 |" in printed
    assert "| 3 | 1 | 5 |" in printed
    assert (folder / "out/rate_0.1.md").read_text() == printed
    text = (folder / "out/rate_0.1.csv").read_text().splitlines()
    rows = list(csv.DictReader(text))
    assert float(rows[0]["ood/mse mean"]) == 3.0
    assert rows[1]["ood/mse sd"] == ""


def test_numbers_of_stages_and_runs(
    folder: Path, capsys: pytest.CaptureFixture
) -> None:
    measures = {"border_rank_correlation": 0.5, "stages": ["image"]}
    measures |= {"factorization": [1.0]}
    path = folder / "a0" / "metrics.json"
    content = json.loads(path.read_text()) | {"measures": measures}
    path.write_text(json.dumps(content))
    scores = "--scores=border_rank_correlation,layers/image/factorization"
    assert compare.main(["compare", f"--runs={folder}/*", scores]) == 0
    assert "| 2 | 3 | – | – |" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--runs=/nowhere/*"], "--runs must match"),
        (["--scores=ood/beauty"], "--scores must name scores"),
        (["--scores=id"], "--scores must name scores"),
    ],
)
def test_bad_input(folder: Path, flags: list[str], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        compare.main(["compare", f"--runs={folder}/*", *flags])
