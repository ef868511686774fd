"""Packed files of other people write nothing and do not fill memory.

The attacks go through the command that users type, `study claims --runs=..`.
"""

import io
import lzma
import os
import random
import tarfile
from pathlib import Path

import pytest

from tfcomp import study
from tfcomp.config.errors import ConfigError
from tfcomp.storage import files
from tfcomp.storage.files import DamagedFileError, read_xz
from tfcomp.tables.packs import read_pack


def leave_the_folder(tar: tarfile.TarFile, victim: Path) -> None:
    """CVE-2025-4517: a path too long for `realpath` to be followed."""

    def add_link(name: str, target: str, kind: bytes) -> None:
        entry = tarfile.TarInfo(name)
        entry.type, entry.linkname = kind, target
        tar.addfile(entry)

    long, path = "d" * 247, ""
    for letter in "abcdefghijklmnop":
        folder = tarfile.TarInfo(os.path.join(path, long))
        folder.type = tarfile.DIRTYPE
        tar.addfile(folder)
        add_link(os.path.join(path, letter), long, tarfile.SYMTYPE)
        path = os.path.join(path, long)
    link = os.path.join("/".join("abcdefghijklmnop"), "l" * 254)
    add_link(link, "../" * 16, tarfile.SYMTYPE)
    up = f"{link}/{'../' * 12}{str(victim.parent)[1:]}"
    add_link("escape", up, tarfile.SYMTYPE)
    add_link("hard", f"escape/{victim.name}", tarfile.LNKTYPE)
    entry = tarfile.TarInfo("hard")
    entry.size = 8
    tar.addfile(entry, io.BytesIO(b"attacker"))


def test_nothing_is_written_outside(tmp_path: Path) -> None:
    """Before, archives were extracted, and a file of the user was another."""
    victim = tmp_path / "bashrc"
    victim.write_text("mine")
    path = tmp_path / "evil.tar.xz"
    with tarfile.open(path, "w:xz") as tar:
        leave_the_folder(tar, victim)
    argv = ["", "claims", f"--runs={path}", f"--output={tmp_path / 'out'}"]
    with pytest.raises(ConfigError, match="tar xf"):
        study.main(argv)
    # Nor is it looked into under the name of a table.
    table = path.rename(tmp_path / "evil.csv.xz")
    argv[2] = f"--runs={table}"
    with pytest.raises(DamagedFileError, match="evil.csv.xz is damaged"):
        study.main(argv)
    assert victim.read_text() == "mine"
    assert not (tmp_path / "out").exists()


def test_a_file_that_fills_the_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """92 kB can unpack to 600 MB."""
    monkeypatch.setattr(files, "MAX_UNPACKED", 2**26)
    path = tmp_path / "bomb.csv.xz"
    path.write_bytes(lzma.compress(bytes(2**27), preset=0))
    with pytest.raises(DamagedFileError, match="it holds more than 64 MB"):
        read_pack(path)


def test_damage_at_any_place(tmp_path: Path) -> None:
    """Before, corrupt xz data were a traceback (`_lzma.LZMAError`)."""
    rng = random.Random(0)
    text = "name,seed,end|id||mse\n" + "".join(
        f"r{n},{n},{rng.random()}\n" for n in range(200)
    )
    content, path = lzma.compress(text.encode()), tmp_path / "a.csv.xz"
    for trial in range(150):
        damaged = bytearray(content)
        for place in rng.sample(range(len(content)), 1 + trial % 3):
            damaged[place] ^= rng.randrange(1, 256)
        cut = rng.randrange(len(content)) if trial % 4 == 0 else None
        path.write_bytes(damaged[:cut])
        try:
            # Bytes after the end of the data may differ.
            assert read_xz(path) == text.encode()
        except DamagedFileError as error:
            assert "\n" not in str(error)
            with pytest.raises(DamagedFileError):
                read_pack(path)


def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "a.csv.xz")
    with pytest.raises(DamagedFileError, match="it is a pipe or a device"):
        read_pack(tmp_path / "a.csv.xz")
