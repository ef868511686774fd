"""A disk that is full: one line, nothing half written, equal bits later."""

import contextlib
import errno
import itertools
import os
import resource
from collections.abc import Iterator
from pathlib import Path

import pytest

from tfcomp.config.errors import RunError
from tfcomp.storage import files

TINY = (
    "--flagfile=smoke.flags --model=mlp --depth=1 --width=4 --grid_size=8 "
    "--region=square:3-5 --epochs=2 --steps_per_epoch=2 --eval_every=0 "
    "--layerwise_every=0 --nopictures --noexport --checkpoint_seconds=0"
).split()


def train_here(folder: Path, *flags: str) -> Path:
    """Trains in this process; returns the run folder."""
    from tfcomp import train

    places = [f"--log_dir={folder}/logs", f"--export_dir={folder}/models"]
    assert train.main(["train", *TINY, *places, *flags]) == 0
    return folder / "logs/smoke"


@contextlib.contextmanager
def refuse_write(number: int) -> Iterator[None]:
    """Lets a disk be full at a write, counted from 1, of a whole file."""
    counter, replace = itertools.count(1), os.replace

    def fill(source: Path, target: Path) -> None:
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


def test_refused_writes_lose_nothing(tmp_path: Path) -> None:
    run = tmp_path / "logs/smoke"
    again = ".*the same command and --resume$"
    for refusal, line in (
        (refuse_write(1), f"/smoke/run.flags: No space .*;{again}"),
        (limit_files(2000), f"/smoke/.*: File too large;{again}"),
        (refuse_write(3), f"/smoke/.*: No space .*;{again}"),
    ):
        with pytest.raises(RunError, match=line), refusal:
            train_here(tmp_path, "--resume")
        assert not list(run.glob(".partial-*"))
    train_here(tmp_path, "--resume")
    other = train_here(tmp_path / "whole")
    curves = [(path / "history.csv").read_bytes() for path in (run, other)]
    assert curves[0] == curves[1]


@pytest.mark.parametrize("size", [0, 9999])
def test_a_file_is_old_or_new(size: int, tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes(b"old")
    with pytest.raises(OSError, match="File too large") as caught:
        with limit_files(size):
            files.write_bytes(path, bytes(10_000))
    assert caught.value.filename == str(path)
    assert path.read_bytes() == b"old" and os.listdir(tmp_path) == ["a.csv"]
