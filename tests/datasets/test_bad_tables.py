"""Tables that cannot be read are answered in one line."""

import random
import zipfile
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import PIL.Image
import pytest

import tfcomp
from tests.datasets.own_tables import (
    CLASSES,
    IMAGES,
    NAMES,
    PIXELS,
    load,
    write_folder,
    write_own,
)
from tfcomp import train
from tfcomp.config.errors import ConfigError, RunError
from tfcomp.config.run_flags import parse_config
from tfcomp.datasets.table_columns import TableError
from tfcomp.datasets.table_readers import OPTIONS
from tfcomp.datasets.tables import read_table
from tfcomp.models.registry import make_checked_dataset

UNIT = IMAGES / 255
COLOR = np.stack([IMAGES] * 3, axis=1)  # channels first


def assert_is_refused(path: Path, word: str):
    """In one line, which has the word."""
    with pytest.raises(RunError, match=word) as error:
        load(path)
    message = str(error.value)
    assert message.startswith(f"--data={path}")
    assert message.isprintable()


# What is wrong with a file, and a word of the line that refuses it.
NOT_A_NUMBER = np.where(CLASSES == 2, np.nan, CLASSES)
BAD_MEMBERS = [
    ({"classes": None}, "members"),
    ({"classes": CLASSES[:-1]}, "23"),
    ({"classes": NOT_A_NUMBER}, "image 16"),
    ({"values": NOT_A_NUMBER}, "nan for class 2"),
    ({"values": -CLASSES.astype(float)}, "rise"),
    ({"values": np.full((24, 3), "a")}, "numbers"),
    ({"names": np.array(NAMES, object)}, "allow_pickle"),
    ({"names": ["a", "b"]}, "one entry"),
    ({"names": ["a/b", "y", "x"]}, "a/b"),
    ({"kinds": ["round", "ordered", "ordered"]}, "kinds of shape"),
    ({"kinds": ["ordered", "periodic:no", "ordered"]}, "period"),
    ({"levels": ["a,b\x7f,c", "", ""]}, "printable"),
    ({"levels": ["a,b,a", "", ""]}, "must differ"),
    ({"sizes": [3, 2, 3]}, "sizes of x"),
    ({"sizes": [3, 4.5, 4]}, "sizes of size"),
    ({"sizes": [3, 10**9, 4]}, "sizes of size"),
    *[({name: np.array(5)}, name) for name in OPTIONS],
]


@pytest.mark.parametrize("members, word", BAD_MEMBERS)
def test_bad_member_is_one_line(members, word, tmp_path):
    path = write_own(tmp_path / "bad.npz", **members)
    assert_is_refused(path, word)


def cut(folder: Path) -> Path:
    path = write_own(folder / "cut.npz")
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    return path


def claim_size(folder: Path) -> Path:
    """A member that says it is huge, and has a few bytes."""
    path = write_own(folder / "huge.npz", classes=None)
    head = {
        "descr": "<i8",
        "fortran_order": False,
        "shape": (10**12, 3),
    }
    with (
        zipfile.ZipFile(path, "a") as archive,
        archive.open("classes.npy", "w") as file,
    ):
        np.lib.format.write_array_header_1_0(file, head)
        file.write(bytes(100))
    return path


def claim_chunks(folder: Path) -> Path:
    """In chunks, nothing of huge images need be in the file."""
    with h5py.File(folder / "own.h5", "w") as file:
        file["classes"] = CLASSES
        shape = (24, 10**6, 10**6)
        file.create_dataset(
            "images",
            shape,
            np.uint8,
            chunks=(1, 100, 100),
        )
    return folder / "own.h5"


def write_large_pictures(folder: Path) -> Path:
    """Twice the head of a picture of 20,000 by 20,000 pixels."""
    for name in "ab":  # PGM under another name
        (folder / f"{name}.png").write_bytes(b"P5 20000 20000 255\n")
    (folder / "list.csv").write_text("file,x\na.png,0\nb.png,1\n")
    return folder


def write_program(folder: Path) -> Path:
    """Pillow would give an EPS file of any name to Ghostscript."""
    rows = [f"{n}.png,{n}" for n in range(8)]
    write_folder(folder, rows, "file,x")
    image = PIL.Image.fromarray(PIXELS[3]).convert("RGB")
    image.save(folder / "3.png", format="EPS")
    return folder


