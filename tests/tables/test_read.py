"""Runs as two tables: every number of every file, exactly, from any place."""

import json
import lzma
import math
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import tfcomp
from reproduction.packing import write_pack
from tfcomp import compare
from tfcomp.storage import files
from tfcomp.storage.files import DamagedFileError
from tfcomp.tables import read_results
from tfcomp.tables.read import KEYS, Results, read_pack

ROOT = Path(__file__).parents[2]
HISTORY = "epoch,train/loss,ood/mse\n1,0.5,0.25\n2,0.125,\n"
METRICS: dict[str, Any] = {
    "id": {
        "mse": 0.1,
        "hit_rate": None,
        "mine": 3,
    },
    "ood": {"mse": 1 / 3, "relative_mse": 1e-300},
    "layers": {
        "code": {"factorization": 1.0},
        "image": {"factorization": 0.5},
    },
    "train": {
        "seconds": 9,
        "attempts": [{"seed": 7}],
    },
    "own_measures": {
        "mine": {
            "label": "a count",
            "limits": [0, 9],
        }
    },
    "weights_hash": "ab12",
}
MEASURES: dict[str, Any] = {
    "version": "abc",
    "stages": ["code", "image"],
    "factorization": [0.9, 0.8],
    "probe": [0.3, None],
    # As long as the list of stages.
    "border_relative_mse": [0.5, 0.25],
    "multiple_peaks_by_height_ood": [0.1, 0.2],
    "axis_ratio": 2,
    "start": {
        "factorization": [0.7, 0.6],
        "axis_ratio": 1.5,
    },
}
# As a person would list them.
EXPECTED = [
    ("end", "all", "code", "factorization", 1.0),
    ("end", "all", "image", "factorization", 0.5),
    ("end", "id", "", "mse", 0.1),
    ("end", "id", "", "hit_rate", math.nan),
    ("end", "id", "", "mine", 3.0),
    ("end", "ood", "", "mse", 1 / 3),
    ("end", "ood", "", "relative_mse", 1e-300),
    ("end", "all", "", "train/seconds", 9.0),
    ("end", "all", "", "train/attempts/0/seed", 7.0),
    ("end", "all", "code", "probe", 0.3),
    ("end", "all", "image", "probe", math.nan),
    ("end", "all", "", "border_relative_mse/0", 0.5),
    ("end", "all", "", "border_relative_mse/1", 0.25),
    ("end", "all", "", "multiple_peaks_by_height_ood/0", 0.1),
    ("end", "all", "", "multiple_peaks_by_height_ood/1", 0.2),
    ("end", "all", "", "axis_ratio", 2.0),
    ("start", "all", "code", "factorization", 0.7),
    ("start", "all", "image", "factorization", 0.6),
    ("start", "all", "", "axis_ratio", 1.5),
]


def write_run(folder: Path, *flags: str) -> Path:
    """A finished and measured run."""
    folder.mkdir(parents=True)
    lines = ["# tfcomp: 0.1.0", "# tensorflow: 2.21.0", "--width=8", *flags]
    (folder / "run.flags").write_text("\n".join(lines) + "\n")
    write_metrics(folder)
    return folder


def list_rows(numbers: pd.DataFrame) -> list[tuple]:
    table = numbers.drop(columns="run")
    return list(table.itertuples(index=False, name=None))


def check_rows(numbers: pd.DataFrame):
    """Compares rows to the last bit; NaN equals NaN."""
    assert repr(list_rows(numbers)) == repr(EXPECTED)


def pack(folder: Path, name: str, results: Results) -> tuple[Path, bool]:
    return write_pack(folder, name, results.runs, results.numbers)


def write_metrics(run: Path, **changes: Any):
    content = METRICS | {"measures": MEASURES} | changes
    (run / "metrics.json").write_text(json.dumps(content))


def test_every_number_of_a_run(tmp_path):
    folder = write_run(tmp_path / "r", "--seed=105", "--depth=3")

    runs, numbers = tfcomp.read_runs(tmp_path)

    check_rows(numbers)
    (run,) = runs.to_dict("records")
    assert set(numbers["run"]) == {run["run"]}
    expected = {
        "seed": 105,
        "round": 1,
        "depth": 3,
        "name": "r",
        "study": "r",
        "folder": str(folder),
        "tensorflow": "2.21.0",
        "measured_with": "abc",
        "model": "cnn",  # the default
    }
    assert run | expected == run


