"""Folders of pictures with tables."""

import hashlib
import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import PIL.Image
import pytest

from tests.datasets.own_tables import load
from tfcomp.config.errors import RunError
from tfcomp.config.hashes import hash_data
from tfcomp.datasets.factor_table import FactorTable
from tfcomp.datasets.table_checks import TableError
from tfcomp.datasets.table_files import tabulate
from tfcomp.datasets.tables import find_polarity, read_table

PIXELS = np.random.default_rng(0).integers(0, 256, (8, 6, 5), np.uint8)
HALVES = [f"{i // 4},{i % 4 / 10}" for i in range(8)]


def write(folder: Path, rows: Sequence[str], head: str = "file,x,y") -> Path:
    """Writes eight pictures and a table with these rows."""
    for number, pixels in enumerate(PIXELS):
        PIL.Image.fromarray(pixels).save(folder / f"{number}.png")
    (folder / "a.csv").write_text("\n".join([head, *rows]), "utf-8")
    return folder


def number(cells: Sequence[str]) -> list[str]:
    return [f"{i}.png,{row}" for i, row in enumerate(cells)]


def assert_is_read(table: FactorTable) -> None:
    assert table.space.names == ("x", "y") and table.space.shape == (2, 4)
    np.testing.assert_allclose(table.space["y"].values(), [0, 0.1, 0.2, 0.3])
    images = table.draw(table.space.grid())
    np.testing.assert_allclose(images[..., 0], PIXELS / 255, rtol=1e-6)


def test_heads_of_the_table(tmp_path: Path) -> None:
    for head in ("file,x,y", "file_name,x,y"):
        assert_is_read(read_table(str(write(tmp_path, number(HALVES), head))))
    rows = [f"{i},{row}" for i, row in enumerate(number(HALVES))]
    for head in (",file,x,y", "Unnamed: 0,file,x,y"):  # an index of pandas
        assert_is_read(read_table(str(write(tmp_path, rows, head))))
    with pytest.raises(TableError, match="must have rows and columns file"):
        read_table(str(write(tmp_path, number(HALVES), "picture,x,y")))


@pytest.mark.parametrize(
    "cells",
    [
        ["01", "1", "2", "03"],
        ["1E1", "10", "2", "3"],
        ["1000000001", "1000000002", "1500000000", "2000000000"],
        ["12345678901234567890", "12345678901234567891", "3", "4"],
    ],
)
def test_categories_stay_apart(cells: list[str], tmp_path: Path) -> None:
    rows = number([f"{half},{cell}" for half in "ab" for cell in cells])
    table = read_table(str(write(tmp_path, rows, "file,x,id:categorical")))
    assert table.space["id"].names == tuple(cells)
    assert not table.is_repeated


def test_small_values_of_a_logarithmic_scale_stay_apart() -> None:
    values = np.array([1e-9, 1e-8, 1e-4, 1.0])
    for sign in (1, -1):
        table = tabulate({"dose": sign * np.repeat(values, 2)})
        assert table.space["dose"].size == 4
    rounded = np.array([0.1, 0.1 + 1e-9, 0.3, -1e-17, 0.0])
    assert tabulate({"x": rounded}).space["x"].size == 3


def test_semicolons_and_tabs_separate_columns(tmp_path: Path) -> None:
    semicolons = [r.replace(",", ";").replace(".", ",") for r in HALVES]
    for ending, separator, cells in (
        ("csv", ";", semicolons),
        ("tsv", "\t", [row.replace(",", "\t") for row in HALVES]),
    ):
        folder = tmp_path / ending
        folder.mkdir()
        rows = [f"{i}.png{separator}{row}" for i, row in enumerate(cells)]
        write(folder, rows, separator.join(["file", "x", "y"]))
        (folder / "a.csv").rename(folder / f"b.{ending}")
        assert_is_read(read_table(str(folder)))


