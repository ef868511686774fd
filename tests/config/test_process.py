"""Temporary files, private and gone at the end."""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from tfcomp.config.process import (
    PREFIX,
    make_private_folder,
    use_private_folder,
)


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


def test_temporary_files_go_there(place: Path) -> None:
    with use_private_folder():
        (folder,) = place.iterdir()
        assert Path(tempfile.mkdtemp()).parent == folder
        code = "import tempfile; print(tempfile.mkdtemp())"
        made = subprocess.check_output([sys.executable, "-c", code], text=True)
        assert Path(made).parent == folder
    assert os.environ["TMPDIR"] == tempfile.gettempdir() == str(place)
    assert not os.listdir(place)
