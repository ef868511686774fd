"""Tables of own images: every layout, batches and samples."""

import math
from pathlib import Path

import h5py
import numpy as np
import pytest

import tfcomp
from tests.datasets.own_tables import (
    CLASSES,
    IMAGES,
    KINDS,
    NAMES,
    SIZES,
    load,
    write_folder,
    write_own,
)
from tfcomp.datasets.factor_table import FactorTable
from tfcomp.datasets.notes import list_notes
from tfcomp.datasets.table_checks import TableError
from tfcomp.datasets.tables import make_listed_region, read_table


def assert_draws(table: FactorTable, images: np.ndarray, white: float) -> None:
    """Images in the order of the grid, all combinations being there."""
    expected = images.reshape(len(images), *table.image_shape) / white
    np.testing.assert_allclose(table.draw(table.space.grid()), expected)


@pytest.mark.parametrize("ending", ["npz", "packed.npz", "h5"])
def test_own_layout(ending: str, tmp_path: Path) -> None:
    path, levels = tmp_path / f"mine.{ending}", ["square,heart,bar", "", ""]
    options = {
        "kinds": KINDS,
        "levels": levels,
        # Padded, and not evenly spaced.
        "values": np.array(
            [[0, 1, 2, np.nan], [1, 5, *[np.nan] * 2], range(4)]
        ),
    }
    if ending == "h5":
        with h5py.File(path, "w") as file:
            parts = {"images": IMAGES, "classes": CLASSES, "names": NAMES}
            for name, value in (parts | options).items():
                file[name] = value
    else:
        write_own(path, ending == "packed.npz", **options)
    table = read_table(str(path))
    assert_draws(table, IMAGES, 255)
    shape, size, x = table.space
    assert shape.categorical and shape.names == ("square", "heart", "bar")
    assert size.values().tolist() == [1, 5]
    assert x.periodic and x.high == 4
    assert table.images.dtype == np.uint8


@pytest.mark.parametrize("ending", ["npz", "h5"])
def test_dsprites(ending: str, tmp_path: Path) -> None:
    sizes = (1, 3, 6, 4, 2, 2)
    count = math.prod(sizes)
    classes = np.stack(np.unravel_index(np.arange(count), sizes), axis=1)
    images = (np.arange(count * 16) % 3 == 0).astype(np.uint8)
    images = images.reshape(count, 4, 4)
    angles = np.linspace(0, 2 * np.pi, 4)  # the last is the first again
    scales = np.linspace(0.5, 1, 6)
    values = classes.astype(float)
    values[:, :2] += 1
    values[:, 2], values[:, 3] = scales[classes[:, 2]], angles[classes[:, 3]]
    path = tmp_path / f"dsprites.{ending}"
    if ending == "npz":
        members = {"latents_values": values, "latents_classes": classes}
        members["metadata"] = np.array({"date": "April 2017"}, dtype=object)
        np.savez_compressed(path, imgs=images, **members)
    else:
        with h5py.File(path, "w") as file:
            file.create_dataset("imgs", data=images, chunks=(24, 2, 4))
            file["latents/classes"], file["latents/values"] = classes, values
    table = read_table(str(path))
    names = ("shape", "scale", "orientation", "posX", "posY")
    assert table.space.names == names
    assert table.notes == (
        "left out: color, which has a single value",
        "orientation: periodic, 6.283 = 0 rad",
    )
    assert_draws(table, images, 1)
    shape, scale, orientation, *_ = table.space
    assert shape.names == ("square", "ellipse", "heart")
    np.testing.assert_allclose(scale.values(), scales, rtol=1e-6)
    np.testing.assert_allclose(orientation.values(), angles, rtol=1e-6)
    assert orientation.periodic
    assert orientation.high == pytest.approx(2 * np.pi)


