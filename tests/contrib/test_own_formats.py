"""Formats of tables and of exports that a plugin registers."""

from pathlib import Path

import numpy as np
import pytest

from tests.datasets.own_tables import CLASSES, IMAGES
from tfcomp.config.plugins import Registry
from tfcomp.datasets import table_readers, tables
from tfcomp.datasets.factor_table import FactorTable
from tfcomp.datasets.table_readers import Arrays
from tfcomp.training import formats


def read_numbers(path: Path) -> FactorTable:
    """A file of raw bytes, or a folder with one."""
    file = next(path.iterdir()) if path.is_dir() else path
    images = np.fromfile(file, np.uint8).reshape(IMAGES.shape)
    return FactorTable(images, CLASSES)


@pytest.mark.parametrize("is_folder", [False, True])
def test_a_reader_by_the_ending(
    is_folder: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    registry = Registry("data")
    registry.register(".raw", read_numbers)
    monkeypatch.setattr(tables, "READERS", registry)
    monkeypatch.setattr(table_readers, "FOLDER_READERS", registry)
    file = tmp_path / "mine.raw"
    IMAGES.tofile(file)

    table = tables.read_table(str(tmp_path if is_folder else file))

    drawn = table.draw(table.space.grid())[..., 0]
    np.testing.assert_allclose(drawn, IMAGES / 255)


def test_a_layout_of_arrays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def read_pictures(arrays: Arrays) -> FactorTable | None:
        if "pictures" not in arrays.names:
            return None
        return FactorTable(arrays.read("pictures", None), CLASSES)

    registry = Registry("data")
    registry.register("a", lambda arrays: None)
    registry.register("b", read_pictures)
    monkeypatch.setattr(table_readers, "LAYOUTS", registry)
    np.savez(tmp_path / "mine.npz", pictures=IMAGES)

    table = tables.read_table(str(tmp_path / "mine.npz"))

    drawn = table.draw(table.space.grid())[..., 0]
    np.testing.assert_allclose(drawn, IMAGES / 255)


def test_an_export_format(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    registry = Registry("format")
    own = formats.Format(
        write=lambda run, path: path.write_text(run),
        call="image = ...",
        file="model.txt",
    )
    registry.register("text", own)
    monkeypatch.setattr(formats, "FORMATS", registry)

    formats.check_formats(["text"])
    path = formats.write_format("a run", "text", tmp_path)  # type: ignore

    assert path == tmp_path / "text" / "model.txt"
    assert path.read_text() == "a run"