def test_epochs_are_those_of_the_history(tmp_path):
    folder = write_run(tmp_path / "r")
    (folder / "history.csv").write_text(HISTORY)

    _, numbers = tfcomp.read_runs(folder)

    assert list_rows(numbers)[len(EXPECTED) :] == [
        ("epoch 1", "all", "", "train/loss", 0.5),
        ("epoch 1", "ood", "", "mse", 0.25),
        ("epoch 2", "all", "", "train/loss", 0.125),
    ]


def sort_numbers(results: Results) -> pd.Series:
    numbers = results.numbers.set_index(["run", *KEYS])
    return numbers["value"].sort_index()


def test_a_packed_study_has_the_same_numbers(tmp_path):
    sweep = tmp_path / "logs" / "sweep"
    # A shallow network first, whose stages are some of those of a deeper one.
    flags = ["--learning_rate=3e-4", "--log_dir=/home/me", "--flag_of_1999=no"]
    depths = {
        2: ["code", "image"],
        3: ["code", "s_0", "image"],
    }
    for depth, stages in depths.items():
        trial = sweep / "trials" / str(depth)
        folder = write_run(trial, f"--depth={depth}", *flags)
        layers = {}
        for number, stage in enumerate(stages):
            layers[stage] = {"f": number / 7}
        write_metrics(folder, layers=layers)
    before = read_results([str(sweep)])

    path, is_new = pack(tmp_path, "sweep", before)
    after = Results(read_pack(path))

    assert is_new
    assert pack(tmp_path, "sweep", before) == (path, False)
    assert b"/home/me" not in lzma.decompress(path.read_bytes())
    assert list(after.runs["flag_of_1999"]) == ["no", "no"]
    pd.testing.assert_frame_equal(
        after.runs.drop(columns="folder"),
        before.runs.drop(columns="folder"),
    )
    pd.testing.assert_series_equal(
        sort_numbers(after),
        sort_numbers(before),
        check_exact=True,
    )


def test_a_flag_of_a_later_version_changes_no_hash(tmp_path):
    """An old table has no such column, and its runs are the same ones."""
    folder = write_run(tmp_path / "r", "--depth=3", "--rank=16")
    table = read_results([str(folder)])
    old = table.runs.drop(columns="noise")

    path, _ = write_pack(tmp_path, "old", old, table.numbers)

    (run,) = read_pack(path)
    assert run.row["run"] == table.runs["run"][0]
    assert run.row["noise"] == 0.0


def test_a_flag_of_an_earlier_version_changes_no_hash(tmp_path):
    """Runs without it are packed beside runs that have it."""
    write_run(tmp_path / "old", "--seed=1", "--flag_of_1999=no")
    write_run(tmp_path / "new", "--seed=2")
    both = read_results([str(tmp_path)])
    hashes = both.runs.set_index("name")["run"]

    path, _ = pack(tmp_path, "both", both)

    for run in read_pack(path):
        assert run.row["run"] == hashes[run.row["name"]]
    # Nor does a study change with the runs that are read beside it.
    alone = read_results([str(tmp_path / "new")])
    path, _ = pack(tmp_path, "new", alone)
    beside = both.runs[both.runs["name"] == "new"]
    again = write_pack(tmp_path, "new", beside, alone.numbers)
    assert again == (path, False)


def test_a_retired_flag_tells_no_runs_apart(tmp_path):
    write_run(tmp_path / "old", "--seed=1", "--orthogonal=False")
    write_run(tmp_path / "new", "--seed=2")
    table = read_results([str(tmp_path)])
    assert table.runs["setting"].nunique() == 1
    assert "orthogonal" not in table.runs
    # Else old runs could not be compared with new ones.
    flags = table.runs.drop(columns=["run", "name", "study", "folder", "seed"])
    assert flags.nunique().max() == 1


