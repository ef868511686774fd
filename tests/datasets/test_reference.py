"""The reference of relative errors: declared grounds and mean images."""

import numpy as np
import pytest
from pytest import approx

import tfcomp
from tests.datasets.own_tables import make_data
from tfcomp.datasets.views import to_contrast
from tfcomp.report.model_report import ModelReport

CLASSES = np.argwhere(np.ones((3, 6, 6)))
REGION = "size:2,x:3-5,y:3-5"
IS_OOD = (CLASSES >= (2, 3, 3)).all(axis=1)


def draw_discs(ground: float, channels: int = 1) -> np.ndarray:
    """Discs that are .2 brighter (on white: darker) than a gray ground."""
    size, x, y = CLASSES.T[:, :, None, None]
    row, column = np.mgrid[:16, :16] - 2.5
    right = column - 2.1 * x
    below = row - 2.1 * y
    inside = size + 1.5 - np.hypot(right, below)
    discs = 0.2 * np.clip(inside, 0, 1)
    if ground > 0.9:
        discs = -discs
    images = (255 * (ground + discs)).astype(np.uint8)
    return np.repeat(images[..., None], channels, axis=-1)


def score(images: np.ndarray, drawn: np.ndarray) -> ModelReport:
    """The scores of a model that draws one image everywhere."""
    table = tfcomp.FactorTable(
        images,
        CLASSES,
        names=["size", "x", "y"],
    )

    def draw(factors: np.ndarray) -> np.ndarray:
        copies = [drawn] * len(factors)
        return np.stack(copies)

    return tfcomp.evaluate(draw, table, REGION)


@pytest.mark.parametrize(
    "ground, channels",
    [
        (0.0, 1),
        (0.35, 3),
        (1.0, 1),
    ],
)
def test_the_mean_training_image_scores_one(ground, channels):
    images = draw_discs(ground, channels)
    mean = (images[~IS_OOD] / 255).mean(axis=0)

    scores = score(images, mean).scores

    assert scores["id"]["relative_mse"] == approx(1, abs=0.02)
    assert scores["ood"]["relative_mse"] == approx(1, abs=0.02)
    assert scores["id"]["r2"] == approx(0, abs=1e-6)


@pytest.mark.parametrize(
    "line, label",
    [
        ("smoke", "blank 1"),
        ("stripes --num_bumps=0", "blank 0"),
        ("rotated_mnist --digit_source=stand_in", "blank 0"),
        (
            "sprites --region=none --sprite_sizes=2,1,1,3,3,2 --grid_size=12",
            "mean training image",
        ),
    ],
)
def test_shipped_data_declare_their_ground(line, label):
    assert make_data(line).reference_label == label


@pytest.mark.parametrize(
    "ground, expected",
    [
        (0.0, 0.0),
        (0.5, None),
        (1.0, 1.0),
    ],
)
def test_the_ground_of_a_table_is_found(ground, expected):
    images = draw_discs(ground)

    dataset = score(images, images[0] / 255).dataset

    assert dataset.ground == expected
    if expected is not None:
        contrast = to_contrast(dataset, images / 255)
        grounds = np.median(contrast, axis=1)
        assert np.abs(grounds).max() < 1e-6
