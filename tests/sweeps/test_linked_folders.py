"""Folders of others in which a link leads to a folder of the user."""

from collections.abc import Callable
from pathlib import Path
from unittest.mock import Mock

import pytest

from reproduction.packing import copy_text
from reproduction.thresholds.cases import list_cases
from reproduction.thresholds.search_settings import SearchSettings
from tfcomp.config.errors import RunError
from tfcomp.config.run_config import RunConfig
from tfcomp.datasets.materialized import materialize, name_examples
from tfcomp.sweeps.grid import SweepSettings
from tfcomp.sweeps.scheduler_options import SchedulerOptions
from tfcomp.sweeps.sweep_run import Sweep
from tfcomp.sweeps.workload import run_missing


def run_finished(folder: Path) -> None:
    """Runs a sweep without missing trials; it writes what all sweeps write."""
    work = Mock(folder=folder, items=[], flags="--depth=2\n")
    work.flags_name = "sweep.flags"
    work.list_missing.return_value = []
    work.read_failures.return_value = {}
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


@pytest.mark.parametrize(
    "name", ["logs", "trials", "figures", "searches", "trials/a", "logs/a.log"]
)
def test_a_sweep_with_a_link_is_refused(
    name: str, sweep: Path, letter: Path
) -> None:
    """Before, workers wrote logs and runs into the folder of the user."""
    link = sweep / name
    link.parent.mkdir(exist_ok=True)
    link.symlink_to(letter if link.suffix else letter.parent)
    with pytest.raises(RunError, match=f"{name} is a link"):
        run_finished(sweep)
    assert not (sweep / "sweep.flags").exists()
    assert [path.name for path in letter.parent.iterdir()] == [letter.name]
    assert letter.read_text() == "Dear"


def test_a_sweep_may_be_reached_through_links(
    sweep: Path, tmp_path: Path
) -> None:
    (tmp_path / "scratch").symlink_to(tmp_path)
    (tmp_path / "linked").symlink_to(sweep)
    for folder in (tmp_path / "scratch" / "sweep", tmp_path / "linked"):
        run_finished(folder)
    assert (sweep / "sweep.flags").read_text() == "--depth=2\n"


def write_searches(folder: Path) -> None:
    base = RunConfig(run_name=folder.name, log_dir=str(folder.parent))
    list_cases(base, SearchSettings())[0].write_rows([])


@pytest.mark.parametrize(
    ("name", "write"),
    [
        # Before, a report removed the files that the link leads to.
        (
            "figures",
            lambda f: Sweep(f, [], "", SweepSettings()).write_reports(),
        ),
        ("searches", write_searches),
        ("study", lambda f: copy_text(f / "study" / "letter.txt", f, "study")),
        # Before, a damaged version was removed through the link.
        ("gaussian_bumps", lambda f: materialize(RunConfig(), f)),
    ],
)
def test_writers_follow_no_link(
    name: str, write: Callable, sweep: Path, letter: Path
) -> None:
    examples = letter.parent / name_examples(RunConfig())
    examples.mkdir()
    (sweep / name).symlink_to(letter.parent)
    with pytest.raises(RunError, match=f"{name} is a link"):
        write(sweep)
    assert {*letter.parent.iterdir()} == {examples, letter}
    assert letter.read_text() == "Dear"
