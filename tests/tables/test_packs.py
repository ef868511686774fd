"""Damaged or hostile packed files are told in one line."""

import lzma
import os
import random
from pathlib import Path

import pytest

from tfcomp.storage import files
from tfcomp.storage.files import DamagedFileError, read_xz
from tfcomp.tables.packs import read_pack


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
