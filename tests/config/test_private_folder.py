"""Temporary files: private, and gone at the end."""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from tfcomp.config.private_folder import (
    PREFIX,
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


def test_folder_is_private_and_removed(place: Path) -> None:
    with make_private_folder() as folder:
        assert folder.parent == place and folder.name.startswith(PREFIX)
        assert folder.stat().st_mode & 0o777 == 0o700
        (folder / "below").mkdir()
    assert not os.listdir(place)


def test_a_folder_that_was_cleared_hides_no_error(place: Path) -> None:
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
    def refuse(*_: object) -> str:
        raise OSError(28, "no space left")

    monkeypatch.setattr(tempfile, "mkdtemp", refuse)
    with use_private_folder():
        assert os.environ["TMPDIR"] == str(place)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_told_to_stop(place: Path, number: int) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", WAIT], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout and process.stdout.readline() == "ready\n"
        process.send_signal(number)
        assert process.wait(60) == 128 + number
    assert not os.listdir(place)


def test_folders_of_others_stay(place: Path) -> None:
    """No start of a command removes a folder that it did not make."""
    folder = place / f"{PREFIX}abcdefgh"
    folder.mkdir(mode=0o700)
    (folder / "scores.csv").write_text("a,b\n")
    os.utime(folder, (0, 0))
    with use_private_folder():
        pass
    assert (folder / "scores.csv").exists()
