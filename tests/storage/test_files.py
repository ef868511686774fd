"""Reading what may be damaged: one error, which names the file."""

from pathlib import Path

import pytest

from tfcomp.storage.files import (
    MAX_TEXT,
    DamagedFileError,
    read_csv,
    read_json,
    write_csv,
)

GARBAGE = bytes(range(256))


@pytest.mark.parametrize(
    "content", [b"", b"{", b"[]", b"3", b"[" * 100_000, GARBAGE]
)
def test_damaged_json(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "metrics.json"
    path.write_bytes(content)
    with pytest.raises(DamagedFileError, match="metrics.json is damaged"):
        read_json(path)


@pytest.mark.parametrize("cut", [-1, -2, -4, -6])
def test_cut_csv(cut: int, tmp_path: Path) -> None:
    path = tmp_path / "history.csv"
    rows = [{"epoch": "1", "loss": "0.125"}, {"epoch": "2", "loss": ""}]
    write_csv(path, rows)
    assert read_csv(path) == rows
    path.write_bytes(path.read_bytes()[:cut])
    with pytest.raises(DamagedFileError, match="history.csv is damaged"):
        read_csv(path)


@pytest.mark.parametrize("content", [b"", GARBAGE, b"a\n" + b"x" * 200_000])
def test_damaged_csv(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "history.csv"
    path.write_bytes(content)
    with pytest.raises(DamagedFileError, match="history.csv is damaged"):
        read_csv(path)


def test_huge_file(tmp_path: Path) -> None:
    """Before, 3 GB were read into memory."""
    path = tmp_path / "metrics.json"
    with open(path, "wb") as file:
        file.truncate(MAX_TEXT + 1)
    with pytest.raises(DamagedFileError, match="it has more than 128 MB"):
        read_json(path)
