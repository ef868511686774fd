"""Folders of others in which a link leads to a folder of the user."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tfcomp.config.errors import RunError
from tfcomp.config.run_config import RunConfig
from tfcomp.datasets import materialized
from tfcomp.studies.claims.evidence import copy_text
from tfcomp.studies.thresholds.cases import list_cases
from tfcomp.studies.thresholds.search_settings import SearchSettings
from tfcomp.sweeps.grid import SweepSettings
from tfcomp.sweeps.scheduler_options import SchedulerOptions
from tfcomp.sweeps.sweep_run import Sweep
from tfcomp.sweeps.workload import Workload, run_missing

OPTIONS = SchedulerOptions(workers=1)


class Finished(Workload):
    """A sweep without missing trials; it writes only what all sweeps write."""

    kind, noun, flags_name = "sweep", "trials", "sweep.flags"

    def is_finished(self, item: Any) -> bool:
        return True

    def make_call(self, item: Any) -> Any:
        raise NotImplementedError

    def write_tables(self, failures: Mapping[str, str]) -> None:
        pass

    def write_reports(self) -> None:
        pass


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
        run_missing(Finished(sweep, [], "--depth=2\n"), OPTIONS)
    assert not (sweep / "sweep.flags").exists()
    assert [path.name for path in letter.parent.iterdir()] == [letter.name]
    assert letter.read_text() == "Dear"


def test_a_sweep_may_be_reached_through_links(
    sweep: Path, tmp_path: Path
) -> None:
    (tmp_path / "scratch").symlink_to(tmp_path)
    (tmp_path / "linked").symlink_to(sweep)
    for folder in (tmp_path / "scratch" / "sweep", tmp_path / "linked"):
        run_missing(Finished(folder, [], "--depth=2\n"), OPTIONS)
    assert (sweep / "sweep.flags").read_text() == "--depth=2\n"


def test_linked_figures_are_not_removed(sweep: Path, letter: Path) -> None:
    """Before, a report removed the files that the link leads to."""
    (sweep / "figures").symlink_to(letter.parent)
    with pytest.raises(RunError, match="figures is a link"):
        Sweep(sweep, [], "", SweepSettings()).write_reports()
    assert letter.read_text() == "Dear"


def test_results_of_searches(sweep: Path, letter: Path) -> None:
    base = RunConfig(run_name=sweep.name, log_dir=str(sweep.parent))
    (sweep / "searches").symlink_to(letter.parent)
    with pytest.raises(RunError, match="searches is a link"):
        list_cases(base, SearchSettings())[0].write_rows([])
    assert [path.name for path in letter.parent.iterdir()] == [letter.name]


def test_packed_evidence(sweep: Path, letter: Path, tmp_path: Path) -> None:
    output = tmp_path / "packed"
    output.mkdir()
    (output / "study").symlink_to(letter.parent)
    source = sweep / letter.name
    source.write_text("of others")
    with pytest.raises(RunError, match="study is a link"):
        copy_text(source, output, "study")
    assert letter.read_text() == "Dear"


def test_examples(
    sweep: Path, letter: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before, a damaged version was removed through the link."""
    monkeypatch.setattr(materialized, "name_examples", lambda _: "bumps-1")
    examples = letter.parent / "bumps-1"
    examples.mkdir()
    (sweep / "gaussian_bumps").symlink_to(letter.parent)
    with pytest.raises(RunError, match="gaussian_bumps is a link"):
        materialized.materialize(RunConfig(), sweep)
    assert examples.exists()
