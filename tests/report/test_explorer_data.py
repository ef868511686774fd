"""Data of the explorer's page, against plain definitions."""

import base64
import io

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from PIL import Image

import tfcomp
from tests.report.test_browser import CLASSES, IMAGES, NAMES, make_model
from tfcomp.datasets.solvable import certify_dataset
from tfcomp.figures.image_files import make_sprite
from tfcomp.metrics.references import predict_references
from tfcomp.report import explorer

pytestmark = pytest.mark.usefixtures("untraced")


@pytest.fixture(scope="module")
def model() -> tfcomp.ModelReport:
    return make_model("own")


def read_sheet(sprite: dict) -> np.ndarray:
    text = sprite["sprite"].removeprefix("data:image/png;base64,")
    file = io.BytesIO(base64.b64decode(text))
    return np.asarray(Image.open(file))


def read_bytes(text: str) -> np.ndarray:
    content = base64.b64decode(text)
    return np.frombuffer(content, np.uint8)


@pytest.mark.parametrize(
    ("count", "channels", "upright"),
    [(1, 1, True), (5, 2, False), (9, 3, True)],
)
def test_tiles(
    count,
    channels,
    upright,
    rng,
):
    images = rng.uniform(-0.2, 1.2, (count, 4, 3, channels))
    pictures = images.clip(0, 1)
    if channels == 1:
        pictures = pictures[..., 0]
    if channels == 2:
        pictures = np.moveaxis(pictures, 3, 2)
        pictures = pictures.reshape(count, 4, 6)
    if not upright:
        pictures = pictures[:, ::-1]

    sprite = make_sprite({"own": images, "again": images[::-1]}, upright)

    tiles = sprite["images"]["own"]
    assert sprite["images"]["again"] == tiles[::-1]  # nothing twice
    width, height = sprite["size"]
    assert (height, width) == pictures.shape[1:3]
    sheet = read_sheet(sprite) / 255
    for tile, picture in zip(tiles, pictures, strict=True):
        row, column = divmod(tile, sprite["columns"])
        top = row * height
        left = column * width
        pixels = sheet[top : top + height, left : left + width]
        assert_allclose(pixels, picture, atol=0.5 / 255 + 1e-9)


def test_broken_pixels_are_black_and_said():
    images = np.full((3, 2, 2, 1), 0.5)
    images[1, 0, 0] = np.nan
    images[2, 0, 1] = 1.25

    sprite = make_sprite({"": images}, upright=True)

    ranges = explorer.list_ranges(images)
    tile = sprite["images"][""][1]
    row, column = divmod(tile, sprite["columns"])
    sheet = read_sheet(sprite)
    assert ranges == {1: [None, None], 2: [0.5, 1.25]}
    assert sheet[2 * row, 2 * column] == 0


def test_metric_tensors():
    table = tfcomp.FactorTable(
        IMAGES,
        CLASSES,
        names=NAMES,
        levels=[["disc", "ring"], None, None],
    )
    model = tfcomp.evaluate(table.draw, table, "shape:ring,x:1-2")
    (metrics,) = model.analysis.metrics.values()  # of x and size
    squares = np.diagonal(metrics, axis1=1, axis2=2)
    lengths = np.sqrt(squares)
    longest = lengths.max()
    cosines = metrics[:, 0, 1] / lengths.prod(axis=1)
    _, log_determinant = np.linalg.slogdet(metrics)

    (run,) = explorer.collect([model.analysis])["runs"]

    (stage,) = run["stages"]
    packed = read_bytes(stage["lengths"]) / 255
    packed = longest * packed.reshape(24, 2)
    assert_allclose(packed, lengths, atol=longest / 500)
    (text,) = stage["cosines"]
    packed = read_bytes(text) / 127.0 - 1
    assert_allclose(packed, cosines, atol=0.004)
    assert_allclose(stage["log_volume"], log_determinant / 2, rtol=1e-3)

    pixels = IMAGES.reshape(24, -1)
    units = pixels[:, stage["units"]]
    low, high = np.transpose(stage["ranges"])
    maps = read_bytes(stage["maps"]) / 255
    maps = maps.reshape(-1, 24).T
    unpacked = low + maps * (high - low)
    assert_allclose(unpacked, units, atol=0.004)


def average_squares(images: np.ndarray) -> np.ndarray:
    """The mean over the pixels of each image, [n]."""
    return np.square(images).mean(axis=(1, 2, 3))


def test_errors_and_certificates(model):
    is_ood = model.dataset.splits.is_ood
    mean = IMAGES[~is_ood].mean(axis=0)
    nearest = predict_references(model.dataset)["nearest_id"]
    errors = average_squares(nearest - IMAGES)
    errors /= average_squares(IMAGES - mean)

    (group,) = explorer.collect([model.analysis])["groups"]

    measured = group["errors"]["nearest_id"]
    assert_allclose(measured, errors, rtol=1e-3)
    orders = np.array(group["certified"]["order"])
    assert orders[~is_ood].max() == 0
    assert orders[is_ood].min() >= 1
    certificates = certify_dataset(model.dataset)
    for order, certificate in certificates.items():
        if certificate is None:
            continue
        is_certified = orders >= order
        expected = certificate.certified
        assert_array_equal(is_certified[is_ood], expected[is_ood])


@pytest.mark.parametrize(
    ("region", "groups"),
    [("shape:1,x:1-2", [0, 0]), ("shape:0,x:0", [0, 1])],
)
def test_runs_on_the_same_data_share_what_needs_no_network(
    model,
    region,
    groups,
):
    other = make_model("other", IMAGES[::-1].copy(), region)

    data = explorer.collect([model.analysis, other.analysis])

    assert [run["group"] for run in data["runs"]] == groups


def test_pages_stay_small(model, monkeypatch):
    # Gray images of 64 x 64 pixels of one run, in full.
    assert explorer.MAX_BYTES // (5 * 64 * 64) > 1600
    monkeypatch.setattr("tfcomp.report.explorer.MAX_BYTES", 60 * 5 * 20)

    of_one = explorer.count_combinations([model.analysis])
    of_four = explorer.count_combinations([model.analysis] * 4)
    (group,) = explorer.collect([model.analysis])["groups"]

    is_ood = group["ood"]
    assert of_one == 20
    assert of_four == 5
    assert group["total"] == 24
    assert len(is_ood) <= 20
    assert 0 < sum(is_ood) < len(is_ood)
