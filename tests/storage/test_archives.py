"""Archives of other people write nothing, run nothing and do not fill memory.

The attacks go through the command that users type, `study claims --runs=..`.
"""

import io
import lzma
import os
import random
import re
import tarfile
from collections.abc import Callable
from pathlib import Path, PurePosixPath

import pytest

from tfcomp import study
from tfcomp.storage import archives, files
from tfcomp.storage.archives import read_archive
from tfcomp.storage.files import DamagedFileError

ANY = re.compile(".*")
Tar = tarfile.TarFile


def add_file(tar: Tar, name: str, content: bytes) -> None:
    entry = tarfile.TarInfo(name)
    entry.size = len(content)
    tar.addfile(entry, io.BytesIO(content))


def add_link(tar: Tar, name: str, target: str, kind: bytes) -> None:
    entry = tarfile.TarInfo(name)
    entry.type, entry.linkname = kind, target
    tar.addfile(entry)


def leave_the_folder(tar: Tar, victim: Path) -> None:
    """CVE-2025-4517: a path too long for `realpath` to be followed."""
    long, path = "d" * 247, ""
    for letter in "abcdefghijklmnop":
        folder = tarfile.TarInfo(os.path.join(path, long))
        folder.type = tarfile.DIRTYPE
        tar.addfile(folder)
        add_link(tar, os.path.join(path, letter), long, tarfile.SYMTYPE)
        path = os.path.join(path, long)
    letters = "/".join("abcdefghijklmnop")
    link = os.path.join(letters, "l" * 254)
    add_link(tar, link, "../" * 16, tarfile.SYMTYPE)
    up = f"{link}/{'../' * 12}{str(victim.parent)[1:]}"
    add_link(tar, "escape", up, tarfile.SYMTYPE)
    add_link(tar, "hard", f"escape/{victim.name}", tarfile.LNKTYPE)
    add_file(tar, "hard", b"attacker")


def pack(path: Path, fill: Callable[[Tar], None]) -> Path:
    with tarfile.open(path, "w:xz") as tar:
        fill(tar)
    return path


def test_nothing_is_written_outside(
    tmp_path: Path, capsys: pytest.CaptureFixture
) -> None:
    """Before, the file of somebody's home was another one."""
    victim = tmp_path / "bashrc"
    victim.write_text("mine")
    path = pack(
        tmp_path / "evil.tar.xz", lambda tar: leave_the_folder(tar, victim)
    )
    argv = ["", "claims", f"--runs={path}", f"--output={tmp_path / 'out'}"]
    with pytest.raises(DamagedFileError, match="evil.tar.xz is damaged"):
        study.main(argv)
    assert victim.read_text() == "mine"
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    "kind",
    [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE, tarfile.CHRTYPE],
)
def test_members_that_are_no_files(tmp_path: Path, kind: bytes) -> None:
    """Before, `run.flags` could be a link to another member."""

    def fill(tar: Tar) -> None:
        add_file(tar, "a/data.csv", b"x")
        add_link(tar, "a/run.flags", "data.csv", kind)

    path = pack(tmp_path / "a.tar.xz", fill)
    with pytest.raises(DamagedFileError, match="no regular file"):
        read_archive(path, ANY)


@pytest.mark.parametrize(
    "name",
    ["/etc/run.flags", "../run.flags", "a/../../b", "a/\x1b[2Jb", "a//b"],
)
def test_names_that_lead_elsewhere(tmp_path: Path, name: str) -> None:
    path = pack(tmp_path / "a.tar.xz", lambda tar: add_file(tar, name, b"x"))
    with pytest.raises(DamagedFileError, match="has a member"):
        read_archive(path, ANY)


def test_only_expected_files_are_read(tmp_path: Path) -> None:
    def fill(tar: Tar) -> None:
        add_file(tar, "a/run.flags", b"flags")
        add_file(tar, "a/model.keras", b"weights")

    path = pack(tmp_path / "a.tar.xz", fill)
    found = read_archive(path, re.compile(r".*/run\.flags"))
    assert found == {PurePosixPath("a/run.flags"): b"flags"}


def test_archives_that_fill_the_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """92 kB can unpack to 600 MB."""
    monkeypatch.setattr(files, "MAX_UNPACKED", 2**26)
    path = tmp_path / "bomb.tar.xz"
    path.write_bytes(lzma.compress(bytes(2**27), preset=0))
    with pytest.raises(DamagedFileError, match="it holds more than 64 MB"):
        read_archive(path, ANY)
    monkeypatch.setattr(archives, "MAX_MEMBERS", 3)

    def fill(tar: Tar) -> None:
        for number in range(4):
            add_file(tar, f"{number}.csv", b"")

    path = pack(tmp_path / "many.tar.xz", fill)
    with pytest.raises(DamagedFileError, match="too many or too large"):
        read_archive(path, ANY)


def test_damage_at_any_place(tmp_path: Path) -> None:
    """Before, corrupt xz data were a traceback (`_lzma.LZMAError`)."""
    rng = random.Random(0)

    def fill(tar: Tar) -> None:
        for number in range(4):
            add_file(tar, f"a/{number}.csv", rng.randbytes(500))

    good = pack(tmp_path / "good.tar.xz", fill)
    content, path = good.read_bytes(), tmp_path / "a.tar.xz"
    whole = read_archive(good, ANY)
    for trial in range(100):
        damaged = bytearray(content)
        for place in rng.sample(range(len(content)), 1 + trial % 3):
            damaged[place] ^= rng.randrange(1, 256)
        cut = rng.randrange(len(content)) if trial % 4 == 0 else None
        path.write_bytes(damaged[:cut])
        try:
            # Bytes after the end of the data may differ.
            assert read_archive(path, ANY) == whole
        except DamagedFileError as error:
            assert "\n" not in str(error)


def test_damaged_tar_headers(tmp_path: Path) -> None:
    """Among them a size below zero, on which `tarfile` never ends."""
    rng = random.Random(1)
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w") as tar:
        for number in range(4):
            add_file(tar, f"a/{number}.csv", rng.randbytes(500))
    content, path = data.getvalue(), tmp_path / "a.tar.xz"
    negative = bytearray(content)
    negative[124:136] = (-1024).to_bytes(12, "big", signed=True)
    trials = [negative]
    for _ in range(100):
        damaged = bytearray(content)
        for place in rng.sample(range(512), 3):
            damaged[place] = rng.randrange(256)
        header = bytes(damaged[:148]) + b" " * 8 + bytes(damaged[156:512])
        damaged[148:156] = b"%06o\0 " % sum(header)  # its checksum is right
        trials.append(damaged)
    for damaged in trials:
        path.write_bytes(lzma.compress(bytes(damaged), preset=0))
        try:
            assert set(map(type, read_archive(path, ANY).values())) <= {bytes}
        except DamagedFileError as error:
            assert "\n" not in str(error)


def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "a.tar.xz")
    with pytest.raises(DamagedFileError, match="it is a pipe or a device"):
        read_archive(tmp_path / "a.tar.xz", ANY)
