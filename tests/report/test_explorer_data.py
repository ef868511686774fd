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
def test_tiles(count, channels, upright, rng):
    images = rng.uniform(-0.2, 1.2, (count, 4, 3, channels))
    pictures = images.clip(0, 1)
    if channels == 1:
        pictures = pictures[..., 0]
    if channels == 2:
        pictures = np.concatenate([pictures[..., 0], pictures[..., 1]], axis=2)
    if not upright:
        pictures = pictures[:, ::-1]

    sprite = make_sprite(
        {
            "own": images,
            "again": images[::-1],
        },
        upright,
    )

    tiles = sprite["images"]["own"]
    assert sprite["images"]["again"] == tiles[::-1]  # nothing twice
    width, height = sprite["size"]
    assert (height, width) == pictures.shape[1:3]
    sheet = read_sheet(sprite) / 255
    for tile, picture in zip(tiles, pictures, strict=True):
        row, column = divmod(tile, sprite["columns"])
        strip = sheet[row * height :][:height]
        pixels = strip[:, column * width :][:, :width]
        assert_allclose(
            pixels,
            picture,
            atol=0.5 / 255 + 1e-9,
        )


def test_broken_pixels_are_black_and_said():
    images = np.full((3, 2, 2, 1), 0.5)
    images[1] = np.nan
    images[2, 0, 1] = 1.25

    sprite = make_sprite({"": images}, upright=True)

    ranges = explorer.list_ranges(images)
    assert ranges == {
        1: [None, None],
        2: [0.5, 1.25],
    }
    assert (read_sheet(sprite)[:2, 2:] == 0).all()


def test_metric_tensors():
    levels = [["disc", "ring"], None, None]
    table = tfcomp.FactorTable(
        IMAGES,
        CLASSES,
        names=NAMES,
        levels=levels,
    )
    model = tfcomp.evaluate(table.draw, table, "x:1-2")
    (metrics,) = model.analysis.metrics.values()
    squares = np.diagonal(
        metrics,
        axis1=1,
        axis2=2,
    )
    lengths = np.sqrt(squares)
    longest = lengths.max()
    cosines = metrics[:, 0, 1] / lengths.prod(axis=1)
    _, log_determinant = np.linalg.slogdet(metrics)

    (run,) = explorer.collect([model.analysis])["runs"]

    (stage,) = run["stages"]
    packed = read_bytes(stage["lengths"]).reshape(24, 2) / 255
    assert_allclose(
        longest * packed,
        lengths,
        atol=longest / 500,
    )
    (text,) = stage["cosines"]
    assert_allclose(
        read_bytes(text) / 127 - 1,
        cosines,
        atol=0.004,
    )
    assert_allclose(
        stage["log_volume"],
        log_determinant / 2,
        rtol=1e-3,
    )

    units = IMAGES.reshape(24, -1)[:, stage["units"]]
    low, high = np.transpose(stage["ranges"])
    maps = read_bytes(stage["maps"]).reshape(-1, 24).T / 255
    assert_allclose(
        low + maps * (high - low),
        units,
        atol=0.004,
    )


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
    assert_allclose(
        measured,
        errors,
        rtol=1e-3,
    )
    orders = np.array(group["certified"]["order"])
    assert orders[~is_ood].max() == 0
    assert orders[is_ood].min() >= 1
    for order, certificate in certify_dataset(model.dataset).items():
        expected = certificate.certified[is_ood]
        assert_array_equal(orders[is_ood] >= order, expected)


def test_runs_on_the_same_data_share_what_needs_no_network(model):
    same = make_model("same", IMAGES[::-1].copy())
    other = make_model("other", region="shape:0,x:0")

    analyses = [each.analysis for each in (model, same, other)]
    data = explorer.collect(analyses)

    assert [run["group"] for run in data["runs"]] == [0, 0, 1]


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
