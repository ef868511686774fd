"""Temporary files: private, gone at the end, and cleared after a kill."""

import fcntl
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from tfcomp.config.private_folder import (
    MARK_FILE,
    PREFIX,
    clear_abandoned,
    make_private_folder,
    use_private_folder,
)

WAIT = """
import sys, tempfile, time
from tfcomp.config import command
from tfcomp.config.run_flags import make_flags

def act(settings):
    open(tempfile.mkstemp()[1], "w").close()
    print("ready", flush=True)
    time.sleep(600)

command.exit_on_user_error(
    lambda argv: command.run_command(argv, "", make_flags({}), act)
)
"""


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder for temporary files."""
    folder = tmp_path / "place"
    folder.mkdir()
    monkeypatch.setenv("TMPDIR", str(folder))
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


def start() -> subprocess.Popen:
    """A command that has a temporary file and waits."""
    process = subprocess.Popen(
        [sys.executable, "-c", WAIT], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout and process.stdout.readline() == "ready\n"
    return process


def test_folder_is_private_and_removed(place: Path) -> None:
    with make_private_folder() as folder:
        assert folder.parent == place
        assert folder.stat().st_mode & 0o777 == 0o700
        (folder / "below").mkdir()
        clear_abandoned()  # another process starts meanwhile
        assert folder.exists()
    assert not os.listdir(place)


def test_another_starts_before_the_lock(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before, the file was there unlocked for a moment: its folder went."""
    lock = fcntl.flock

    def lock_late(file: object, how: int) -> None:
        if how == fcntl.LOCK_EX:
            monkeypatch.setattr(fcntl, "flock", lock)
            clear_abandoned()
        lock(file, how)

    monkeypatch.setattr(fcntl, "flock", lock_late)
    with make_private_folder() as folder:
        assert fcntl.flock is lock and folder.exists()
        clear_abandoned()
        assert folder.exists()
    assert not os.listdir(place)


def test_a_folder_that_somebody_cleared(place: Path) -> None:
    with pytest.raises(ValueError, match="what went wrong"):
        with use_private_folder():
            shutil.rmtree(next(place.iterdir()))
            raise ValueError("what went wrong")


def test_temporary_files_go_there(place: Path) -> None:
    with use_private_folder():
        (folder,) = place.iterdir()
        assert Path(tempfile.mkdtemp()).parent == folder
        code = "import tempfile; print(tempfile.mkdtemp())"
        made = subprocess.check_output([sys.executable, "-c", code], text=True)
        assert Path(made).parent == folder
    assert os.environ["TMPDIR"] == tempfile.gettempdir() == str(place)
    assert not os.listdir(place)


def test_no_room_is_no_error(
    monkeypatch: pytest.MonkeyPatch, place: Path
) -> None:
    def refuse(**_: object) -> str:
        raise OSError(28, "no space left")

    monkeypatch.setattr(tempfile, "mkdtemp", refuse)
    with use_private_folder():
        assert os.environ["TMPDIR"] == str(place)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_told_to_stop(place: Path, number: int) -> None:
    with start() as process:
        process.send_signal(number)
        assert process.wait(60) == 128 + number
    assert not os.listdir(place)


def test_next_start_clears_what_was_killed(place: Path) -> None:
    with start() as alive:
        with start() as process:
            process.kill()
        assert len(os.listdir(place)) == 2
        clear_abandoned()
        assert len(os.listdir(place)) == 1  # that of the other one
        alive.kill()
    with make_private_folder():
        assert len(os.listdir(place)) == 1
    assert not os.listdir(place)


def leave_folder(place: Path) -> Path:
    """A folder that a killed command has left."""
    with start() as process:
        process.kill()
    (folder,) = place.iterdir()
    return folder


@pytest.mark.parametrize("name", ["paper", "abcd_123", "abcdefgh"])
def test_folders_of_users_stay(place: Path, name: str) -> None:
    """Before, the start of any command removed them after an hour."""
    folder = place / f"{PREFIX}{name}"
    folder.mkdir(mode=0o700)
    (folder / "scores.csv").write_text("a,b\n")
    os.utime(folder, (0, 0))
    clear_abandoned()
    assert (folder / "scores.csv").exists()


def test_a_mark_holds_for_one_folder_alone(place: Path) -> None:
    """Copied and renamed folders, and marks that are links, are of users."""
    left = leave_folder(place)
    copy = shutil.copytree(left, place / f"{PREFIX}abcdefgh")
    linked = place / f"{PREFIX}12345678"
    linked.mkdir(mode=0o700)
    (linked / MARK_FILE).symlink_to(left / MARK_FILE)
    fifo = place / f"{PREFIX}87654321"
    fifo.mkdir(mode=0o700)
    os.mkfifo(fifo / MARK_FILE)
    clear_abandoned()
    assert sorted(place.iterdir()) == sorted([copy, linked, fifo])


def test_folders_of_other_hosts_stay(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A lock that another host holds may not be seen here."""
    left = leave_folder(place)
    with monkeypatch.context() as patch:
        patch.setattr(socket, "gethostname", lambda: "other")
        clear_abandoned()
        assert left.exists()
    clear_abandoned()
    assert not left.exists()


def test_links_and_open_folders_stay(place: Path, tmp_path: Path) -> None:
    left = leave_folder(place)
    moved = left.rename(tmp_path / left.name)
    left.symlink_to(moved)
    clear_abandoned()
    assert moved.exists()
    left.unlink()
    moved.rename(left)
    left.chmod(0o755)
    clear_abandoned()
    assert left.exists()


def test_who_dies_while_we_clear_is_cleared_by_the_next(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before, a folder whose mark had gone first stayed for ever."""
    with start() as process:
        process.kill()
    (folder,) = place.iterdir()
    with monkeypatch.context() as patch:  # somebody still writes there
        (folder / "below").mkdir()
        patch.setattr(shutil, "rmtree", lambda *_, **__: None)
        clear_abandoned()
    assert folder.exists()
    clear_abandoned()
    assert not os.listdir(place)
