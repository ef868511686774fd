"""Odd environments, closed streams, rights and links: no traceback."""

import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.commands.test_compare import fake_run
from tfcomp import compare
from tfcomp.config.command import exit_on_user_error
from tfcomp.config.run_config import RunConfig
from tfcomp.storage.run_folder import check_run, claim_run

NOBODY = 65534


@pytest.fixture
def shared() -> Iterator[Path]:
    """A folder that other users may look into, as ours may not."""
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:  # not of the suite
        os.chmod(folder, 0o755)
        yield Path(folder)


@pytest.fixture
def as_nobody() -> Iterator[None]:
    """Gives root the rights of nobody; others have no more rights than that."""
    if os.geteuid():
        yield
        return
    os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(0)


def call(
    main: Callable, monkeypatch: pytest.MonkeyPatch, *flags: str
) -> object:
    """The exit status of a command."""
    monkeypatch.setattr(sys, "argv", ["command", *flags])
    with pytest.raises(SystemExit) as ended:
        exit_on_user_error(main)
    return ended.value.code


@pytest.mark.parametrize("name", ["", "metrics.json"])
def test_run_that_may_not_be_read(
    name: str, shared: Path, monkeypatch, capsys, request
) -> None:
    fake_run(shared, "a0", 1.0)
    (shared / "a0" / name).chmod(0)
    place = shared / "temporary"
    place.mkdir()
    place.chmod(0o777)
    monkeypatch.setattr(tempfile, "tempdir", str(place))
    request.getfixturevalue("as_nobody")
    assert call(compare.main, monkeypatch, f"--runs={shared}/a0") == 2
    error = capsys.readouterr().err
    assert "Permission denied" in error and "Traceback" not in error
    assert error.splitlines()[-1].startswith("error: --runs must match")
    assert error.count("left out") == (not name)  # once


def test_folder_that_may_not_be_written(
    shared: Path, make_smoke: Callable[..., RunConfig], request
) -> None:
    config = make_smoke(f"--log_dir={shared}/logs")
    request.getfixturevalue("as_nobody")
    if os.access(shared, os.W_OK, effective_ids=True):
        pytest.skip("whoever made the folder may write into it")
    with pytest.raises(PermissionError):
        claim_run(config)


def test_links(tmp_path: Path, make_smoke: Callable[..., RunConfig]) -> None:
    """Folders that users name may be links."""
    (tmp_path / "disk").mkdir()
    (tmp_path / "logs").symlink_to("disk")
    with claim_run(make_smoke()):
        pass
    assert (tmp_path / "disk/smoke/run.flags").exists()
    fake_run(tmp_path, "run", 1.0)
    (tmp_path / "link").symlink_to("run")
    assert check_run(tmp_path / "link").run_name == "run"
    (tmp_path / "gone").symlink_to("nowhere")
    with pytest.raises(FileExistsError):
        claim_run(make_smoke(f"--log_dir={tmp_path}/gone"))
