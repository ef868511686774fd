"""The same command again, with other flags, or after a full disk."""

import contextlib
import errno
import itertools
import os
import re
import resource
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tfcomp import train
from tfcomp.config.errors import RunError, describe_refusal
from tfcomp.storage import files

pytestmark = pytest.mark.usefixtures("untraced")

FLAGS = (
    "--flagfile=smoke.flags --model=mlp --depth=1 --width=4 --grid_size=8 "
    "--region=square:3-5 --epochs=2 --steps_per_epoch=1 --eval_every=0 "
    "--layerwise_every=0 --nopictures --noexport"
).split()
# A process that prints whether the command has imported TensorFlow.
WITHOUT_TENSORFLOW = """
import sys
from tfcomp import train
status = train.main(["train", *sys.argv[1:]])
print("status", status, "tensorflow" in sys.modules)
"""
Command = Callable[..., int]


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a finished run of a tiny network, to be copied."""
    folder = tmp_path_factory.mktemp("trained")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        assert train.main(["train", *FLAGS]) == 0
    return folder


@pytest.fixture
def command(trained: Path, working_folder: Path) -> Command:
    """The command that made the run, with more flags, beside a copy of it."""
    shutil.copytree(trained, working_folder, dirs_exist_ok=True)
    return lambda *flags: train.main(["train", *FLAGS, *flags])


@pytest.fixture
def run(working_folder: Path) -> Path:
    return working_folder / "tensorboard_logs/smoke"


def list_files(folder: Path) -> dict[Path, int]:
    return {
        path: path.stat().st_mtime_ns
        for path in folder.rglob("*")
        if path.is_file()
    }


def test_the_same_command_prints_the_same_without_tensorflow(
    command: Command, working_folder: Path, capsys: pytest.CaptureFixture
):
    assert command() == 0
    first = capsys.readouterr().out
    assert "relative MSE" in first
    before = list_files(working_folder)

    again = subprocess.run(
        [sys.executable, "-c", WITHOUT_TENSORFLOW, *FLAGS],
        capture_output=True,
        text=True,
    )

    assert again.stdout == f"{first}status 0 False\n", again.stderr
    assert list_files(working_folder) == before


def test_other_flags_are_all_named_and_nothing_is_written(
    command: Command, working_folder: Path
):
    before = list_files(working_folder)
    changes = re.escape("--width=4 (not 8), --seed=0 (not 3)")

    with pytest.raises(RunError, match=changes):
        command("--width=8", "--seed=3")

    assert list_files(working_folder) == before


def test_overwrite_leaves_only_the_files_of_the_user(
    command: Command,
    run: Path,
):
    old = ["analysis/report.html", "outputs/epoch_1.npz"]
    own = ["notes.md", "analysis/notes.md", "checkpoints/a/b.csv", "mine/x"]
    for name in old + own:
        (run / name).parent.mkdir(parents=True, exist_ok=True)
        (run / name).write_text("mine")

    assert command("--width=8", "--epochs=1", "--overwrite") == 0

    for name in own:
        assert (run / name).read_text() == "mine"
    assert not any((run / name).exists() for name in old)
    assert len(list(run.glob("events*"))) == 1
    lines = (run / "run.flags").read_text().splitlines()
    assert "--width=8" in lines
    assert "--overwrite=false" in lines


def test_overwrite_of_what_is_no_run(command: Command, working_folder: Path):
    notes = working_folder / "tensorboard_logs/notes/thesis.tex"
    notes.parent.mkdir(parents=True)
    notes.write_text("mine")

    with pytest.raises(RunError, match="something else"):
        command("--overwrite", "--run_name=notes")

    assert notes.read_text() == "mine"


@contextlib.contextmanager
def refuse_write(number: int) -> Iterator[None]:
    """Lets a disk be full at a write, counted from 1, of a whole file."""
    counter, replace = itertools.count(1), os.replace

    def fill(source: Path, target: Path):
        if next(counter) == number:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        replace(source, target)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(files.os, "replace", fill)
        yield


@contextlib.contextmanager
def limit_files(size: int) -> Iterator[None]:
    """Lets the system, and so TensorFlow as well, refuse larger files."""
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)


def test_refused_writes_lose_nothing(
    trained: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture,
):
    """The next start resumes, and says so if there is nothing to resume."""
    places = [f"--log_dir={tmp_path}/logs", "--checkpoint_seconds=0"]
    command = ["train", *FLAGS, *places, "--resume"]
    run = tmp_path / "logs/smoke"
    for refusal, reason in (
        (refuse_write(1), "No space left"),
        (limit_files(2000), "File too large"),
        (refuse_write(3), "No space left"),
    ):
        with pytest.raises(Exception, match=reason) as caught, refusal:
            train.main(command)
        assert "/smoke/" in describe_refusal(caught.value)
        assert not list(run.glob(".partial-*"))
    assert "nothing to resume at" in capsys.readouterr().err

    assert train.main(command) == 0

    assert "nothing to resume" not in capsys.readouterr().err
    other = trained / "tensorboard_logs/smoke"
    curves = [(path / "history.csv").read_bytes() for path in (run, other)]
    assert curves[0] == curves[1]
