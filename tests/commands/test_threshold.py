"""The command: from flags to tables, killed and started again."""

from __future__ import annotations

import csv
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tfcomp import threshold
from tfcomp.config.errors import ConfigError
from tfcomp.config.errors import RunError
from tfcomp.config.run_flags import parse_flags

FLAGS = (
    "--flagfile=threshold_quick.flags",
    "--grid_sizes=8",
    "--kinds=bumps",
    "--width=4",
    "--steps=5",
    "--target=1",  # out of reach: all numbers up to the maximum are tried
    "--max_bumps=64",
)


def list_records(folder: Path) -> dict[str, int]:
    """Names of the recorded trainings and when they were written."""
    records = folder / "threshold_quick" / "evaluations"
    return {p.name: p.stat().st_mtime_ns for p in records.glob("*.json")}


def start_and_kill_after_first_record(folder: Path) -> None:
    command = [sys.executable, "-m", "tfcomp.thresholds.one_search"]
    process = subprocess.Popen(
        [*command, *FLAGS, f"--log_dir={folder}"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        deadline = time.monotonic() + 120
        while not list_records(folder) and process.poll() is None:
            assert time.monotonic() < deadline
            time.sleep(0.02)
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()


def test_killed_search_goes_on_and_a_finished_one_does_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture
) -> None:
    start_and_kill_after_first_record(tmp_path)
    before = list_records(tmp_path)
    assert before
    command = ["threshold", *FLAGS, f"--log_dir={tmp_path}"]
    assert threshold.main(command) == 0
    printed = capsys.readouterr().out
    assert "1 searches to run" in printed
    assert "N=8 seed=0: position_accuracy not reached up to 64" in printed
    after = list_records(tmp_path)
    assert after.items() >= before.items()
    folder = tmp_path / "threshold_quick"
    table = (folder / "thresholds.csv").read_text()
    (row,) = csv.DictReader(table.splitlines())
    assert (row["kind"], row["grid_size"], row["seed"]) == ("bumps", "8", "0")
    assert (row["num_bumps"], row["reached"]) == ("64", "False")
    assert int(row["num_trainings"]) == len(after) > 1
    assert (folder / "slopes.csv").exists()
    assert (folder / "figures" / "threshold_position_accuracy.png").exists()
    assert threshold.main(command) == 0
    assert "searches to run" not in capsys.readouterr().out
    assert list_records(tmp_path) == after
    assert (folder / "thresholds.csv").read_text() == table


def test_failed_searches_are_reported(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture,
) -> None:
    (tmp_path / "broken.py").write_text(
        "import sys\n"
        "if sys.argv[0].endswith('one_search.py'):\n"
        "    raise ValueError('out of order')\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    path = [str(tmp_path), os.environ.get("PYTHONPATH", "")]
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(path))
    status = threshold.main(
        [
            *("threshold", *FLAGS, "--plugins=broken"),
            f"--log_dir={tmp_path}",
        ]
    )
    assert status == 1
    captured = capsys.readouterr()
    assert "1 failed" in captured.out
    reason = "--plugins: broken failed: out of order"
    assert f"bumps region=none N=8 seed=0: {reason}" in captured.err
    assert not (tmp_path / "threshold_quick" / "thresholds.csv").exists()


@pytest.mark.parametrize(
    ("flag", "message"),
    [
        ("--grid_sizes=8,18", "--grid_size must be a multiple of 4"),
        ("--regions=corner:4", "--regions must have bounds that are fractions"),
        ("--regions=blob:0.5", "--region must be one of"),
        ("--workers=-1", "--workers must be at least 0"),
    ],
)
def test_bad_flags(tmp_path: Path, flag: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        threshold.main(["threshold", *FLAGS, flag, f"--log_dir={tmp_path}"])
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["threshold", "threshold_quick"])
def test_shipped_flagfile_describes_a_search_that_can_start(name: str) -> None:
    arguments = [f"--flagfile={name}.flags"]
    settings = parse_flags(arguments, threshold.define_flags())
    searches = threshold.make_searches(settings)
    assert searches.folder.name == name
    assert len(searches.items) in (4, 30)


def test_flags_of_a_search_repeat_it(tmp_path: Path) -> None:
    values = threshold.define_flags()
    searches = threshold.make_searches(
        parse_flags([*FLAGS, "--seeds=2"], values)
    )
    file = tmp_path / "again.flags"
    file.write_text(searches.flags)
    values = threshold.define_flags()
    again = threshold.make_searches(parse_flags([f"--flagfile={file}"], values))
    assert (again.items, again.flags) == (searches.items, searches.flags)


def test_name_of_a_run_is_refused(tmp_path: Path) -> None:
    (tmp_path / "threshold_quick").mkdir()
    (tmp_path / "threshold_quick" / "run.flags").write_text("")
    with pytest.raises(RunError, match="is a single run"):
        threshold.main(["threshold", *FLAGS, f"--log_dir={tmp_path}"])


@pytest.mark.parametrize("arguments", [["--help"], ["--grid_sizes=x"]])
def test_answers_without_tensorflow(
    tmp_path: Path, arguments: list[str]
) -> None:
    script = (
        "import sys\n"
        "from tfcomp.config.errors import ConfigError\n"
        "from tfcomp.threshold import main\n"
        "try:\n"
        f"    main(['threshold', *{arguments}])\n"
        "except ConfigError:\n"
        "    pass\n"
        "heavy = {'tensorflow', 'matplotlib', 'distributed', 'scipy'}\n"
        "sys.exit(str(heavy & set(sys.modules) or ''))\n"
    )
    result = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        cwd=tmp_path,
    )
    assert (result.stderr.strip(), list(tmp_path.iterdir())) == ("", [])
