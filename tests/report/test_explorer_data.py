"""Data of the explorer's page, against plain definitions."""

import base64
import io

import numpy as np
import pytest
from PIL import Image

import tfcomp
from tests.report.test_explorer import CLASSES, IMAGES, make_model
from tfcomp.datasets.solvable import certify_dataset
from tfcomp.figures.image_files import make_sprite
from tfcomp.metrics.geometry import compute_log_volume
from tfcomp.report import explorer


@pytest.fixture(scope="module")
def model() -> tfcomp.ModelReport:
    return make_model("own", IMAGES)


def read_sheet(sprite: dict) -> np.ndarray:
    text = sprite["sprite"].removeprefix("data:image/png;base64,")
    return np.asarray(Image.open(io.BytesIO(base64.b64decode(text))))


@pytest.mark.parametrize(
    ("count", "channels", "upright"),
    [(1, 1, True), (5, 2, False), (9, 3, True)],
)
def test_tiles(count: int, channels: int, upright: bool) -> None:
    rng = np.random.default_rng(count)
    images = rng.uniform(-0.2, 1.2, (count, 4, 3, channels))
    sprite = make_sprite({"own": images, "again": images[::-1]}, upright)
    tiles, again = sprite["images"].values()
    assert again == tiles[::-1]  # nothing twice
    sheet, (width, height) = read_sheet(sprite), sprite["size"]
    assert height == 4 and width == 3 * (channels if channels == 2 else 1)
    for tile, image in zip(tiles, images, strict=True):
        row, column = divmod(tile, sprite["columns"])
        found = sheet[row * 4 : row * 4 + 4, column * width :][:, :width] / 255
        found = found if upright else found[::-1]
        if channels == 2:
            image = np.concatenate([image[..., 0], image[..., 1]], axis=1)
        image = image[..., 0] if channels == 1 else image
        assert np.abs(found - image.clip(0, 1)).max() <= 0.5 / 255 + 1e-9


def test_broken_pixels_are_black_and_said() -> None:
    images = np.full((3, 2, 2, 1), 0.5)
    images[1, 0, 0] = np.nan
    images[2, 0, 1] = 1.25
    assert explorer.list_ranges(images) == {1: [None, None], 2: [0.5, 1.25]}
    sprite = make_sprite({"": images}, upright=True)
    row, column = divmod(sprite["images"][""][1], sprite["columns"])
    assert read_sheet(sprite)[2 * row, 2 * column] == 0


def test_metric_tensors() -> None:
    names = ["shape", "x", "size"]
    levels = [["disc", "ring"], None, None]
    table = tfcomp.FactorTable(IMAGES, CLASSES, names=names, levels=levels)
    model = tfcomp.evaluate(table.draw, table, "shape:ring,x:1-2")
    (run,) = explorer.collect([model.analysis])["runs"]
    (stage,) = run["stages"]
    metrics = model.analysis.metrics[stage["name"]]  # of x and size
    assert metrics.shape == (24, 2, 2)
    lengths = np.sqrt(np.diagonal(metrics, axis1=1, axis2=2))
    packed = np.frombuffer(base64.b64decode(stage["lengths"]), np.uint8)
    np.testing.assert_allclose(
        packed.reshape(24, 2) / 255, lengths / lengths.max(), atol=0.5 / 255
    )
    (cosines,) = stage["cosines"]
    cosines = np.frombuffer(base64.b64decode(cosines), np.uint8) / 127.0 - 1
    expected = metrics[:, 0, 1] / lengths.prod(axis=1)
    np.testing.assert_allclose(cosines, expected, atol=0.5 / 127 + 1e-6)
    np.testing.assert_allclose(
        stage["log_volume"], compute_log_volume(metrics), rtol=1e-3
    )
    maps = np.frombuffer(base64.b64decode(stage["maps"]), np.uint8)
    flat = IMAGES.reshape(24, -1)
    for unit, (low, high), values in zip(
        stage["units"], stage["ranges"], maps.reshape(-1, 24), strict=True
    ):
        found = low + values / 255 * (high - low)
        np.testing.assert_allclose(found, flat[:, unit], atol=0.004)


def test_errors_and_certificates(model: tfcomp.ModelReport) -> None:
    (group,) = explorer.collect([model.analysis])["groups"]
    known = ~model.dataset.splits.is_ood
    mean = IMAGES[known].mean(axis=0)
    blank = ((IMAGES - mean) ** 2).mean(axis=(1, 2, 3))
    differing = (CLASSES[:, None] != CLASSES[known]).sum(axis=2)
    steps = np.abs(CLASSES[:, None] - CLASSES[known]).sum(axis=2)
    nearest = IMAGES[known][(100 * differing + steps).argmin(axis=1)]
    errors = ((nearest - IMAGES) ** 2).mean(axis=(1, 2, 3)) / blank
    found = group["errors"]["nearest_id"]
    np.testing.assert_allclose(found, errors, rtol=1e-3)
    orders = np.array(group["certified"]["order"])
    for order, certificate in certify_dataset(model.dataset).items():
        if certificate is not None:
            is_certified = certificate.certified[~known]
            np.testing.assert_array_equal(orders[~known] >= order, is_certified)
    assert orders[known].max() == 0 and orders[~known].min() >= 1


def test_runs_on_the_same_data_share_what_needs_no_network(
    model: tfcomp.ModelReport,
) -> None:
    other = make_model("other", IMAGES[::-1].copy())
    data = explorer.collect([model.analysis, other.analysis])
    assert [run["group"] for run in data["runs"]] == [0, 0]
    table = tfcomp.FactorTable(IMAGES, CLASSES, names=["shape", "x", "size"])
    apart = tfcomp.evaluate(table.draw, table, "shape:0,x:0", name="apart")
    data = explorer.collect([model.analysis, apart.analysis])
    assert [run["group"] for run in data["runs"]] == [0, 1]


def test_pages_stay_small(
    model: tfcomp.ModelReport, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Gray images of 64 x 64 pixels of one run, in full.
    assert explorer.MAX_BYTES // (5 * 64 * 64) > 1600
    assert explorer.count_combinations([model.analysis]) == 4096
    monkeypatch.setattr("tfcomp.report.explorer.MAX_BYTES", 60 * 5 * 20)
    assert explorer.count_combinations([model.analysis]) == 20
    assert explorer.count_combinations([model.analysis] * 4) == 5
    (group,) = explorer.collect([model.analysis])["groups"]
    assert group["total"] == 24
    assert 1 <= len(group["ood"]) <= 20
    assert 0 < sum(group["ood"]) < len(group["ood"])