BAD_FILES = {
    cut: "zip",
    claim_size: "allocate",
    claim_chunks: "at most",
    write_large_pictures: "limit",
    write_program: "3.png",
}


@pytest.mark.parametrize("write, word", BAD_FILES.items())
def test_damaged_file_is_one_line(write, word, tmp_path):
    assert_is_refused(write(tmp_path), word)


@pytest.mark.parametrize(
    "head, row, word",
    [
        ("file,x,y", "2.png,0,", "row 4"),
        ("file,x,y", "2.png,0,nan", "row 4"),
        ("file,x,y", "2.png,0,True", "row 4"),
        ("picture,x,y", "2.png,0,1", "must have rows"),
        ("file,x,y", "20.png,0,1", "20.png"),
        ("file,x,y", "0.png,0,1", "once"),
    ],
)
def test_bad_row_of_a_folder(
    head,
    row,
    word,
    tmp_path,
):
    rows = [f"{n}.png,{n // 4},{n % 4}" for n in range(8)]
    rows[2] = row
    write_folder(tmp_path, rows, head)
    assert_is_refused(tmp_path, word)


# What people have in memory: images, classes, a word of the refusal.
BAD_ARRAYS = {
    "channels first": (COLOR, CLASSES, "transpose"),
    "flat images": (IMAGES.reshape(24, -1), CLASSES, "H, W"),
    "one factor, flat": (IMAGES, np.arange(24), "classes"),
    "strings": (IMAGES, np.full((24, 3), "a"), "levels"),
    "NaN": (np.where(UNIT > 0.99, np.nan, UNIT), CLASSES, "finite"),
    "huge class": (IMAGES, CLASSES * 10**6, "counted from 0"),
    "negative": (IMAGES.astype(int) - 200, CLASSES, "images"),
    "17 bits": (IMAGES.astype(int) * 1000, CLASSES, "16 bits"),
    "equal": (IMAGES[:1].repeat(len(IMAGES), axis=0), CLASSES, "differ"),
    "one image": (IMAGES[:1], CLASSES[:1], "vary"),
    "floats to 255": (IMAGES.astype(np.float32), CLASSES, "images / 255"),
    "floats from -1": (2 * UNIT - 1, CLASSES, "0 to 1"),
}


@pytest.mark.parametrize("name", BAD_ARRAYS)
def test_bad_arrays(name):
    images, classes, word = BAD_ARRAYS[name]
    with pytest.raises(TableError, match=word):
        tfcomp.FactorTable(images, classes).check_pixels()


@pytest.mark.parametrize(
    "factor, word",
    [
        ("color", "shape, size, x"),
        ("size:continuous:1", "bins"),
        ("size:round", "kinds"),
    ],
)
def test_bad_factors(factor, word):
    table = tfcomp.FactorTable(IMAGES, CLASSES, names=NAMES)
    with pytest.raises(TableError, match=word):
        table.select([factor])


def test_words_are_not_continuous():
    colors = {"color": np.array(["red", "blue", "green", "red"])}
    with pytest.raises(TableError, match="numbers"):
        tfcomp.FactorTable(None, colors, factors=["color:continuous"])


def test_columns_of_other_lengths_are_named():
    columns = {
        "x": np.arange(6),
        "y": np.arange(5),
    }
    with pytest.raises(TableError) as error:
        tfcomp.FactorTable(None, columns)
    message = str(error.value).replace(",", "")
    words = set(message.split())
    assert {"x", "6", "y", "5"} <= words


def test_uneven_angles_need_their_period():
    angles = {"angle": np.array([0, 90, 270])}
    with pytest.raises(TableError, match="period"):
        tfcomp.FactorTable(
            None,
            angles,
            kinds=["periodic"],
        )
    table = tfcomp.FactorTable(
        None,
        angles,
        kinds=["periodic:360"],
    )
    assert table.space["angle"].high == 360


@pytest.mark.parametrize(
    "flag, word",
    [
        ("--data=", "--data must name"),
        ("--data=none.npz", "--data must be"),
        ("--data=tfds:/etc", "--data must be"),
        ("--data=/dev/zero", "folder"),
        ("--coordinates=continuous", "--coordinates"),
        ("--data_hash=0", "hash"),
    ],
)
def test_bad_flags_write_nothing(flag, word, working_folder):
    path = write_own(working_folder / "own.npz")
    flags = ["--dataset=table", f"--data={path}", "--region=none", flag]
    with pytest.raises((ConfigError, RunError), match=word):
        train.main(["train", *flags])
    assert list(working_folder.iterdir()) == [path]


