"""Tables of own images: every layout, memory, regions and samples."""

import fcntl

import numpy as np
import pandas as pd
import PIL.Image
import pytest
import tensorflow as tf
from numpy.testing import assert_allclose, assert_array_equal

import tfcomp
from tests.datasets.own_tables import (
    CLASSES,
    IMAGES,
    KINDS,
    NAMES,
    PIXELS,
    load,
    save_pictures,
    write_folder,
    write_own,
)
from tfcomp.config.errors import RunError
from tfcomp.config.hashes import hash_data
from tfcomp.datasets.regions import parse_region
from tfcomp.datasets.table_columns import TableError
from tfcomp.datasets.tables import (
    find_polarity,
    make_listed_region,
    read_table,
)

HALVES = [f"{n // 4},{n % 4 / 10}" for n in range(8)]
# With decimal commas.
SEMICOLONS = [f"{n}.png;{n // 4};0,{n % 4}" for n in range(8)]
COLOR = np.stack([IMAGES, IMAGES // 2, IMAGES // 3], axis=-1)
NO_MEMBERS = dict.fromkeys(["images", "classes", "names"])


def assert_draws(
    table: tfcomp.FactorTable,
    images: np.ndarray,
    white: float,
):
    """Images in the order of the grid, all combinations being there."""
    points = table.space.grid()
    shape = (len(points), *table.image_shape)
    expected = images.reshape(shape) / white
    assert_allclose(table.draw(points), expected, rtol=1e-6)


@pytest.mark.parametrize("ending", ["npz", "packed.npz", "h5"])
def test_own_layout(ending, tmp_path):
    path = tmp_path / f"mine.{ending}"
    nan = np.nan
    options = {
        "kinds": KINDS,
        "levels": ["square,heart,bar", "", ""],
        # Padded, and not evenly spaced.
        "values": [[0, 1, 2, nan], [1, 5, nan, nan], [0, 1, 2, 3]],
    }
    write_own(path, ending == "packed.npz", **options)

    table = read_table(str(path))
    assert_draws(table, IMAGES, 255)
    shape, size, x = table.space
    assert shape.categorical
    assert shape.names == ("square", "heart", "bar")
    assert size.values().tolist() == [1, 5]
    assert x.periodic
    assert x.high == 4
    assert table.images.dtype == np.uint8


@pytest.mark.parametrize("ending, separator", [("npz", "_"), ("h5", "/")])
def test_dsprites(ending, separator, tmp_path):
    classes = np.argwhere(np.ones((1, 3, 6, 4, 2, 2)))
    pixels = np.arange(288 * 16) % 3 == 0
    images = pixels.astype(np.uint8).reshape(288, 4, 4)
    angles = np.linspace(0, 2 * np.pi, 4)  # the last is the first again
    scales = np.linspace(0.5, 1, 6)
    values = classes.astype(float)
    values[:, 2] = scales[classes[:, 2]]
    values[:, 3] = angles[classes[:, 3]]
    members = {
        "imgs": images,
        f"latents{separator}values": values,
        f"latents{separator}classes": classes,
    }
    if ending == "npz":  # which no reader may open
        members["metadata"] = np.array({"date": "April 2017"}, dtype=object)
    path = write_own(tmp_path / f"dsprites.{ending}", **NO_MEMBERS, **members)

    table = read_table(str(path))

    names = ("shape", "scale", "orientation", "posX", "posY")
    assert table.space.names == names
    assert_draws(table, images, 1)
    shape, scale, orientation, *_ = table.space
    assert shape.names == ("square", "ellipse", "heart")
    assert_allclose(scale.values(), scales, rtol=1e-6)
    assert_allclose(orientation.values(), angles, rtol=1e-6)
    assert orientation.periodic
    assert orientation.high == pytest.approx(2 * np.pi)


def test_3dshapes(tmp_path):
    sizes = (2, 2, 3, 2, 4, 3)
    classes = np.argwhere(np.ones(sizes))
    steps = [0.1, 0.1, 0.1, 0.5, 1.0, 30.0]
    lowest = [0, 0, 0, 0.75, 0, -30]
    images = np.arange(288 * 12, dtype=np.uint8)
    images = images.reshape(288, 2, 2, 3)
    members = {
        "images": images,
        "labels": classes * steps + lowest,
    }
    path = write_own(tmp_path / "3dshapes.h5", **NO_MEMBERS | members)

    table = read_table(str(path))

    space = table.space
    turns = space["orientation"].values()
    assert space.shape == sizes
    assert turns.tolist() == [-30, 0, 30]
    assert space["floor_hue"].periodic
    assert space["shape"].categorical
    assert_draws(table, images, 255)


def number(cells: list[str]) -> list[str]:
    """Rows of a table: the name of a picture before the cells."""
    return [f"{n}.png,{row}" for n, row in enumerate(cells)]


def assert_has_halves(table: tfcomp.FactorTable):
    space = table.space
    values = space["y"].values()
    assert space.names == ("x", "y")
    assert space.shape == (2, 4)
    assert_allclose(values, [0, 0.1, 0.2, 0.3], rtol=1e-6)
    assert_draws(table, PIXELS, 255)


@pytest.mark.parametrize(
    "head, rows, ending",
    [
        ("file,x,y", number(HALVES), "csv"),
        ("file_name,x,y", number(HALVES), "csv"),
        ("Filename,x,y", number(HALVES), "csv"),
        ("image_id,x,y", number(HALVES), "csv"),
        (",file,x,y", [f"0,{row}" for row in number(HALVES)], "csv"),
        ("file;x;y", SEMICOLONS, "csv"),
        (
            "file\tx\ty",
            [row.replace(",", "\t") for row in number(HALVES)],
            "tsv",
        ),
    ],
)
def test_folder_with_a_table(
    head,
    rows,
    ending,
    tmp_path,
):
    write_folder(tmp_path, rows, head)
    (tmp_path / "a.csv").rename(tmp_path / f"b.{ending}")
    before = hash_data(str(tmp_path))
    for name in ("._a.csv", "._0.png", ".DS_Store"):  # of the system
        (tmp_path / name).write_bytes(b"\0\5\x16\7")
    assert_has_halves(read_table(str(tmp_path)))
    assert hash_data(str(tmp_path)) == before


@pytest.mark.parametrize(
    "cells",
    [
        ["01", "1", "2", "03"],
        ["1E1", "10", "2", "3"],
        ["1000000001", "1000000002", "1500000000", "2000000000"],
        ["red", "blue", "+", "=1+1"],
    ],
)
def test_categories_stay_apart(cells, tmp_path):
    pairs = [f"{half},{cell}" for half in "ab" for cell in cells]
    write_folder(tmp_path, number(pairs), "file,x,id:categorical")
    table = read_table(str(tmp_path))
    assert table.space["id"].names == tuple(cells)
    assert not table.is_repeated


def test_values_that_differ_by_rounding_are_one():
    doses = np.repeat([1e-9, 1e-8, 1e-4, 1.0], 2)
    rounded = np.array([0.1, 0.1 + 1e-9, 0.3, -1e-17, 0.0])
    for x, size in ((doses, 4), (-doses, 4), (rounded, 3)):
        table = tfcomp.FactorTable(None, {"x": x})
        assert table.space["x"].size == size


@pytest.mark.parametrize("place", ["", "../images/"])
def test_the_hash_covers_every_pixel_that_is_read(place, tmp_path):
    folder = tmp_path / "table"
    folder.mkdir()
    (tmp_path / "images").mkdir()
    rows = [f"{place}{n}.bmp,{cells}" for n, cells in enumerate(HALVES)]
    (folder / "a.csv").write_text("\n".join(["file,x,y", *rows]))
    save_pictures(folder / place, PIXELS, "bmp")
    before = hash_data(str(folder))
    assert_has_halves(read_table(str(folder)))

    (folder / "notes.txt").write_text("nothing")  # which is not read
    assert hash_data(str(folder)) == before

    # The same size, one other pixel.
    changed = PIXELS[3] ^ np.eye(6, 5, dtype=np.uint8)
    picture = PIL.Image.fromarray(changed)
    picture.save(folder / f"{place}3.bmp")
    assert hash_data(str(folder)) != before
    with pytest.raises(RunError, match="hash"):
        load(folder, f"--data_hash={before}")


def test_transparent_pixels_are_black(tmp_path):
    write_folder(tmp_path, number(HALVES), "file,x,y")
    opacity = np.zeros((8, 8, 8), np.uint8)
    rows = np.arange(8)
    opacity[rows, rows, 2:4] = 255
    white = np.full((8, 8, 8, 3), 255, np.uint8)
    layers = np.concatenate([white, opacity[..., None]], axis=-1)
    save_pictures(tmp_path, layers)

    table = read_table(str(tmp_path))

    images = table.draw(table.space.grid())
    assert find_polarity(table) == "bright"
    for color in np.moveaxis(images, -1, 0):
        assert_array_equal(color, opacity / 255)


def test_photographs_are_upright(tmp_path):
    write_folder(tmp_path, number(HALVES), "file,x,y")
    quarter_turn = 6  # clockwise, of the EXIF orientations
    exif = PIL.Image.Exif()
    exif[0x0112] = quarter_turn
    stored = [np.rot90(pixels).copy() for pixels in PIXELS]
    save_pictures(tmp_path, stored, exif=exif)
    assert_draws(read_table(str(tmp_path)), PIXELS, 255)


def test_gray_pictures_may_have_16_bits(tmp_path):
    write_folder(tmp_path, number(HALVES), "file,x,y")
    pixels = PIXELS.astype(np.uint16) * 257
    save_pictures(tmp_path, pixels)

    table = read_table(str(tmp_path))

    assert_draws(table, pixels, 2**16 - 1)
    picture = PIL.Image.fromarray(PIXELS[5])
    picture.save(tmp_path / "5.png")
    with pytest.raises(TableError, match="uint8"):
        read_table(str(tmp_path))


def test_locked_files_are_read(tmp_path):
    path = write_own(tmp_path / "own.h5")
    with path.open("rb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        assert len(read_table(str(path)).points) == len(CLASSES)


def test_missing_combinations():
    rows = np.random.default_rng(1).permutation(24)[:15]
    table = tfcomp.FactorTable(
        IMAGES[rows],
        CLASSES[rows],
        values=[None, [1, 10], None],
        names=NAMES,
        levels=[["a", "b", "c"], None, None],
        units=["", "cm", "px"],
    )
    present = np.sort(rows)
    index = table.space.to_index(table.points)
    assert_array_equal(index, CLASSES[present])
    drawn = table.draw(table.points)[..., 0]
    assert_allclose(drawn, IMAGES[present] / 255, rtol=1e-6)
    assert table.space["shape"].categorical

    missing = np.setdiff1d(np.arange(24), rows)
    grid = table.space.grid()
    with pytest.raises(TableError, match="combination"):
        table.draw(grid[missing[:1]])


@pytest.mark.parametrize(
    "level",
    [
        "-",
        "=1",
        "می\u200cخواهم",
        "\U0001f469\u200d\U0001f467",  # two people in one sign
        "\U0001fae8",  # younger than this Python
        "é\u00a0à",
    ],
)
def test_names_may_be_of_any_script(level):
    columns = {
        "g": np.array([level, "b"] * 2),
        "x": np.repeat([0, 1], 2),
    }

    table = tfcomp.FactorTable(None, columns)
    region = parse_region(f"g:{level}", table.space)

    is_held_out = region.contains(table.points)
    assert table.space["g"].names == (level, "b")
    assert is_held_out.tolist() == [True, True, False, False]


def test_named_classes_may_be_absent():
    table = tfcomp.FactorTable(
        IMAGES,
        CLASSES,
        levels=[["a", "b", "c", "d"], None, None],
        sizes=[4, 3, 6],
        values=[None, None, [0, 1, 2, 3, 4, 5]],
    )
    assert table.space.shape == (4, 3, 6)
    assert len(table.points) == 24


@pytest.mark.parametrize(
    "top, white",
    [
        (1, 1),
        (2, 255),
        (255, 255),
        (256, 511),
        (65535, 65535),
    ],
)
def test_integers_are_divided_by_what_their_bits_hold(top, white):
    images = np.zeros((24, 2, 2), np.uint16)
    images[:, 0, 0] = np.arange(24) * top // 23

    table = tfcomp.FactorTable(images, CLASSES)

    drawn = table.draw(table.points)
    assert table.scale == white
    assert drawn.max() == np.float32(top / white)


WIDE = np.repeat(COLOR, 2, axis=2)


@pytest.mark.parametrize(
    "images, classes",
    [
        (tf.constant(COLOR), tf.constant(CLASSES)),
        (COLOR, pd.DataFrame(CLASSES, columns=NAMES)),
        (np.asfortranarray(COLOR), CLASSES),
        (WIDE[:, :, ::2], CLASSES),
        (COLOR.astype(">u2"), CLASSES),
    ],
    ids=["tensors", "frame", "Fortran", "every second", "big-endian"],
)
def test_types_and_order_of_memory_change_nothing(images, classes):
    table = tfcomp.FactorTable(images, classes)

    images = table.draw(table.points)

    assert_allclose(images, COLOR / 255, rtol=1e-6)
    assert images.flags.c_contiguous


def test_plain_arrays_are_not_copied(tmp_path):
    np.save(tmp_path / "images.npy", COLOR)
    mapped = np.load(tmp_path / "images.npy", mmap_mode="r")
    for images in (COLOR, mapped):
        table = tfcomp.FactorTable(images, CLASSES)
        assert np.shares_memory(table.images, images)


@pytest.mark.parametrize("share", [0.05, 0.5, 0.9])
def test_samples_have_both_sides(share, tmp_path):
    path = write_own(tmp_path / "own.npz")
    dataset = load(path, f"--region=random:{share}", "--eval_points=8")

    splits = dataset.splits
    num_ood = round(24 * share)
    expected = min(num_ood, max(4, num_ood - 16))
    held_out = dataset.region.contains(splits.grid)
    places = dataset.space.to_place(splits.grid)
    assert not splits.is_complete
    assert len(splits.grid) == 8
    assert splits.is_ood.sum() == expected
    assert_array_equal(splits.is_ood, held_out)
    assert np.all(np.diff(places) > 0)
    assert "8 of the 24" in dataset.list_notes()[0]


LISTED = {
    "mask": lambda mask: mask,
    "numbers": np.flatnonzero,
    "list": lambda mask: np.flatnonzero(mask).tolist(),
    "function": lambda mask: is_held_out,
}


def is_held_out(values: np.ndarray) -> np.ndarray:
    shape, _, x = values.T
    return (shape == 2) & (x >= 2)


@pytest.mark.parametrize("name", LISTED)
def test_listed_regions(name, rng):
    classes = rng.permutation(CLASSES)
    table = tfcomp.FactorTable(IMAGES, classes, names=NAMES)
    listed = LISTED[name](is_held_out(classes))

    region = make_listed_region(table, listed)

    expected = parse_region("shape:2,x:2-3", table.space)
    is_ood = region.contains(table.points)
    assert_array_equal(is_ood, expected.contains(table.points))


@pytest.mark.parametrize(
    "wrong",
    [lambda v: v[:, 0], lambda v: np.array([True]), [24]],
)
def test_what_is_no_region(wrong):
    table = tfcomp.FactorTable(IMAGES, CLASSES, names=NAMES)
    with pytest.raises(TableError, match="region"):
        make_listed_region(table, wrong)