def test_3dshapes(tmp_path: Path) -> None:
    sizes = (2, 2, 3, 2, 4, 3)
    classes = np.stack(np.unravel_index(np.arange(288), sizes), axis=1)
    labels = classes * [0.1, 0.1, 0.1, 0.5, 1.0, 30.0] - [0, 0, 0, -0.75, 0, 30]
    images = np.arange(288 * 12, dtype=np.uint8).reshape(288, 2, 2, 3)
    with h5py.File(tmp_path / "3dshapes.h5", "w") as file:
        file["images"], file["labels"] = images, labels
    table = read_table(str(tmp_path / "3dshapes.h5"))
    assert table.space.shape == sizes
    assert table.space["orientation"].values().tolist() == [-30, 0, 30]
    assert table.space["floor_hue"].periodic
    assert table.space["shape"].categorical
    assert_draws(table, images, 255)


@pytest.mark.parametrize("color", [False, True])
def test_folder_with_csv(color: bool, tmp_path: Path) -> None:
    write_folder(tmp_path, color)
    table = read_table(str(tmp_path))
    shape, angle = table.space
    assert shape.names == ("a", "b") and shape.categorical
    assert angle.values().tolist() == [0, 90, 180, 270]
    assert angle.periodic and angle.high == 360
    images = IMAGES[:8, :, :, None].repeat(3 if color else 1, axis=-1)
    assert_draws(table, images, 255)


def test_python_interface_and_missing_combinations() -> None:
    chosen = np.random.default_rng(1).permutation(24)[:15]
    table = tfcomp.FactorTable(
        IMAGES[chosen],
        CLASSES[chosen],
        values=[None, [1, 10], None],
        names=NAMES,
        sizes=SIZES,
        levels=[["a", "b", "c"], None, None],
        units=["", "cm", "px"],
    )
    assert table.points.shape == (15, 3)
    index = table.space.to_index(table.points)
    assert np.all(np.diff(np.ravel_multi_index(index.T, SIZES)) > 0)
    for point, image in zip(index, table.draw(table.points), strict=True):
        row = int(np.flatnonzero((CLASSES == point).all(axis=1))[0])
        np.testing.assert_allclose(image[..., 0], IMAGES[row] / 255)
    assert table.space["shape"].categorical
    missing = np.setdiff1d(np.arange(24), chosen)[0]
    factors = table.space.grid()[missing : missing + 1]
    with pytest.raises(TableError, match="must contain the combination, got"):
        table.draw(factors)


@pytest.mark.parametrize("share", [0.05, 0.5, 0.9])
def test_samples_have_both_sides(share: float, tmp_path: Path) -> None:
    flags = [f"--region=random:{share}", "--eval_points=8"]
    dataset = load(write_own(tmp_path / "own.npz"), *flags)
    splits, every = dataset.splits, dataset.splits.all
    assert not splits.is_complete and len(splits.grid) == 8
    num_ood = round(24 * share)
    assert splits.is_ood.sum() == min(num_ood, max(4, 8 - (24 - num_ood)))
    rows = {tuple(row) for row in every.factors[every.is_ood].tolist()}
    assert {tuple(r) for r in splits.grid[splits.is_ood].tolist()} <= rows
    index = dataset.space.to_index(splits.grid)
    assert np.all(np.diff(np.ravel_multi_index(index.T, SIZES)) > 0)
    assert "a sample of 8 of the 24" in list_notes(dataset)[0]
    whole = load(tmp_path / "own.npz", flags[0], "--eval_points=24")
    assert whole.splits.is_complete and whole.splits.existing is None


def test_a_region_by_a_function() -> None:
    """Equal to its text; the function sees values, and must return bools."""
    classes = np.argwhere(np.ones((3, 4)))
    images = np.random.default_rng(0).random((12, 4, 4))
    options = {"names": ["shape", "x"], "values": [[0, 1, 2], [0, 2, 4, 6]]}
    table = FactorTable(images[::-1], classes[::-1], **options)
    region = make_listed_region(
        table, lambda f: (f[:, 0] == 2) & (f[:, 1] >= 4)
    )
    mask = region.contains(table.points)
    np.testing.assert_array_equal(
        mask, (table.points[:, 0] == 2) & (table.points[:, 1] >= 4)
    )
    assert mask.sum() == 2
    for wrong in (lambda f: f[:, 0], lambda f: np.array([True])):
        with pytest.raises(TableError, match="must return 12 bools"):
            make_listed_region(table, wrong)
