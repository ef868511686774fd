"""Tables that cannot be read are answered in one line."""

import zipfile
from collections.abc import Callable
from pathlib import Path

import h5py
import numpy as np
import pytest

from tests.datasets import own_tables
from tests.datasets.own_tables import CLASSES, IMAGES, load, write_own
from tfcomp import train
from tfcomp.config.errors import ConfigError, RunError
from tfcomp.datasets.table_checks import TableError
from tfcomp.datasets.table_files import OPTIONS, read_h5, tabulate


def break_csv(folder: Path) -> Path:
    own_tables.write_folder(folder)
    (folder / "3.png").unlink()
    return folder


def cut(path: Path) -> Path:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    return path


def claim_size(path: Path, name: str, descr: str, shape: tuple) -> Path:
    """A member that says it is huge, and has a few bytes."""
    write_own(path, **{name: None})
    with (
        zipfile.ZipFile(path, "a") as archive,
        archive.open(f"{name}.npy", "w") as file,
    ):
        head = {"descr": descr, "fortran_order": False, "shape": shape}
        np.lib.format.write_array_header_1_0(file, head)
        file.write(bytes(100))
    return path


def write_large_picture(folder: Path) -> Path:
    """Twice the head of a picture of 20,000 by 20,000 pixels."""
    for name in "ab":  # PGM under another name
        (folder / f"{name}.png").write_bytes(b"P5 20000 20000 255\n")
    (folder / "list.csv").write_text("file,x\na.png,0\nb.png,1\n")
    return folder


def write_long_name(folder: Path) -> Path:
    (folder / "list.csv").write_text(f"file,x\n{'a' * 200_000},1\n")
    return folder


Make = Callable[[Path], Path]


def change(**members: object) -> Make:
    return lambda path: write_own(path, **members)


NAN = np.where(CLASSES == 2, np.nan, CLASSES)
NAN_PIXEL = np.where(IMAGES == 99, np.nan, IMAGES)
OBJECTS = np.array(own_tables.NAMES, object)
# What a file has, and words of the line that refuses it.
BAD: list[tuple[Make, str]] = [
    (change(classes=None), "members must have images and classes"),
    (change(images=None), "members must have images and classes"),
    (
        change(sizes=[3, 2, 3]),
        "sizes of x must be an integer from 4 to 1,000, got 3",
    ),
    (
        change(sizes=[1e9, 2, 4]),
        "sizes of shape must be .* to 1,000, got 1000000000",
    ),
    (change(classes=CLASSES[:-1]), "a row for each of the 24 images, got 23"),
    (change(classes=NAN), r"image 16, factor 0\), got nan"),
    (change(values=NAN), "values of shape must be one for class 2"),
    (change(values=-CLASSES.astype(float)), "rise with its classes"),
    (change(values=np.full((24, 3), "a")), "values must be numbers"),
    (change(images=IMAGES / 255e30), "must reach 1e-06"),
    (change(images=NAN_PIXEL), "must be finite, .* in image, got 3"),
    (change(names=OBJECTS), "cannot be read .Object arrays cannot be loaded"),
    (change(names=["a", "b"]), "names must have one entry for each of the 3"),
    (change(kinds=["round", "ordered", "ordered"]), "kinds of shape must be"),
    *((change(**{n: np.array(5)}), f"{n} must be a list") for n in OPTIONS),
    (change(levels=["a,b\x7f,c", "", ""]), r"got 'b.x7f'"),
    (change(names=["a/b", "y", "x"]), "without , : /, got 'a/b'"),
    (lambda p: cut(write_own(p)), "cannot be read .File is not a zip"),
    (
        lambda p: claim_size(p, "names", "<U300000000", (3,)),
        "cannot be read .EOF: reading array data",
    ),
    (
        lambda p: claim_size(p, "classes", "<i8", (10**12, 3)),
        "cannot be read .Unable to allocate",
    ),
    (lambda p: write_long_name(p.parent), "must name images that are in"),
    (lambda p: write_large_picture(p.parent), "exceeds limit of"),
    (lambda p: break_csv(p.parent), "got 3.png .1 are absent"),
]


@pytest.mark.parametrize(("make", "words"), BAD)
def test_bad_file_is_one_line(make: Make, words: str, tmp_path: Path) -> None:
    path = make(tmp_path / "bad.npz")
    with pytest.raises(RunError, match=words) as caught:
        load(path)
    assert str(caught.value).startswith(f"--data={path}")
    assert "\n" not in str(caught.value)


