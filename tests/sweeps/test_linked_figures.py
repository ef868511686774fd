"""A sweep of others whose `figures` leads to a folder of the user."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from tfcomp.config.errors import RunError
from tfcomp.sweeps.sweep_reports import write_reports


def test_linked_figures_are_not_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before, a report removed the files that the link leads to."""
    for name in (
        "tfcomp.sweeps.sweep_tables.tabulate_scores",
        "tfcomp.sweeps.sweep_tables.update_table",
        "tfcomp.statistics.seed_statistics.summarize",
        "tfcomp.statistics.seed_tests.compare_settings",
        "tfcomp.sweeps.sweep_reports.write_experiment",
    ):
        monkeypatch.setattr(name, lambda *_: None)
    letter = tmp_path / "Docs" / "letter.txt"
    letter.parent.mkdir()
    letter.write_text("Dear")
    sweep = tmp_path / "sweep"
    sweep.mkdir()
    (sweep / "figures").symlink_to(letter.parent)
    trial = SimpleNamespace(name="a", setting={"depth": 2}, folder=sweep)
    settings = SimpleNamespace(interval="t", pairs=False)
    with pytest.raises(RunError, match="figures is a link"):
        write_reports(sweep, cast(Any, [trial]), {}, cast(Any, settings))
    assert letter.read_text() == "Dear"
