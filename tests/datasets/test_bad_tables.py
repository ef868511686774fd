"""Tables that cannot be read are answered in one line."""

from __future__ import annotations

import os
import resource
import zipfile
from collections.abc import Callable
from pathlib import Path

import h5py
import numpy as np
import pytest

from tests.datasets.own_tables import (
    CLASSES,
    IMAGES,
    NAMES,
    load,
    write_folder,
    write_own,
)
from tfcomp import train
from tfcomp.config.errors import ConfigError, RunError
from tfcomp.datasets.table_factors import TableError
from tfcomp.datasets.table_files import read_h5


def break_csv(folder: Path) -> Path:
    write_folder(folder)
    (folder / "3.png").unlink()
    return folder


def cut(path: Path) -> Path:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    return path


def encrypt(path: Path) -> Path:
    """Sets the flag of encryption of every member."""
    content = bytearray(write_own(path).read_bytes())
    for mark, place in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        start = content.find(mark)
        while start >= 0:
            content[start + place] |= 1
            start = content.find(mark, start + 4)
    path.write_bytes(content)
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


def write_large_picture(folder: Path, side: int) -> Path:
    """Twice a head of a square picture."""
    content = b"P5 %d %d 255\n" % (side, side)  # PGM, whatever it is called
    for name in "ab":
        (folder / f"{name}.png").write_bytes(content)
    (folder / "list.csv").write_text("file,x\na.png,0\nb.png,1\n")
    return folder


def write_long_field(folder: Path) -> Path:
    (folder / "list.csv").write_text(f"file,x\n{'a' * 200_000},1\n")
    return folder