def test_words_are_not_continuous() -> None:
    colors = {"color": np.array(["red", "blue", "green", "red"])}
    for name, kind in (("kinds", ""), ("factors", "color:")):
        options = {name: [f"{kind}continuous"]}
        with pytest.raises(TableError, match="of color must be numbers where"):
            tabulate(colors, **options)


def test_uneven_angles_need_their_period() -> None:
    angles = {"angle": np.array([0, 90, 270])}
    with pytest.raises(TableError, match="period of its uneven values"):
        tabulate(angles, kinds=["periodic"])
    assert tabulate(angles, kinds=["periodic:360"]).space["angle"].high == 360
    rounded = {"angle": np.array([0, 0.785, 1.571, 2.356])}
    angle = tabulate(rounded, kinds=["periodic"]).space["angle"]
    assert angle.high == pytest.approx(np.pi, abs=1e-2)


@pytest.mark.parametrize(
    ("flags", "text"),
    [
        (["--data="], "--data must name a file"),
        (["--data=none.npz"], "--data must be a file or a folder that can be"),
        (["--data=tfds:/etc"], "--data must be a file or a folder"),
        (["--data=/dev/zero"], "--data must be a folder"),
        (["--coordinates=continuous"], "--coordinates must be grid"),
        (["--data_hash=0"], "is not what the run was made with"),
    ],
)
def test_bad_flags_write_nothing(
    flags: list[str], text: str, tmp_path: Path, monkeypatch
) -> None:
    path = write_own(tmp_path / "own.npz")
    monkeypatch.chdir(tmp_path)
    arguments = ["--dataset=table", f"--data={path}", "--region=none", *flags]
    with pytest.raises((ConfigError, RunError), match=text):
        train.main(["train", *arguments])
    assert list(tmp_path.iterdir()) == [path]


def test_huge_images_take_no_memory(tmp_path: Path) -> None:
    """In chunks, nothing of them need be in the file."""
    with h5py.File(tmp_path / "own.h5", "w") as file:
        file["classes"] = CLASSES
        shape = (24, 10**6, 10**6)
        file.create_dataset("images", shape, np.uint8, chunks=(1, 100, 100))
    with pytest.raises(RunError, match="images must take at most"):
        load(tmp_path / "own.h5")


@pytest.mark.parametrize("kind", ["external", "link", "soft", "virtual"])
def test_hdf5_that_leads_to_other_files(kind: str, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_bytes(bytes(range(64)))
    with h5py.File(tmp_path / "other.h5", "w") as file:
        file["images"] = np.zeros((4, 4, 4), np.uint8)
    path = tmp_path / "data.h5"
    shape = (4, 4, 4)
    with h5py.File(path, "w") as file:
        file["classes"] = np.arange(4)[:, None]
        if kind == "external":
            place = [(str(secret), 0, 64)]
            file.create_dataset("images", shape, np.uint8, external=place)
        elif kind == "link":
            file["images"] = h5py.ExternalLink(tmp_path / "other.h5", "images")
        elif kind == "soft":
            file["others"] = h5py.ExternalLink(tmp_path / "other.h5", "/")
            file["images"] = h5py.SoftLink("/others/images")
        else:
            layout = h5py.VirtualLayout(shape, np.uint8)
            other = str(tmp_path / "other.h5")
            layout[:] = h5py.VirtualSource(other, "images", shape=shape)
            file.create_virtual_dataset("images", layout)
    with pytest.raises(TableError, match="images must lie in the file itself"):
        read_h5(str(path))


def test_hdf5_with_two_names_of_an_array(tmp_path: Path) -> None:
    path = tmp_path / "data.h5"
    with h5py.File(path, "w") as file:
        file["pixels"] = IMAGES
        file["classes"] = CLASSES
        file["images"] = h5py.SoftLink("/pixels")
        file["dangling"] = h5py.SoftLink("/nowhere")
    assert len(read_h5(str(path)).points) == len(CLASSES)


@pytest.mark.parametrize("level", ["+", "-", "+noise", "@home", "=1+1"])
def test_levels_may_begin_with_any_sign(level: str, tmp_path: Path) -> None:
    path = write_own(tmp_path / "own.npz", levels=[f"{level},b,c", "", ""])
    assert load(path).space["shape"].names == (level, "b", "c")
