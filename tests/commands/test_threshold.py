"""The command: from flags to tables, killed and started again."""

import csv
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tfcomp.config.errors import ConfigError, RunError
from tfcomp.config.run_flags import parse_flags
from tfcomp.studies.thresholds import command as threshold
from tfcomp.studies.thresholds.command import ThresholdSearches

FLAGS = (
    "--flagfile=threshold_quick.flags",
    "--grid_sizes=8",
    "--kinds=bumps",
    "--width=4",
    "--steps=5",
    "--target=1",  # out of reach: all numbers up to the maximum are tried
    "--max_bumps=64",
)


def search(folder: Path, *flags: str) -> int:
    return threshold.main(["threshold", *FLAGS, *flags, f"--log_dir={folder}"])


def make_searches(*flags: str) -> ThresholdSearches:
    return threshold.make_searches(parse_flags(flags, threshold.define_flags()))


def list_results(folder: Path) -> dict[str, int]:
    """Names of the recorded searches, and when they were written."""
    results = folder / "threshold_quick" / "searches"
    return {p.name: p.stat().st_mtime_ns for p in results.glob("[!.]*.json")}


def search_until_first_result(folder: Path, *flags: str) -> None:
    """Runs searches one after another, and kills the process after one."""
    code = (
        "import sys\n"
        "from tfcomp.studies.thresholds import one_search\n"
        "one_search.main(sys.argv)"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", code, *FLAGS, *flags, f"--log_dir={folder}"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        deadline = time.monotonic() + 120
        while not list_results(folder) and process.poll() is None:
            assert time.monotonic() < deadline
            time.sleep(0.02)
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()


def test_killed_searches_go_on_and_finished_ones_do_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture
) -> None:
    search_until_first_result(tmp_path, "--seeds=2")
    before = list_results(tmp_path)
    assert len(before) == 1
    assert search(tmp_path, "--seeds=2") == 0
    printed = capsys.readouterr().out
    assert "1 searches to run" in printed
    assert "N=8 seed=1: position_accuracy not reached up to 64" in printed
    after = list_results(tmp_path)
    assert after.items() > before.items()
    folder = tmp_path / "threshold_quick"
    table = (folder / "thresholds.csv").read_text()
    first, _ = csv.DictReader(table.splitlines())
    assert (first["kind"], first["grid_size"]) == ("bumps", "8")
    assert (first["num_bumps"], first["reached"]) == ("64", "False")
    assert int(first["num_trainings"]) > 1
    assert (folder / "slopes.csv").exists()
    assert (folder / "figures" / "threshold_position_accuracy.png").exists()
    assert search(tmp_path, "--seeds=2") == 0
    assert "searches to run" not in capsys.readouterr().out
    assert list_results(tmp_path) == after
    assert (folder / "thresholds.csv").read_text() == table


def test_failed_searches_are_reported(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture,
) -> None:
    (tmp_path / "broken.py").write_text(
        "import multiprocessing\n"
        "if multiprocessing.parent_process():\n"  # in a worker
        "    raise ValueError('out of order')\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path), prepend=os.pathsep)
    assert search(tmp_path, "--plugins=broken") == 1
    captured = capsys.readouterr()
    assert "1 failed" in captured.out
    reason = "--plugins: broken failed: ValueError: out of order"
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
        search(tmp_path, flag)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["threshold", "threshold_quick"])
def test_shipped_flagfile_describes_a_search_that_can_start(name: str) -> None:
    searches = make_searches(f"--flagfile={name}.flags")
    assert searches.folder.name == name
    assert len(searches.items) in (4, 30)


def test_flags_of_a_search_repeat_it(tmp_path: Path) -> None:
    searches = make_searches(*FLAGS, "--seeds=2")
    file = tmp_path / "again.flags"
    file.write_text(searches.flags)
    again = make_searches(f"--flagfile={file}")
    assert (again.items, again.flags) == (searches.items, searches.flags)


def test_name_of_a_run_is_refused(tmp_path: Path) -> None:
    (tmp_path / "threshold_quick").mkdir()
    (tmp_path / "threshold_quick" / "run.flags").write_text("")
    with pytest.raises(RunError, match="is a single run"):
        search(tmp_path)


def test_answers_without_tensorflow(
    run_lightly: Callable[..., str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    run_lightly("study", "thresholds", "--help")
    run_lightly("study", "thresholds", "--grid_sizes=x", status=2)
    assert list(tmp_path.iterdir()) == []