NAN = np.where(CLASSES == 2, np.nan, CLASSES)
BAD: dict[str, tuple[Callable[[Path], Path], str]] = {
    "flat": (
        lambda p: write_own(p, images=IMAGES[:, 0]),
        "images must be [n, H, W] or [n, H, W, C] and not empty "
        "(images.reshape(n, H, W)), got [24, 6]",
    ),
    "short": (
        lambda p: write_own(p, classes=CLASSES[:-1]),
        "classes must have a row for each of the 24 images, got 23",
    ),
    "no classes": (
        lambda p: write_own(p, classes=None),
        "images must come with classes, unless they are MPI3D",
    ),
    "nothing": (
        lambda p: write_own(p, images=None, classes=None),
        "members must have images and classes (docs/extending.md has all "
        "layouts), got names",
    ),
    "beyond": (
        lambda p: write_own(p, sizes=[3, 2, 3]),
        "classes of x must be below its size 3, got 3 (image 3 is one)",
    ),
    "duplicate": (
        lambda p: write_own(p, classes=CLASSES % [3, 2, 3]),
        "classes must differ, images 0 and 3 are both, got shape 0, size 0, "
        "x 0",
    ),
    "nan class": (
        lambda p: write_own(p, classes=NAN),
        "classes must be integers from 0, that of image 2, factor 2, got nan",
    ),
    "nan value": (
        lambda p: write_own(p, values=NAN),
        "values of shape must be one for class 2, got nan and nan (image 16)",
    ),
    "nan pixel": (
        lambda p: write_own(p, images=np.where(IMAGES == 99, np.nan, IMAGES)),
        "images must be finite, there is NaN or infinity in image, got 3",
    ),
    "falling": (
        lambda p: write_own(p, values=-CLASSES.astype(float)),
        "values of shape must rise with its classes, got -0, then -1",
    ),
    "names": (
        lambda p: write_own(p, names=["a", "b"]),
        "names must have one entry for each of the 3 factors, got 2",
    ),
    "kind": (
        lambda p: write_own(p, kinds=["round", "ordered", "ordered"]),
        "kinds of shape must be one of",
    ),
    "pickled": (
        lambda p: write_own(p, images=IMAGES.astype(object)),
        "images must be no pickled objects, got object",
    ),
    "pickled names": (
        lambda p: write_own(p, names=np.array(NAMES, object)),
        "cannot be read (Object arrays cannot be loaded",
    ),
    "cut": (lambda p: cut(write_own(p)), "cannot be read (File is not a zip"),
    "no zip": (lambda p: p.write_text("x") and p, "cannot be read (File is"),
    "size of text": (
        lambda p: write_own(p, sizes=["a", "b", "c"]),
        "sizes must be integers, got ['a', 'b', 'c']",
    ),
    "half a size": (
        lambda p: write_own(p, sizes=[3.5, 2, 4]),
        "sizes must be integers, got [3.5, 2.0, 4.0]",
    ),
    "huge size": (
        lambda p: write_own(p, sizes=[1e9, 2, 4]),
        "sizes of shape, which has classes up to 2, must be at most 1,000, "
        "got 1e+09",
    ),
    "values of text": (
        lambda p: write_own(p, values=np.full((24, 3), "a")),
        "values must be numbers, got <U1",
    ),
    **{
        f"{name} without dimension": (
            lambda p, name=name: write_own(p, **{name: np.array(5)}),
            f"{name} must be a list",
        )
        for name in ("sizes", "values", "names", "kinds", "levels", "units")
    },
    "levels of numbers": (
        lambda p: write_own(p, levels=[1, 2, 3]),
        "levels must be a list of texts, got int64 [3]",
    ),
    "turned": (
        lambda p: write_own(p, names=["a\u202eb", "y", "x"]),
        "+ or - unless it is a number, got 'a\\u202eb'",
    ),
    "deleted": (
        lambda p: write_own(p, levels=["a,b\x7f,c", "", ""]),
        "+ or - unless it is a number, got 'b\\x7f'",
    ),
    "formula": (
        lambda p: write_own(p, levels=["=1+1,b,c", "", ""]),
        "unless it is a number, got '=1+1'",
    ),
    "formula with a sign": (
        lambda p: write_own(p, levels=["a,b,-cmd|x", "", ""]),
        "unless it is a number, got '-cmd|x'",
    ),
    "zero width": (
        lambda p: write_own(p, names=["a\u200bb", "y", "x"]),
        "unless it is a number, got 'a\\u200bb'",
    ),
    "huge names": (
        lambda p: claim_size(p, "names", "<U300000000", (3,)),
        "names must take at most 256 MB, got 3,433 MB",
    ),
    "huge classes": (
        lambda p: claim_size(p, "classes", "<i8", (10**12, 3)),
        "classes must take at most 256 MB, got 22,888,183 MB",
    ),
    "encrypted": (encrypt, "is encrypted, password required"),
    "long field": (
        lambda p: write_long_field(p.parent),
        "cannot be read (field larger than field limit",
    ),
    **{
        f"picture of {side} x {side}": (
            lambda p, side=side: write_large_picture(p.parent, side),
            "images must have at most 89,478,485 pixels, got a.png",
        )
        for side in (10_000, 20_000)
    },
    "absent": (
        lambda p: break_csv(p.parent),
        "list.csv must name images that are in the folder, got 3.png (1 are",
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_file_is_one_line(case: str, tmp_path: Path) -> None:
    make, text = BAD[case]
    path = make(tmp_path / "bad.npz")
    with pytest.raises(RunError) as caught:
        load(path)
    assert str(caught.value).startswith(f"--data={path}")
    assert text in str(caught.value)
    assert "\n" not in str(caught.value)


def test_damage_inside_of_the_images(tmp_path: Path) -> None:
    path = write_own(tmp_path / "own.npz", compressed=True)
    with zipfile.ZipFile(path) as archive:
        start = archive.getinfo("images.npy").header_offset
    content = bytearray(path.read_bytes())
    content[start + 150 : start + 400] = bytes(250)
    path.write_bytes(content)
    with pytest.raises(RunError, match="cannot be read"):
        load(path)


def test_truncated_h5(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "own.h5", "w") as file:
        file["images"], file["classes"] = IMAGES, CLASSES
    cut(tmp_path / "own.h5")
    with pytest.raises(RunError, match="cannot be read"):
        load(tmp_path / "own.h5")


@pytest.mark.parametrize(
    ("flags", "text"),
    [
        (["--data="], "--data must name a file"),
        (["--data=none.npz"], "--data must be a file or a folder that can be"),
        (["--data=tfds:"], "--data must be a file or a folder"),
        (["--data=tfds:/etc"], "--data must be a file or a folder"),
        (["--data=/dev/zero"], "--data must be a file or a folder"),
        (["--data=tfds:nothing"], "--data must be a file or a folder"),
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
    """Compressed, or in chunks, nothing of them need be in the file."""
    with h5py.File(tmp_path / "own.h5", "w") as file:
        file["classes"] = CLASSES
        shape = (24, 10**6, 10**6)
        file.create_dataset("images", shape, np.uint8, chunks=(1, 100, 100))
    with pytest.raises(RunError, match="images must be in the file"):
        load(tmp_path / "own.h5")


@pytest.mark.parametrize("place", ["data", "table", "picture", "tfds"])
def test_pipes_are_not_waited_for(place: str, tmp_path: Path) -> None:
    """Before, nothing ever came."""
    paths = {
        "data": tmp_path / "own.npz",
        "table": tmp_path / "own" / "list.csv",
        "picture": tmp_path / "own" / "a.png",
        "tfds": tmp_path / "own" / "1.0.0" / "dataset_info.json",
    }
    paths[place].parent.mkdir(parents=True, exist_ok=True)
    os.mkfifo(paths[place])
    data = {"data": paths["data"], "tfds": "tfds:own"}
    flags = [f"--data_dir={tmp_path}"]
    with pytest.raises(ConfigError, match="is a pipe or a device"):
        load(data.get(place, tmp_path / "own"), *flags)


def test_latents_that_are_no_group(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "own.h5", "w") as file:
        file["imgs"], file["latents"] = IMAGES, np.arange(3)
    with pytest.raises(RunError, match="latents must be a group, got an array"):
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
            file["images"] = h5py.SoftLink("/elsewhere")
        else:
            layout = h5py.VirtualLayout(shape, np.uint8)
            other = str(tmp_path / "other.h5")
            layout[:] = h5py.VirtualSource(other, "images", shape=shape)
            file.create_virtual_dataset("images", layout)
    with pytest.raises(TableError, match="images must lie in the file itself"):
        read_h5(str(path))


@pytest.mark.parametrize("member", ["images", "classes", "names"])
def test_hdf5_of_any_length_takes_little_memory(
    member: str, tmp_path: Path
) -> None:
    """One text or list of 4 MB that lies in the array a thousand times."""
    path = tmp_path / "data.h5"
    kind = h5py.string_dtype() if member == "names" else h5py.vlen_dtype("i8")
    value = "a" * 2**22 if member == "names" else np.zeros(2**19, "i8")
    with h5py.File(path, "w") as file:
        for name in {"images", "classes"} - {member}:
            file[name] = {"images": IMAGES, "classes": CLASSES}[name]
        member = file.create_dataset(member, (1000,), kind, chunks=(1000,))
        member[0] = value
        reference = member.id.read_direct_chunk((0,))[1][:16]
        member.id.write_direct_chunk((0,), reference * 1000)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(RunError, match="must"):
        load(path)
    after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert after - before < 5e5


@pytest.mark.parametrize("factor", [1e-30, 1e-300])
def test_images_too_dark_for_scores(factor: float, tmp_path: Path) -> None:
    """Before, an error of 2e59 % was printed, or there was a traceback."""
    images = IMAGES / 255 * factor
    with pytest.raises(RunError, match="must reach 1e-06") as caught:
        load(write_own(tmp_path / "a.npz", images=images))
    assert "\n" not in str(caught.value)