def test_data_without_the_table(tmp_path):
    path = write_own(tmp_path / "own.npz")
    config = parse_config(["--flagfile=smoke", f"--data={path}"])
    with pytest.raises(ConfigError, match="--dataset=table"):
        make_checked_dataset(config)


@pytest.mark.parametrize("kind", ["external", "link", "virtual"])
def test_hdf5_that_leads_to_other_files(kind, tmp_path):
    secret = tmp_path / "secret"
    secret.write_bytes(bytes(range(64)))
    other = str(tmp_path / "other.h5")
    with h5py.File(other, "w") as file:
        file["images"] = np.zeros((4, 4, 4), np.uint8)

    path = tmp_path / "data.h5"
    shape = (4, 4, 4)
    with h5py.File(path, "w") as file:
        file["classes"] = np.arange(4)[:, None]
        if kind == "external":
            place = [(str(secret), 0, 64)]
            file.create_dataset(
                "images",
                shape,
                np.uint8,
                external=place,
            )
        elif kind == "link":
            file["images"] = h5py.ExternalLink(other, "images")
        else:
            layout = h5py.VirtualLayout(shape, np.uint8)
            layout[:] = h5py.VirtualSource(other, "images", shape=shape)
            file.create_virtual_dataset("images", layout)
    with pytest.raises(TableError, match="file itself"):
        read_table(str(path))


def test_hdf5_with_two_names_of_an_array(tmp_path):
    path = tmp_path / "data.h5"
    with h5py.File(path, "w") as file:
        file["pixels"] = IMAGES
        file["classes"] = CLASSES
        file["images"] = h5py.SoftLink("/pixels")
        file["dangling"] = h5py.SoftLink("/nowhere")
    assert len(read_table(str(path)).points) == len(CLASSES)


TYPES = ("i1", "u8", "f2", "f8", "c16", "?", "S3", "U3", "M8[s]")
ODD = (np.nan, np.inf, -1, 1e30, 2**62, 0.5, 10**6)
WORDS = ("", "=1", "\x1b[2J", "a\u202e", "a,b", "é", "x" * 500)
# What Python says of a mistake in our own code.
SLIPS = ("no attribute", "unsized", "ufunc", "iterable", "unhash", "index out")


def change(array: np.ndarray, rng: random.Random) -> Any:
    """The array with another type, shape or value."""
    is_third = np.arange(array.size).reshape(array.shape) == 3
    changes = [
        lambda: array.astype(rng.choice(TYPES)),
        lambda: array[: rng.randrange(len(array))],
        lambda: array.reshape(-1),
        lambda: array[None],
        lambda: array[..., None],
        lambda: array.flat[0],
        lambda: np.repeat(array, rng.choice([0, 2, 1000]), 0),
        lambda: rng.choice(WORDS),
        lambda: np.full(array.shape, rng.choice(WORDS)),
        lambda: np.where(is_third, rng.choice(ODD), array),
    ]
    try:
        return rng.choice(changes)()
    except (ValueError, TypeError):  # text that is no number
        return np.zeros(3)


@pytest.mark.filterwarnings("error")  # one line, and nothing above it
@pytest.mark.parametrize("seed", range(40))
def test_every_table_is_taken_or_refused_in_one_line(seed, tmp_path):
    rng = random.Random(seed)
    members = {
        "images": IMAGES,
        "classes": CLASSES,
        "names": np.array(NAMES),
        "values": CLASSES.astype(float),
        "kinds": np.array(["ordered", "ordered", "periodic:4"]),
        "levels": np.array(["a,b,c", "", ""]),
        "units": np.array(NAMES),
    }
    name = rng.choice(sorted(members))
    members[name] = change(members[name], rng)
    path = write_own(tmp_path / "own.npz", **members)
    try:
        dataset = load(path)
        dataset.render(dataset.splits.train[:3])
    except (ConfigError, RunError) as error:
        message = str(error)
        assert message.startswith("--data")
        assert message.isprintable()
        assert not any(slip in message for slip in SLIPS)
