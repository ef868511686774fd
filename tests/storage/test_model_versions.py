"""Versions of a model are complete, whatever happens to their writers."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tfcomp.storage.output_folders import add_version, list_versions

KILLS = 15
# Writes versions of 20 files for ever, each with the number in every file.
WRITE_FOREVER = """
import itertools, pathlib, sys
from tfcomp.storage.output_folders import add_version

def write(folder):
    folder.mkdir()
    for number in range(20):
        (folder / str(number)).write_text("weights")

print("ready", flush=True)
for _ in itertools.count():
    add_version(pathlib.Path(sys.argv[1]), write, lambda last: False)
"""


def write_weights(folder: Path) -> None:
    folder.mkdir()
    (folder / "weights").write_text("1")


def never(version: Path) -> bool:
    return False


def test_versions_are_in_order_of_their_numbers(tmp_path: Path) -> None:
    assert list_versions(tmp_path / "none") == []
    for name in ("10", "9", ".partial-7", "x", "²", "٣", "1a", ".lock"):
        (tmp_path / name).mkdir()
    assert [v.name for v in list_versions(tmp_path)] == ["9", "10"]


def test_the_same_model_is_written_once(tmp_path: Path) -> None:
    folder = tmp_path / "new"
    assert add_version(folder, write_weights, never) == (folder / "1", True)
    same = add_version(folder, write_weights, lambda last: last.name == "1")
    assert same == (folder / "1", False)
    assert add_version(folder, write_weights, never) == (folder / "2", True)


@pytest.mark.parametrize("error", [OSError, KeyboardInterrupt])
def test_an_interrupted_writer_leaves_nothing(
    error: type[BaseException], tmp_path: Path
) -> None:
    def fail(folder: Path) -> None:
        write_weights(folder)
        raise error

    with pytest.raises(error):
        add_version(tmp_path, fail, never)
    assert os.listdir(tmp_path) == [".lock"]


def test_a_killed_writer_leaves_no_version(tmp_path: Path) -> None:
    for kill in range(KILLS):
        process = subprocess.Popen(
            [sys.executable, "-c", WRITE_FOREVER, str(tmp_path)],
            stdout=subprocess.PIPE,
        )
        process.stdout.readline()
        time.sleep(0.003 * kill)
        process.kill()
        process.communicate()
        for version in list_versions(tmp_path):
            texts = {path.read_text() for path in version.iterdir()}
            assert len(list(version.iterdir())) == 20 and texts == {"weights"}
    # The next writer removes what the killed ones have left.
    add_version(tmp_path, write_weights, never)
    assert not list(tmp_path.glob(".partial-*"))
