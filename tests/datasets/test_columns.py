"""Columns of users' tables: the same table in every format is the same."""

import io
import json
import shutil
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pandas as pd
import PIL.Image
import pytest
from numpy.testing import assert_array_equal

import tfcomp
from tests.datasets.own_tables import load, save_pictures
from tfcomp.config.errors import ConfigError, RunError
from tfcomp.config.hashes import hash_data
from tfcomp.datasets import table_columns, table_readers
from tfcomp.datasets.regions import parse_region
from tfcomp.datasets.table_columns import TableError
from tfcomp.datasets.tables import read_table

COUNT = 24
PIXELS = np.random.default_rng(0).integers(0, 256, (COUNT, 6, 5), np.uint8)
ROWS = np.arange(COUNT)
GENRES = ("R&B", "rock,pop", "pop")
COLUMNS = {
    "floor hue": ROWS % 4 / 10,
    "kind": np.repeat(GENRES, 8),
    "large": ROWS // 4 % 2 == 1,
}
REST = {"id": np.array([f"file {row}" for row in ROWS])}
FRAME = pd.DataFrame(COLUMNS)


def encode(pixels: np.ndarray) -> bytes:
    file = io.BytesIO()
    PIL.Image.fromarray(pixels).save(file, "png")
    return file.getvalue()


def write_csv(folder: Path, frame: pd.DataFrame) -> Path:
    frame = frame.assign(file=save_pictures(folder, PIXELS))
    frame.to_csv(folder / "table.csv", index=False)
    return folder


def write_npz(folder: Path, frame: pd.DataFrame) -> Path:
    columns = {}
    for name in frame:
        column = frame[name].to_numpy()
        if column.dtype == object:
            column = column.astype(str)
        columns[name] = column
    np.savez(
        folder / "own.npz",
        images=PIXELS,
        **columns,
    )
    return folder / "own.npz"


def write_h5(folder: Path, frame: pd.DataFrame) -> Path:
    with h5py.File(folder / "own.h5", "w") as file:
        file["images"] = PIXELS
        for name in frame:
            file[name] = frame[name].to_numpy()
    return folder / "own.h5"


def list_pictures() -> list[dict[str, Any]]:
    """Pictures as Hugging Face writes them."""
    return [{"bytes": encode(image), "path": None} for image in PIXELS]


def write_parquet(folder: Path, frame: pd.DataFrame) -> Path:
    path = folder / "own.parquet"
    frame = frame.assign(image=list_pictures())
    frame.to_parquet(path)
    return path


def write_shards(folder: Path, frame: pd.DataFrame) -> Path:
    contents = list(map(encode, PIXELS))
    frame = frame.assign(picture=contents)
    frame[:10].to_parquet(folder / "train-0.parquet")
    frame[10:].to_parquet(folder / "train-1.parquet")
    return folder


FORMATS = [
    write_csv,
    write_npz,
    write_h5,
    write_parquet,
    write_shards,
]


def read_frame(
    frame: Any,
    count: int = COUNT,
    **options: Any,
) -> tfcomp.FactorTable:
    """Reads a table of the first images."""
    return tfcomp.FactorTable(
        PIXELS[:count],
        frame,
        **options,
    )


@pytest.mark.parametrize("write", FORMATS)
def test_a_table_is_the_same_in_every_format(write, tmp_path):
    frame = pd.DataFrame(COLUMNS | REST)
    expected = read_frame(FRAME)

    path = write(tmp_path, frame)
    table = read_table(str(path), ignore="id")

    assert expected.space.names == ("floor_hue", "kind", "large")
    assert expected.space["kind"].names == GENRES
    assert expected.space["large"].names == ("False", "True")
    assert table.space == expected.space
    assert_array_equal(table.points, expected.points)
    drawn = table.draw(table.points)
    assert_array_equal(drawn, expected.draw(expected.points))
    with pytest.raises(RunError, match="--ignore=id"):
        load(path)