def test_hidden_files_do_not_count(tmp_path: Path) -> None:
    folder = write(tmp_path, number(HALVES))
    before = hash_data(str(folder))
    for name in ("._a.csv", "._0.png", ".DS_Store"):
        (folder / name).write_bytes(b"\0\5\x16\7")
    assert_is_read(read_table(str(folder)))
    assert hash_data(str(folder)) == before


def test_the_hash_covers_every_pixel(tmp_path: Path) -> None:
    rows = [f"images/{n}.bmp,{cells}" for n, cells in enumerate(HALVES)]
    (tmp_path / "a.csv").write_text("\n".join(["file,x,y", *rows]))
    (tmp_path / "images").mkdir()
    for n, pixels in enumerate(PIXELS):
        PIL.Image.fromarray(pixels).save(tmp_path / f"images/{n}.bmp")
    before = hash_data(str(tmp_path))
    assert_is_read(read_table(str(tmp_path)))

    # The same size, one other pixel.
    picture = tmp_path / "images/3.bmp"
    size = picture.stat().st_size
    PIL.Image.fromarray(PIXELS[3] ^ np.eye(6, 5, dtype="u1")).save(picture)
    assert picture.stat().st_size == size
    assert hash_data(str(tmp_path)) != before
    with pytest.raises(RunError, match="is not what the run was made with"):
        load(tmp_path, f"--data_hash={before}")


def test_runs_of_an_earlier_version_find_their_folder(tmp_path: Path) -> None:
    """Version 0.4 recorded names and sizes of pictures."""
    folder = write(tmp_path, number(HALVES))
    digest = hashlib.sha256()
    for file in sorted(folder.iterdir()):
        digest.update(f"{file.name}\0{file.stat().st_size}\0".encode())
        if file.suffix == ".csv":
            digest.update(file.read_bytes())
    dataset = load(folder, f"--data_hash={digest.hexdigest()[:16]}")
    assert len(dataset.splits.all) == 8


@pytest.mark.parametrize(
    ("cell", "words"),
    [
        ("", "must have a value in every row of y, got '' in row 4"),
        ("nan", "must have a value in every row of y, got 'nan' in row 4"),
        ("True", "or the head y:categorical, got 'True' in row 4"),
    ],
)
def test_an_odd_cell_is_named(cell: str, words: str, tmp_path: Path) -> None:
    cells = [*HALVES[:2], f"0,{cell}", *HALVES[3:]]
    with pytest.raises(RunError) as caught:
        load(write(tmp_path, number(cells)))
    assert words in str(caught.value)


def test_pictures_that_run_programs_are_not_opened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Pillow gives an EPS file of any name to Ghostscript."""
    mark, tools = tmp_path / "mark", tmp_path / "bin"
    tools.mkdir()
    (tools / "gs").write_text(f"#!/bin/sh\ntouch {mark}\n")
    (tools / "gs").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tools}:{os.environ['PATH']}")
    folder = tmp_path / "data"
    folder.mkdir()
    write(folder, number(HALVES))
    image = PIL.Image.fromarray(PIXELS[3]).convert("RGB")
    image.save(folder / "3.png", format="EPS")
    with pytest.raises(RunError, match="images must be PNG, JPEG, .* 3.png"):
        load(folder)
    assert not mark.exists()


def test_transparent_pixels_are_black(tmp_path: Path) -> None:
    write(tmp_path, number(HALVES))
    for place in range(8):
        layers = np.full((8, 8, 4), 255, np.uint8)
        layers[..., 3] = 0
        layers[place, 2:4, 3] = 255
        PIL.Image.fromarray(layers).save(tmp_path / f"{place}.png")
    table = read_table(str(tmp_path))
    assert find_polarity(table) == "bright"
    expected = np.zeros((8, 8, 8, 3))
    for place in range(8):
        expected[place, place, 2:4] = 1
    np.testing.assert_array_equal(table.draw(table.space.grid()), expected)
