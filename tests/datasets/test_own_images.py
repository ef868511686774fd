"""Images that people really have: what each is answered (docs/data.md)."""

import dataclasses
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
from tfcomp.datasets.regions import parse_region
from tfcomp.datasets.table_checks import TableError
from tfcomp.datasets.tables import make_listed_region, make_table_dataset
from tfcomp.models.registry import check_config

CLASSES = np.array(list(itertools.product(range(3), range(4), range(4))))
RNG = np.random.default_rng(0)
UNIT = RNG.uniform(size=(48, 8, 8)).astype("f4")
BYTES = (255 * UNIT).astype("u1")
COLOR = np.stack([BYTES, BYTES // 2, BYTES // 3], axis=-1)


ALPHA = np.concatenate([COLOR, np.full_like(COLOR[..., :1], 255)], -1)
BITS = np.concatenate([np.eye(3, dtype=int)[CLASSES[:, 0]], CLASSES], axis=1)
HUGE = np.where(CLASSES == 2, 10**6, CLASSES)
# What people have: images, classes, words of the refusal, which name a cure.
CASES: dict[str, tuple[Any, Any, Any]] = {
    "NCHW": (COLOR.transpose(0, 3, 1, 2), CLASSES, "transpose(0, 2, 3, 1)"),
    "masked": (np.ma.masked_array(UNIT, UNIT > 0.5), CLASSES, "filled(0)"),
    "one factor, flat": (BYTES[:12], np.arange(12), "classes[:, None]"),
    "strings": (BYTES, np.full((48, 3), "a"), "must be integers, names"),
    "NaN": (np.where(UNIT > 0.999, np.nan, UNIT), CLASSES, "must be finite"),
    "huge class": (BYTES, HUGE, "of factor 0 must be counted from 0"),
    "color with alpha": (ALPHA, CLASSES, "images[..., :3] has no alpha"),
    "-1 to 1": (2 * UNIT - 1, CLASSES, "if they are floats ((images + 1) / 2)"),
    "negative": (BYTES.astype("i4") - 200, CLASSES, "images - images.min()"),
    "17 bits": ((100_000 * UNIT).astype("i4"), CLASSES, "at most 65535"),
    "one-hot": (BYTES, BITS, "one factor (classes[:, 0:3].argmax(1))"),
}


@pytest.mark.parametrize("kind", CASES)
def test_what_people_have(kind: str) -> None:
    images, classes, words = CASES[kind]
    with pytest.raises(TableError, match=re.escape(words)):
        table = tfcomp.FactorTable(images, classes)
        table.draw(table.points)


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


def test_region_of_a_mask_or_numbers() -> None:
    order = np.random.default_rng(1).permutation(48)
    names, classes = ["size", "x", "y"], CLASSES[order]
    table = tfcomp.FactorTable(UNIT[order], classes, names=names)
    mask = (classes[:, 0] == 2) & (classes[:, 1] >= 2)
    expected = parse_region("size:2,x:2-3", table.space)
    for region in (mask, np.flatnonzero(mask), np.flatnonzero(mask).tolist()):
        found = make_listed_region(table, region)
        np.testing.assert_array_equal(
            found.contains(table.points), expected.contains(table.points)
        )
        assert found.spec == "8 images of a list"


@pytest.mark.parametrize("flagfile", ["smoke", "composed"])
def test_data_without_the_table(flagfile: str, tmp_path: Path) -> None:
    np.savez(tmp_path / "own.npz", images=BYTES, classes=CLASSES)
    flags = [f"--flagfile={flagfile}", f"--data={tmp_path / 'own.npz'}"]
    with pytest.raises(ConfigError, match="must go with --dataset=table"):
        check_config(parse_config(flags))


def protect_images() -> np.ndarray:
    images = COLOR.copy()
    images.flags.writeable = False
    return images


# The same images in other orders of memory, and with other bytes.
LAYOUTS: dict[str, np.ndarray] = {
    "of torch": np.ascontiguousarray(COLOR.transpose(0, 3, 1, 2)).transpose(
        0, 2, 3, 1
    ),
    "of MATLAB": np.asfortranarray(COLOR.transpose(1, 2, 3, 0)).transpose(
        3, 0, 1, 2
    ),
    "Fortran": np.asfortranarray(COLOR),
    "flipped": np.ascontiguousarray(COLOR[:, ::-1])[:, ::-1],
    "every second column": np.repeat(COLOR, 2, axis=2)[:, :, ::2],
    "big-endian": COLOR.astype(">u2"),
    "read-only": protect_images(),
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_order_of_memory_changes_nothing(layout: str) -> None:
    """Images, copies and scores are those of plain arrays."""
    table = tfcomp.FactorTable(LAYOUTS[layout], CLASSES, names=["a", "b", "c"])

    drawn = table.draw(table.points)
    np.testing.assert_array_equal(drawn, COLOR.astype("f4") / 255)
    assert drawn.flags.c_contiguous

    # A perfect model, whose outputs are in yet another order.
    result = tfcomp.evaluate(
        lambda f: np.asfortranarray(table.draw(f)).astype(">f4"),
        table,
        "a:1-2,b:1-2",
    )
    assert result.analysis.evaluation.scores["ood"]["mse"] == 0
    assert not result.analysis.dataset.copies.is_copy.any()


def test_plain_arrays_are_not_copied(tmp_path: Path) -> None:
    np.save(tmp_path / "images.npy", COLOR)
    mapped = np.load(tmp_path / "images.npy", mmap_mode="r")
    for images in (COLOR, mapped):
        table = tfcomp.FactorTable(images, CLASSES)
        assert np.shares_memory(table.images, images)


def test_a_renderer_may_transpose_its_images() -> None:
    table = tfcomp.FactorTable(COLOR, CLASSES, names=["a", "b", "c"])
    config = parse_config(["--dataset=table", "--region=a:1-2,b:1-2"])
    plain = make_table_dataset(config, table)
    transposed = dataclasses.replace(
        plain, render=lambda f: np.asfortranarray(table.draw(f))
    )

    np.testing.assert_array_equal(transposed.grid_images, plain.grid_images)
    np.testing.assert_array_equal(
        transposed.copies.is_copy, plain.copies.is_copy
    )