def test_a_column_that_differs_in_each_row_is_no_factor(tmp_path):
    """Beside it, noise would be a sum of parts."""
    path = write_npz(tmp_path, pd.DataFrame(COLUMNS | REST))

    with pytest.raises(RunError, match="--ignore=id"):
        load(path, "--factors=kind,id")

    ignored = load(path, "--ignore=id").space
    chosen = load(path, "--factors=kind,large").space
    both = load(path, "--ignore=floor hue,id", "--factors=kind,large").space
    assert len(ignored) == 3
    assert chosen.shape == (3, 2)
    assert both.names == ("kind", "large")


def test_one_factor_may_differ_in_each_row():
    few = {"word": ["a", "b", "c"], "x": [0, 1, 0]}
    both = {"x": ROWS + 0.5, "y": ROWS * 2.0}
    kinds = ["continuous", "continuous"]

    tables = {
        (3, 2): read_frame(few, 3),
        (COUNT,): read_frame({"x": ROWS}),
        (8, 8): read_frame(both, kinds=kinds),
    }

    for shape, table in tables.items():
        assert table.space.shape == shape


@pytest.mark.parametrize("name", ["classes", "values"])
def test_the_flag_makes_arrays_continuous(name, tmp_path):
    path = tmp_path / "own.npz"
    numbers = np.random.default_rng(1).random((COUNT, 2))
    members = {
        "images": PIXELS,
        name: numbers,
        "names": ["x", "y"],
    }
    np.savez(path, **members)

    dataset = load(path, "--factors=y:continuous")

    (note,) = dataset.notes
    assert dataset.space.names == ("y",)
    assert f"x ({COUNT})" in note


GAPS = {
    "None": (["a", None, "b", "a"], "row 1"),
    "NaN among texts": (["a", "b", np.nan, "a"], "row 2"),
    "NaN among numbers": ([0, 1, np.nan, 3], "row 2"),
    "infinity": ([0, 1, 2, np.inf], "row 3"),
    "no date": (pd.to_datetime(["2026-01-01", None] * 2), "row 1"),
    "text among numbers": ([0, "red", 1, 2], "row 1"),
}


@pytest.mark.parametrize("name", GAPS)
def test_a_gap_is_refused_by_its_row(name):
    cells, row = GAPS[name]
    frame = pd.DataFrame({"x": [0, 1, 0, 1], "bad": cells})

    with pytest.raises(TableError, match=rf"{row} .*--ignore=bad") as error:
        read_frame(frame, 4)

    message = str(error.value)
    ignored = read_frame(frame, 4, ignore=["bad"])
    nuisance = read_frame(frame, 4, factors=["x"])
    assert "np." not in message  # NaN is nan, not np.float64(nan)
    assert ignored.space.shape == (2,)
    assert nuisance.space.names == ("x",)


def test_a_factor_may_lie_in_the_index():
    expected = read_frame(FRAME[["kind", "large", "floor hue"]])

    table = read_frame(FRAME.set_index(["kind", "large"]))

    assert table.space == expected.space
    assert_array_equal(table.rows, expected.rows)


def test_an_index_of_names_is_no_factor():
    named = FRAME.set_index(REST["id"])

    table = read_frame(named.rename_axis("id"))

    expected = read_frame(FRAME)
    assert table.space == expected.space


def test_columns_that_are_there_twice():
    columns = np.c_[ROWS % 2, ROWS % 3, ROWS % 4]
    twice = pd.DataFrame(columns, columns=["x", "x", "y"])

    with pytest.raises(TableError, match="x twice"):
        read_frame(twice)

    ignored = read_frame(twice, ignore=["x"])
    assert ignored.space.names == ("y",)