def test_repeats_are_left_out(tmp_path):
    for number in range(3):
        folder = write_run(tmp_path / f"r{number}", "--seed=2")
        start = 1000 - number
        end = 1000 + number  # older runs were measured again
        os.utime(folder / "run.flags", (start, start))
        os.utime(folder / "metrics.json", (end, end))

    results = read_results([str(tmp_path)])

    assert list(results.runs["name"]) == ["r0"]
    assert len(results.numbers) == len(EXPECTED)
    assert len(results.notes) == 2
    for note in results.notes:
        assert note.endswith("r0")


@pytest.mark.parametrize(
    "content",
    [
        b"no archive",
        lzma.compress(b""),
        lzma.compress(b"name,seed\nx\n"),
        lzma.compress(b"name,seed\nx,1\ny,1\n"),  # a run twice
        lzma.compress(b'name,seed\n"x,1\n'),
    ],
)
def test_damaged_packs_are_one_line(tmp_path, content):
    (tmp_path / "x.csv.xz").write_bytes(content)
    with pytest.raises(DamagedFileError, match="x.csv.xz") as caught:
        tfcomp.read_runs(tmp_path)
    assert "\n" not in str(caught.value)


def test_a_file_that_fills_the_memory(tmp_path, monkeypatch):
    """92 kB can unpack to 600 MB."""
    monkeypatch.setattr(files, "MAX_UNPACKED", 2**20)
    path = tmp_path / "bomb.csv.xz"
    path.write_bytes(lzma.compress(bytes(2**21), preset=0))
    with pytest.raises(DamagedFileError, match="more than 1 MB"):
        read_pack(path)


def test_the_number_of_a_claim_in_five_lines(monkeypatch):
    """C6 with bump codes, as its verdict has it (docs/outputs.md)."""
    text = (ROOT / "docs" / "outputs.md").read_text("utf-8")
    blocks = text.split("```python\n")
    (example,) = [block for block in blocks if "fall =" in block]
    names: dict[str, Any] = {}
    monkeypatch.chdir(ROOT)

    exec(example.partition("```")[0], names)

    assert names["fall"].count() == 19
    assert f"{names['fall'].mean():.6f}" == "-0.053027"
    assert names["works"].tolist() == [18 / 19, 1.0]


Read = Callable[[], list[str]]


@pytest.fixture
def read_expected(tmp_path, capsys) -> Read:
    """Reads `logs` in three ways; checks numbers, returns what is left out."""
    logs = tmp_path / "logs"
    output = tmp_path / "out"

    def read() -> list[str]:
        _, numbers = tfcomp.read_runs(logs)
        check_rows(numbers)

        compare.main(["", f"--runs={logs}", f"--tables={output}"])
        written = pd.read_csv(output / "numbers.csv", dtype=str).fillna("")
        written["value"] = pd.to_numeric(written["value"])
        check_rows(written)

        return capsys.readouterr().err.splitlines()

    return read


@pytest.mark.parametrize(
    "content",
    [
        "",
        HISTORY[:-3],  # the last row is cut off
        HISTORY.strip(),  # or its last digits
        HISTORY.replace("0.25", "high"),
        HISTORY.replace("epoch", "step"),
        "epoch,train/loss\n",
        "{}",
    ],
)
def test_a_damaged_history_loses_no_run(content, tmp_path, read_expected):
    """The scores at the end stay, and what is missing is said."""
    folder = write_run(tmp_path / "logs" / "r", "--seed=1")
    (folder / "history.csv").write_text(content)

    lines = read_expected()

    assert len(lines) == 2
    for line in lines:
        assert line.startswith("left out: epochs of r")


@pytest.mark.parametrize(
    "change, place",
    [
        ({"ood": {"mse": "0.01"}}, "ood/mse"),
        ({"layers": {"code": {"probe": "1"}}}, "layers/code/probe"),
        ({"train": {"attempts": [{"seed": "1"}]}}, "train/attempts/0/seed"),
        ({"measures": {"axis_ratio": "2"}}, "measures/axis_ratio"),
    ],
)
def test_a_number_that_is_text_is_said(change, place, tmp_path, read_expected):
    write_run(tmp_path / "logs" / "a", "--seed=1")
    damaged = write_run(tmp_path / "logs" / "b", "--seed=2")
    write_metrics(damaged, **change)

    lines = read_expected()

    assert len(lines) == 2
    for line in lines:
        assert line.startswith("left out: b")
        assert place in line
