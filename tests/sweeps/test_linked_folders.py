"""Sweeps that are reached through links, or have links in their folder."""

from pathlib import Path
from unittest.mock import Mock

import pytest

from tfcomp.sweeps import sweep_page
from tfcomp.sweeps.grid import SweepSettings
from tfcomp.sweeps.pool import SchedulerOptions
from tfcomp.sweeps.sweep_run import Sweep, run_missing


def run_finished(folder: Path):
    """Runs a sweep without missing trials; it writes what all sweeps write."""
    work = Mock(
        folder=folder,
        items=[],
        flags="--depth=2\n",
    )
    work.flags_name = "sweep.flags"
    work.list_missing.return_value = []
    run_missing(work, SchedulerOptions(workers=1))


@pytest.fixture
def letter(tmp_path: Path) -> Path:
    """A file of the user, outside of the folder that others prepared."""
    path = tmp_path / "Docs" / "letter.txt"
    path.parent.mkdir()
    path.write_text("Dear")
    return path


@pytest.fixture
def sweep(tmp_path: Path) -> Path:
    path = tmp_path / "sweep"
    path.mkdir()
    return path


def test_a_sweep_may_be_reached_through_links(
    sweep: Path,
    tmp_path: Path,
):
    (tmp_path / "scratch").symlink_to(tmp_path)
    (tmp_path / "linked").symlink_to(sweep)
    for folder in (tmp_path / "scratch" / "sweep", tmp_path / "linked"):
        run_finished(folder)
    assert (sweep / "sweep.flags").read_text() == "--depth=2\n"


def test_flags_replace_a_link(sweep: Path, letter: Path):
    (sweep / "sweep.flags").symlink_to(letter)
    run_finished(sweep)
    assert letter.read_text() == "Dear"
    assert (sweep / "sweep.flags").read_text() == "--depth=2\n"


def test_a_report_removes_nothing_behind_a_link(
    sweep: Path,
    letter: Path,
    monkeypatch: pytest.MonkeyPatch,
):
    """Old figures go before new ones are drawn."""
    (sweep / "figures").symlink_to(letter.parent)
    stop = Mock(side_effect=KeyboardInterrupt)
    monkeypatch.setattr(sweep_page, "compute_numbers", stop)

    with pytest.raises(KeyboardInterrupt):
        Sweep(sweep, [], "", SweepSettings()).write_reports()

    assert letter.read_text() == "Dear"
    assert not (sweep / "figures").is_symlink()