@pytest.mark.parametrize("head", ["file,x,x", "file,x,file"])
def test_heads_that_are_there_twice(head, tmp_path):
    write_csv(tmp_path, FRAME)
    rows = [f"{row}.png,{row % 2},{row % 3}" for row in ROWS]
    (tmp_path / "table.csv").write_text("\n".join([head, *rows]))

    with pytest.raises(RunError, match=r"x twice|file"):
        load(tmp_path)


def test_empty_rows_of_a_spreadsheet(tmp_path):
    write_csv(tmp_path, FRAME)
    expected = load(tmp_path)
    with (tmp_path / "table.csv").open("a") as file:
        file.write(",,,\n , ,,\n")

    dataset = load(tmp_path)

    (note,) = dataset.notes
    assert dataset.space == expected.space
    assert "empty rows" in note
    assert "2" in note


def test_unknown_columns_cannot_be_ignored(tmp_path):
    path = write_npz(tmp_path, FRAME)
    with pytest.raises(RunError, match="floor_hue, kind, large.*got shape"):
        load(path, "--ignore=shape")
    with pytest.raises(RunError, match="ignore"):
        load(path, "--ignore=floor_hue,kind,large")


START = 1_700_000_000


@pytest.mark.parametrize(
    "times",
    [
        START + 60.0 * (ROWS % 4),
        pd.to_datetime(START + 60 * (ROWS % 4), unit="s"),
    ],
)
def test_times_stay_apart(times):
    """In 32 bits, minutes of our years are equal."""
    kinds = ["continuous:4"] * 2

    table = read_frame({"t": times, "x": ROWS // 4})
    continuous = read_frame({"t": times, "x": ROWS}, kinds=kinds)

    minutes = [0, 60, 120, 180]
    factor = table.space["t"]
    origin = f"{table.notes} {factor.unit}"
    assert factor.values().tolist() == minutes
    assert "1,700,000,000" in origin or "2023-11-14 22:13:20" in origin
    assert np.unique(continuous.points[:, 0]).tolist() == minutes


def test_values_of_other_factors_are_as_given():
    for values in ([1e-9, 1e-8, 1e-4, 1.0], [1000, 1001, 1002, 1004]):
        columns = {
            "x": np.tile(values, 6),
            "y": ROWS // 4,
        }
        table = read_frame(columns)
        factor = table.space["x"]
        assert_array_equal(factor.values(), np.float32(values))
        assert "counted" not in str(table.notes)


@pytest.mark.parametrize(
    "spec, names",
    [
        ("kind:'R&B'", {"R&B"}),
        ('kind:"rock,pop"', {"rock,pop"}),
        ("kind:'rock,pop',large:True", {"rock,pop"}),
        ("large:True,kind:'R&B'", {"R&B"}),
        ("kind:'R&B'|kind:'rock,pop'", {"R&B", "rock,pop"}),
        ("not:kind:'R&B'&not:kind:#1", {"pop"}),
    ],
)
def test_levels_in_quotes(spec, names):
    table = read_frame(COLUMNS)
    region = parse_region(spec, table.space)

    held_out = table.points[region.contains(table.points)]

    values = table.space.name_values(held_out)
    assert set(values["kind"]) == names


@pytest.mark.parametrize("spec", ["kind:R&B", "kind:rock,pop"])
def test_quotes_are_asked_for(spec):
    space = read_frame(COLUMNS).space
    with pytest.raises(ConfigError, match="'R&B'|quotes"):
        parse_region(spec, space)


def test_labels_of_hugging_face_have_names(tmp_path):
    import pyarrow as pa
    from pyarrow import parquet

    label = {"_type": "ClassLabel", "names": ["cat", "dog", "fox"]}
    columns = {
        "image": list_pictures(),
        "label": ROWS % 3,
        "x": ROWS // 3,
    }
    info = {"info": {"features": {"label": label}}}
    table = pa.table(columns)
    table = table.replace_schema_metadata({"huggingface": json.dumps(info)})
    parquet.write_table(table, tmp_path / "own.parquet")

    factor = load(tmp_path / "own.parquet").space["label"]

    assert factor.categorical
    assert factor.names == ("cat", "dog", "fox")


def test_parquet_without_pictures(tmp_path):
    path = tmp_path / "own.parquet"
    frame = pd.DataFrame({"x": [0, 1], "image": ["a.png", "b.png"]})
    frame.to_parquet(path)
    with pytest.raises(RunError, match="bytes"):
        load(path)
    frame["image"] = [{"bytes": encode(PIXELS[0])}, {"bytes": None}]
    frame.to_parquet(path)
    with pytest.raises(RunError, match="row 1"):
        load(path)


def test_the_hash_covers_shards(tmp_path):
    write_shards(tmp_path, FRAME)
    before = hash_data(str(tmp_path))

    write_shards(tmp_path, FRAME.assign(large=ROWS % 2))

    assert hash_data(str(tmp_path)) != before


def test_scaling_is_a_mean_of_what_a_pixel_covers():
    color = [0.25, 0.5, 1]
    halves = np.zeros((8, 16, 3))
    halves[:, 8:] = color

    small = table_columns.scale_image(halves, 4)

    assert small.shape == (4, 4, 3)
    assert_array_equal(small[:, 0], 0)
    np.testing.assert_allclose(small[:, 3], [color] * 4)


def test_other_shapes_are_refused_before_they_are_scaled(tmp_path):
    path = tmp_path / "own.npz"
    channels_first = PIXELS[:, None]
    np.savez(path, images=channels_first, x=ROWS % 2)
    with pytest.raises(RunError, match="H, W"):
        load(path, "--image_size=3")


def test_pictures_of_several_sizes_are_scaled(tmp_path):
    write_csv(tmp_path, FRAME)
    picture = PIL.Image.fromarray(PIXELS[5][:4])
    picture.save(tmp_path / "5.png")

    with pytest.raises(RunError, match="5.png .*--image_size"):
        load(tmp_path)

    scaled = load(tmp_path, "--image_size=4")
    assert scaled.image_shape == (4, 4, 1)


@pytest.mark.parametrize(
    "write, size",
    [
        (write_csv, 0),
        (write_h5, 0),
        (write_shards, 0),
        (write_npz, 3),
    ],
)
def test_large_images_are_mapped_to_a_file(
    write,
    size,
    tmp_path,
    monkeypatch,
):
    """They have the bits of images in memory."""
    path = write(tmp_path, FRAME)
    expected = read_table(str(path), image_size=size)
    monkeypatch.setattr(table_columns, "MAX_IN_MEMORY", 100)
    monkeypatch.setattr(table_readers, "MAX_IN_MEMORY", 100)
    monkeypatch.setattr(table_columns, "PART", 10)

    table = read_table(str(path), image_size=size)

    assert isinstance(table.images, np.memmap)
    assert "not in memory" in table.notes[0]
    for _ in range(2):  # its pages are read again
        drawn = table.draw(table.points)
        assert_array_equal(drawn, expected.draw(table.points))


def test_a_full_disk_leaves_images_in_memory(tmp_path, monkeypatch):
    monkeypatch.setattr(table_columns, "MAX_IN_MEMORY", 100)
    path = write_parquet(tmp_path, FRAME)
    usage = shutil.disk_usage(tmp_path)._replace(free=100)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage)

    table = read_table(str(path))

    assert not isinstance(table.images, np.memmap)
    assert "held in memory" in table.notes[0]


def test_what_a_user_writes_into_a_mapped_copy_stays(tmp_path):
    path = tmp_path / "images.npy"
    np.save(path, np.zeros_like(PIXELS))
    images = np.load(path, mmap_mode="c")
    images[:] = PIXELS
    table = tfcomp.FactorTable(images, COLUMNS)

    table.draw(table.points)

    assert_array_equal(images, PIXELS)
