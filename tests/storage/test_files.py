"""Files that are damaged or links, locked folders, and versions of a model."""

import errno
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from tfcomp.config.errors import ConfigError, RunError
from tfcomp.storage import files
from tfcomp.storage.files import (
    DamagedFileError,
    add_version,
    list_versions,
    lock_folder,
    read_csv,
    read_json,
)

GARBAGE = bytes(range(256))


@pytest.mark.parametrize(
    "read, content",
    [
        (read_json, b""),
        (read_json, b"{"),
        (read_json, b"[]"),
        (read_json, b"[" * 100_000),
        (read_json, GARBAGE),
        (read_csv, b""),
        (read_csv, GARBAGE),
        (read_csv, b"a\n" + b"x" * 200_000),
        (read_csv, b"epoch,loss\n1,0.125\n2,"),
        (read_csv, b"epoch,loss\n1,0.125\n2\n"),
    ],
)
def test_damaged_files(read: Callable, content: bytes, tmp_path: Path):
    path = tmp_path / "numbers"
    path.write_bytes(content)
    with pytest.raises(DamagedFileError, match="numbers"):
        read(path)


def test_tables_are_read_as_written(tmp_path: Path):
    path = tmp_path / "history.csv"
    rows = [{"epoch": "1", "loss": "0.125"}, {"epoch": "2", "loss": ""}]
    files.write_csv(path, rows)
    assert read_csv(path) == rows


# Links in folders of others would lead our writing to other files.
SECRET = "export PATH=/usr/bin\n"


@pytest.fixture
def victim(tmp_path: Path) -> Path:
    """A file of the user outside of the folder that others prepared."""
    path = tmp_path / "home" / ".bashrc"
    path.parent.mkdir()
    path.write_text(SECRET)
    return path


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    path = tmp_path / "theirs"
    path.mkdir()
    return path


@pytest.mark.parametrize("name", [".partial-a.txt", ".partial-", "a.txt"])
def test_files_replace_links(name: str, folder: Path, victim: Path):
    (folder / name).symlink_to(victim)

    files.write_text(folder / "a.txt", "$(id)")

    assert victim.read_text() == SECRET
    assert not (folder / "a.txt").is_symlink()
    assert (folder / "a.txt").read_text() == "$(id)"


def test_folders_replace_links(folder: Path, victim: Path):
    (folder / "keras").symlink_to(victim.parent)

    with files.replace_folder(folder, "keras") as partial:
        (partial / ".bashrc").write_text("$(id)")

    assert victim.read_text() == SECRET
    assert (folder / "keras" / ".bashrc").read_text() == "$(id)"


def test_logs_replace_links(folder: Path, victim: Path):
    (folder / "a.log").symlink_to(victim)
    with files.open_log(folder / "a.log") as log:
        log.write(b"$(id)")
    assert victim.read_text() == SECRET
    assert (folder / "a.log").read_text() == "$(id)"


@pytest.mark.parametrize("name", ["new", ".bashrc"])
def test_locks_follow_no_link(name: str, folder: Path, victim: Path):
    (folder / ".lock").symlink_to(victim.with_name(name))
    with lock_folder(folder):
        assert not (folder / ".lock").is_symlink()
    assert [path.name for path in victim.parent.iterdir()] == [".bashrc"]
    assert victim.read_text() == SECRET


# Folders


@pytest.mark.parametrize("path", ["", "/dev/null", "/dev/null/x", "dangling/x"])
def test_folders_that_cannot_be_made(path: str, working_folder: Path):
    (working_folder / "dangling").symlink_to("nowhere")
    with pytest.raises(ConfigError, match="--log_dir must name a folder"):
        files.check_folder("log_dir", path)


def test_a_link_to_nothing_is_named(working_folder: Path):
    (working_folder / "saved_models").symlink_to("/nowhere/x")
    with pytest.raises(ConfigError, match="saved_models is a link to nothing"):
        files.check_folder("export_dir", "saved_models/donut")


def test_folders_that_can_be_made(working_folder: Path):
    (working_folder / "link").symlink_to(".")
    for path in (".", "a/b/c", "a" * 255, "link/x", str(working_folder)):
        files.check_folder("log_dir", path)
    assert len(list(working_folder.iterdir())) == 1


def test_a_waiting_process_gets_its_turn(tmp_path: Path):
    order = []

    def wait():
        with lock_folder(tmp_path, wait=True):
            order.append("second")

    with lock_folder(tmp_path):
        thread = threading.Thread(target=wait)
        thread.start()
        thread.join(0.2)
        order.append("first")
    thread.join()
    assert order == ["first", "second"]


# A process that is killed while it works in a folder without locks.
KILLED = """
import fcntl, os, pathlib, signal, sys
from tfcomp.storage.files import lock_folder
def refuse(*_):
    raise OSError(int(sys.argv[2]), "no locks")
if sys.argv[2] != "0":
    fcntl.flock = refuse
with lock_folder(pathlib.Path(sys.argv[1])):
    os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.fixture(params=[0, errno.ENOSYS, errno.ENOLCK, errno.EOPNOTSUPP])
def code(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> int:
    """What the file system answers if a lock is wanted."""

    def refuse(*_: object):
        raise OSError(request.param, "no locks")

    if request.param:
        monkeypatch.setattr("fcntl.flock", refuse)
    return request.param


def test_folders_are_locked_on_all_file_systems(
    code: int, tmp_path: Path, recwarn: pytest.WarningsRecorder
):
    hint = f"remove {tmp_path}/.lock.soft$" if code else f" in {tmp_path}$"
    for _ in range(2):
        with lock_folder(tmp_path):
            with pytest.raises(RunError, match=hint):
                with lock_folder(tmp_path):
                    pass
    assert os.listdir(tmp_path) == [".lock"]
    assert not recwarn.list


@pytest.mark.parametrize("code", [0, errno.ENOLCK], indirect=True)
@pytest.mark.parametrize("wait", [False, True])
def test_locks_of_killed_processes_are_void(
    wait: bool, code: int, tmp_path: Path
):
    command = [sys.executable, "-c", KILLED, str(tmp_path), str(code)]
    assert subprocess.run(command).returncode == -signal.SIGKILL
    assert (tmp_path / ".lock.soft").exists() == bool(code)
    with lock_folder(tmp_path, wait=wait):
        pass


# Versions of a model


def write_weights(folder: Path):
    (folder / "weights").write_text("1")


def never(version: Path) -> bool:
    return False


def test_versions_are_in_order_of_their_numbers(tmp_path: Path):
    assert list_versions(tmp_path / "none") == []
    for name in ("10", "9", ".partial-7", "x", "²", "٣", "1a", ".lock"):
        (tmp_path / name).mkdir()
    assert [v.name for v in list_versions(tmp_path)] == ["9", "10"]


@pytest.mark.parametrize("error", [OSError, KeyboardInterrupt])
def test_an_interrupted_writer_leaves_nothing(
    error: type[BaseException], tmp_path: Path
):
    def fail(folder: Path):
        write_weights(folder)
        assert list_versions(tmp_path) == []
        raise error

    (tmp_path / ".partial-1").mkdir()  # of a process that was killed

    with pytest.raises(error):
        add_version(tmp_path, fail, never)
    assert os.listdir(tmp_path) == [".lock"]
