"""Data of the explorer's page, against plain definitions."""

import base64
import io

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from PIL import Image

import tfcomp
from tests.report.test_explorer import CLASSES, IMAGES, NAMES, make_model
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
    return np.asarray(Image.open(io.BytesIO(base64.b64decode(text))))


def read_bytes(text: str) -> np.ndarray:
    return np.frombuffer(base64.b64decode(text), np.uint8)


@pytest.mark.parametrize(
    ("count", "channels", "upright"),
    [(1, 1, True), (5, 2, False), (9, 3, True)],
)
def test_tiles(
    count: int,
    channels: int,
    upright: bool,
    rng: np.random.Generator,
) -> None:
    images = rng.uniform(-0.2, 1.2, (count, 4, 3, channels))
    pictures = images.clip(0, 1)
    if channels == 1:
        pictures = pictures[..., 0]
    if channels == 2:
        pictures = np.concatenate([pictures[..., 0], pictures[..., 1]], axis=2)
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


def test_broken_pixels_are_black_and_said() -> None:
    images = np.full((3, 2, 2, 1), 0.5)
    images[1, 0, 0] = np.nan
    images[2, 0, 1] = 1.25

    sprite = make_sprite({"": images}, upright=True)

    assert explorer.list_ranges(images) == {1: [None, None], 2: [0.5, 1.25]}
    row, column = divmod(sprite["images"][""][1], sprite["columns"])
    assert read_sheet(sprite)[2 * row, 2 * column] == 0


def test_metric_tensors() -> None:
    table = tfcomp.FactorTable(
        IMAGES,
        CLASSES,
        names=NAMES,
        levels=[["disc", "ring"], None, None],
    )
    model = tfcomp.evaluate(table.draw, table, "shape:ring,x:1-2")
    (metrics,) = model.analysis.metrics.values()  # of x and size
    lengths = np.sqrt(np.diagonal(metrics, axis1=1, axis2=2))
    cosines = metrics[:, 0, 1] / lengths.prod(axis=1)
    log_volume = 0.5 * np.linalg.slogdet(metrics)[1]

    (run,) = explorer.collect([model.analysis])["runs"]

    (stage,) = run["stages"]
    packed = read_bytes(stage["lengths"]).reshape(24, 2)
    longest = lengths.max()
    assert_allclose(packed / 255 * longest, lengths, atol=longest / 500)
    (packed,) = stage["cosines"]
    assert_allclose(read_bytes(packed) / 127.0 - 1, cosines, atol=0.004)
    assert_allclose(stage["log_volume"], log_volume, rtol=1e-3)
    low, high = np.transpose(stage["ranges"])
    maps = read_bytes(stage["maps"]).reshape(-1, 24).T
    units = IMAGES.reshape(24, -1)[:, stage["units"]]
    assert_allclose(low + maps / 255 * (high - low), units, atol=0.004)


def test_errors_and_certificates(model: tfcomp.ModelReport) -> None:
    is_ood = model.dataset.splits.is_ood
    mean = IMAGES[~is_ood].mean(axis=0)
    nearest = predict_references(model.dataset)["nearest_id"]
    errors = np.square(nearest - IMAGES).mean(axis=(1, 2, 3))
    errors /= np.square(IMAGES - mean).mean(axis=(1, 2, 3))

    (group,) = explorer.collect([model.analysis])["groups"]

    assert_allclose(group["errors"]["nearest_id"], errors, rtol=1e-3)
    orders = np.array(group["certified"]["order"])
    assert orders[~is_ood].max() == 0
    assert orders[is_ood].min() >= 1
    for order, certificate in certify_dataset(model.dataset).items():
        if certificate is not None:
            certified = certificate.certified[is_ood]
            assert_array_equal(orders[is_ood] >= order, certified)


@pytest.mark.parametrize(
    ("region", "groups"),
    [("shape:1,x:1-2", [0, 0]), ("shape:0,x:0", [0, 1])],
)
def test_runs_on_the_same_data_share_what_needs_no_network(
    model: tfcomp.ModelReport,
    region: str,
    groups: list[int],
) -> None:
    other = make_model("other", IMAGES[::-1].copy(), region)

    data = explorer.collect([model.analysis, other.analysis])

    assert [run["group"] for run in data["runs"]] == groups


def test_pages_stay_small(
    model: tfcomp.ModelReport,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # Gray images of 64 x 64 pixels of one run, in full.
    assert explorer.MAX_BYTES // (5 * 64 * 64) > 1600
    monkeypatch.setattr("tfcomp.report.explorer.MAX_BYTES", 60 * 5 * 20)

    (group,) = explorer.collect([model.analysis])["groups"]

    assert explorer.count_combinations([model.analysis]) == 20
    assert explorer.count_combinations([model.analysis] * 4) == 5
    assert group["total"] == 24
    assert len(group["ood"]) <= 20
    assert 0 < sum(group["ood"]) < len(group["ood"])
