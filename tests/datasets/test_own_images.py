"""Images that people really have: what each is answered (docs/data.md)."""

import importlib.util
import itertools
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tfcomp
from tfcomp.config.errors import ConfigError
from tfcomp.config.run_flags import parse_config
from tfcomp.datasets.table_factors import TableError
from tfcomp.models.config_checks import check_config

CLASSES = np.array(list(itertools.product(range(3), range(4), range(4))))
RNG = np.random.default_rng(0)
UNIT = RNG.uniform(size=(48, 8, 8)).astype("f4")
BYTES = (255 * UNIT).astype("u1")
COLOR = np.stack([BYTES, BYTES // 2, BYTES // 3], axis=-1)


def add_alpha(images: np.ndarray) -> np.ndarray:
    return np.concatenate([images, np.full_like(images[..., :1], 255)], -1)


def spoil(images: np.ndarray) -> np.ndarray:
    return np.where(images > 0.999, np.nan, images)


BINARY = np.array(list(itertools.product(range(2), repeat=6)))
TWENTY = np.concatenate([BINARY, RNG.integers(0, 2, (64, 14))], axis=1)
# What people have: images, classes, the shape and the brightest pixel of what
# comes of it, or the words of the refusal.
CASES: dict[str, tuple[Any, Any, Any]] = {
    "NCHW": (
        COLOR.transpose(0, 3, 1, 2),
        CLASSES,
        "images must be [n, H, W, C] (images.transpose(0, 2, 3, 1)), "
        "got [48, 3, 8, 8]",
    ),
    "uint16": ((65535 * UNIT).astype("u2"), CLASSES, (8, 8, 1)),
    "float 0 to 255": (
        255 * UNIT,
        CLASSES,
        "images must be from 0 to 1 if they are floats (images / 255)",
    ),
    "masked": (
        np.ma.masked_array(UNIT, UNIT > 0.5),
        CLASSES,
        "images must not be masked (images.filled(0) fills them)",
    ),
    "one factor, flat": (
        BYTES[:12],
        np.arange(12),
        "classes must be [n, F] (classes[:, None] for one factor), got [12]",
    ),
    "strings": (
        BYTES,
        np.full((48, 3), "a"),
        "classes must be integers, names of classes go to levels",
    ),
    "NaN": (
        spoil(UNIT),
        CLASSES,
        "images must be finite, there is NaN or infinity in image, got",
    ),
    "huge class": (
        BYTES,
        np.where(CLASSES == 2, 10**6, CLASSES),
        "classes of factor 0 must be counted from 0 (np.unique(..., "
        "return_inverse=True)), the largest of 3 classes, got 1000000",
    ),
    "color with alpha": (
        add_alpha(COLOR),
        CLASSES,
        "images must have channels that vary (images[..., :3] has no alpha)",
    ),
    "constant": (
        np.zeros_like(BYTES),
        CLASSES,
        "images must differ, got 48 times the same",
    ),
    "flat": (
        BYTES.reshape(48, -1),
        CLASSES,
        "images must be [n, H, W] or [n, H, W, C] and not empty "
        "(images.reshape(n, H, W)), got [48, 64]",
    ),
    "-1 to 1": (
        2 * UNIT - 1,
        CLASSES,
        "images must be from 0 to 1 if they are floats ((images + 1) / 2)",
    ),
    "negative integers": (
        BYTES.astype("i4") - 200,
        CLASSES,
        "images must not be negative (images - images.min())",
    ),
    "10 bits": ((1000 * UNIT).astype("i4"), CLASSES, (8, 8, 1)),
    "17 bits": (
        (100_000 * UNIT).astype("i4"),
        CLASSES,
        "images must be at most 65535",
    ),
    "one-hot": (
        BYTES,
        np.concatenate([np.eye(3, dtype=int)[CLASSES[:, 0]], CLASSES], axis=1),
        "classes must not be a one-hot code, but one factor "
        "(classes[:, 0:3].argmax(1))",
    ),
}


@pytest.mark.parametrize("kind", CASES)
def test_what_people_have(kind: str) -> None:
    images, classes, expected = CASES[kind]
    if isinstance(expected, str):
        with pytest.raises(TableError, match=re.escape(expected)):
            table = tfcomp.FactorTable(images, classes)
            table.draw(table.points)
        return
    table = tfcomp.FactorTable(images, classes)
    drawn = table.draw(table.points)
    assert drawn.shape[1:] == (expected or (8, 8, 1))
    assert 0.9 < drawn.max() <= 1 and drawn.dtype == np.float32
    assert "FactorTable of" in repr(table)


def test_integers_are_divided_by_what_their_bits_hold() -> None:
    tops = {1: 1, 2: 255, 255: 255, 256: 511, 1000: 1023, 4095: 4095}
    for top, white in (tops | {65535: 65535}).items():
        images = np.zeros((48, 2, 2), "u2")
        images[:, 0, 0] = np.arange(48) * top // 47
        table = tfcomp.FactorTable(images, CLASSES)
        assert table.scale == white
        assert table.draw(table.points).max() == np.float32(top / white)


def test_dark_images_are_noted() -> None:
    masks = np.random.default_rng(0).integers(0, 3, (48, 8, 8), np.uint8)
    table = tfcomp.FactorTable(masks, CLASSES)
    (note,) = table.inspect()
    assert "above 0.0078, 2 divided by 255;" in note
    assert "scale them (images / 2)" in note
    assert tfcomp.FactorTable(masks / 2, CLASSES).inspect() == ()
    assert tfcomp.FactorTable(UNIT * 1e-4, CLASSES).inspect() != ()


def test_tensors_and_frames() -> None:
    import pandas as pd
    import tensorflow as tf

    expected = tfcomp.FactorTable(BYTES, CLASSES, names=["a", "b", "c"])
    frame = pd.DataFrame(CLASSES, columns=["a", "b", "c"])
    given = [(tf.constant(BYTES), tf.constant(CLASSES)), (BYTES, frame)]
    if importlib.util.find_spec("torch"):
        import torch

        images = torch.tensor(BYTES / 255, requires_grad=True)
        given.append((images, torch.tensor(CLASSES)))
    for images, classes in given:
        names = None if classes is frame else ["a", "b", "c"]
        table = tfcomp.FactorTable(images, classes, names=names)
        assert table.space == expected.space
        drawn = table.draw(table.points)
        np.testing.assert_allclose(drawn, expected.draw(table.points))


def test_values_that_differ_by_rounding_are_one() -> None:
    values = CLASSES / 10 + np.where(np.arange(48) % 5, 0, 1e-9)[:, None]
    table = tfcomp.FactorTable(UNIT, CLASSES, values)
    np.testing.assert_allclose(
        table.space["factor_1"].values(), [0, 0.1, 0.2, 0.3], atol=1e-6
    )


@pytest.fixture
def shuffled() -> tuple[tfcomp.FactorTable, np.ndarray]:
    """A table whose images came in another order than that of the grid."""
    order = np.random.default_rng(1).permutation(48)
    names = ["size", "x", "y"]
    table = tfcomp.FactorTable(UNIT[order], CLASSES[order], names=names)
    return table, CLASSES[order]


def test_region_of_a_mask_or_numbers(
    shuffled: tuple[tfcomp.FactorTable, np.ndarray],
) -> None:
    table, classes = shuffled
    mask = (classes[:, 0] == 2) & (classes[:, 1] >= 2)
    expected = tfcomp.evaluate(table.draw, table, region="size:2,x:2-3")
    for region in (mask, np.flatnonzero(mask), np.flatnonzero(mask).tolist()):
        found = tfcomp.evaluate(table.draw, table, region=region)
        assert (
            found.dataset.splits.is_ood == expected.dataset.splits.is_ood
        ).all()
        assert found.coverage == expected.coverage
        assert "8 images of a list" in repr(found)


def test_data_without_the_table(tmp_path: Path) -> None:
    np.savez(tmp_path / "own.npz", images=BYTES, classes=CLASSES)
    flags = ["--flagfile=smoke", f"--data={tmp_path / 'own.npz'}"]
    with pytest.raises(ConfigError, match="must go with --dataset=table"):
        check_config(parse_config(flags))
