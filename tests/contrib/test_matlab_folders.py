"""Cars3D, smallNORB, and `.mat` bombs."""

import itertools
import resource
import struct
import zlib
from pathlib import Path

import numpy as np
import pytest
import scipy.io

from tests.datasets.own_tables import load
from tfcomp.config.errors import RunError
from tfcomp.datasets.tables import read_table

MAGIC = {np.dtype("u1"): 0x1E3D4C55, np.dtype("<i4"): 0x1E3D4C54}


def test_cars3d(tmp_path: Path, rng: np.random.Generator) -> None:
    cars = rng.integers(0, 256, (2, 3, 4, 3, 5, 4), np.uint8)
    for number, car in enumerate(cars):
        scipy.io.savemat(tmp_path / f"car_{number}.mat", {"im": car})
    table = read_table(str(tmp_path))
    assert table.space.names == ("elevation", "azimuth", "type")
    stacked = cars.transpose(5, 4, 0, 1, 2, 3)  # as the field has it
    expected = stacked.reshape(-1, 3, 4, 3) / 255
    np.testing.assert_allclose(table.draw(table.space.grid()), expected)


def write_matrix(path: Path, matrix: np.ndarray) -> None:
    """Writes NORB's format: type, number of dimensions, three sizes or more."""
    sizes = [*matrix.shape, *[1] * (3 - matrix.ndim)]
    head = np.array([MAGIC[matrix.dtype], matrix.ndim, *sizes], "<i4")
    path.write_bytes(head.tobytes() + matrix.tobytes())


def write_norb(folder: Path, part: str, instances: list[int]) -> np.ndarray:
    """Writes a part of all categories and two values of all other factors."""
    rows = np.array(
        [*itertools.product(range(5), instances, (0, 8), (0, 34), (1, 5))]
    ).astype("<i4")
    rng = np.random.default_rng(len(instances))
    images = rng.integers(0, 256, (len(rows), 2, 4, 4), np.uint8)
    order = rng.permutation(len(rows))
    for kind, matrix in {
        "cat": rows[order, 0],
        "info": rows[order, 1:],
        "dat": images[order],
    }.items():
        write_matrix(folder / f"smallnorb-{part}-{kind}.mat", matrix)
    return images[:, 0]


def test_small_norb(tmp_path: Path) -> None:
    first = write_norb(tmp_path, "training", [4, 6])
    second = write_norb(tmp_path, "testing", [0, 1, 3])
    table = read_table(str(tmp_path))
    names = ("category", "instance", "elevation", "azimuth", "lighting")
    assert table.space.names == names
    assert table.space.shape == (5, 5, 9, 18, 6)
    assert table.space["instance"].names == ("0", "1", "3", "4", "6")
    assert table.space["azimuth"].periodic
    points = table.space.to_index(table.points)
    assert sorted({*points[:, 3].tolist()}) == [0, 17]
    drawn = np.round(255 * table.draw(table.points)[..., 0])
    instance = points[:, 1]
    # In the order of the grid: of each category first the testing part.
    np.testing.assert_array_equal(drawn[instance >= 3], first)
    np.testing.assert_array_equal(drawn[instance < 3], second)


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        ("absent", "smallnorb-training-info.mat must lie beside"),
        ("short", "cannot be read"),
        ("another", "must be a matrix of smallNORB"),
        ("other rows", "cannot be read"),
    ],
)
def test_damaged_norb(damage: str, words: str, tmp_path: Path) -> None:
    write_norb(tmp_path, "training", [4, 6])
    path = tmp_path / "smallnorb-training-info.mat"
    content = path.read_bytes()
    if damage == "absent":
        path.unlink()
    elif damage == "short":
        path.write_bytes(content[:-1])
    elif damage == "another":
        path.write_bytes(bytes(4) + content[4:])
    else:
        write_matrix(path, np.zeros((7, 4), "<i4"))
    with pytest.raises(RunError, match=words):
        load(tmp_path)


def write_bomb(path: Path, size: int, shape: tuple[int, ...]) -> None:
    """Writes a car as MATLAB does, of `size` zeros in a thousandth of that."""
    flags = struct.pack("<IIII", 6, 8, 9, 0)  # uint8
    sides = struct.pack(f"<II{len(shape)}i", 5, 4 * len(shape), *shape)
    sides += bytes(-len(sides) % 8)
    name = struct.pack("<HH4s", 1, 2, b"im")
    body = flags + sides + name + struct.pack("<II", 2, size)
    element = struct.pack("<II", 14, len(body) + size)
    pack = zlib.compressobj(9)
    packed = pack.compress(element + body)
    for _ in range(size >> 20):
        packed += pack.compress(bytes(2**20))
    packed += pack.flush()
    text = b"MATLAB 5.0 MAT-file".ljust(124) + struct.pack("<H2s", 256, b"IM")
    path.write_bytes(text + struct.pack("<II", 15, len(packed)) + packed)


@pytest.mark.parametrize(
    ("size", "shape"),
    [(1 << 20, (1024, 1024, 3, 24, 18)), (300 << 20, (4, 4, 3, 2, 2))],
)
def test_car_that_takes_gigabytes(
    size: int, shape: tuple[int, ...], tmp_path: Path
) -> None:
    """A file below .4 MB takes at most .8 GB, whatever its header says."""
    write_bomb(tmp_path / "a.mat", size, shape)
    assert (tmp_path / "a.mat").stat().st_size < 4e5
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(RunError, match="im must take at most 256 MB"):
        load(tmp_path)
    after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert after - before < 8e5
