"""Data cards: the hash by hand, the header, and what a damaged card meets."""

import hashlib
import re
from pathlib import Path

import numpy as np
import pytest
import yaml

from tfcomp.config.run_flags import parse_config
from tfcomp.datasets import make_dataset
from tfcomp.datasets.data_card import (
    count_bytes,
    format_data_card,
    hash_images,
)
from tfcomp.datasets.materialized import (
    materialize,
    select_settings,
)

SMALL = ["--grid_size=8", "--region=square:3-4", "--polarity=bright"]


def test_the_hash_is_that_of_rounded_pixels_in_the_order_of_the_grid() -> None:
    dataset = make_dataset(parse_config([*SMALL, "--sigma=1.5"]))
    grid = [(x, y) for x in range(8) for y in range(8)]  # y is faster
    images = np.zeros((64, 8, 8))
    for image, (x, y) in zip(images, grid, strict=True):
        for row in range(8):
            for column in range(8):
                distance = (row - y) ** 2 + (column - x) ** 2
                image[row, column] = np.exp(-distance / (2 * 1.5**2))
    pixels = np.floor(255 * images + 0.5).astype(np.uint8)
    assert hash_images(dataset) == hashlib.sha256(pixels.tobytes()).hexdigest()
    assert count_bytes(dataset) == pixels.nbytes


def test_the_check_of_a_card_runs_and_can_fail() -> None:
    config = parse_config(SMALL)
    card = format_data_card(make_dataset(config), select_settings(config))
    check = re.findall(r"```python\n(.*?)```", card, re.DOTALL)[1]
    exec(check, {})
    other = check.replace("'grid_size': 8", "'grid_size': 9")
    assert other != check
    with pytest.raises(AssertionError):
        exec(other, {})
    assert "| train | 60 |" in card and "| ood | 4 |" in card
    assert "- x: 8 values from 0 to 7 px" in card


def test_the_card_lies_beside_the_examples(tmp_path: Path) -> None:
    folder = materialize(parse_config(SMALL), tmp_path)
    _, text, _ = (folder / "README.md").read_text().split("---\n", 2)
    header = yaml.safe_load(text)
    assert header["pretty_name"].startswith("gaussian_bumps, square:3-4")
    assert header["license"] == "mit" and len(header["tags"]) == 2
    assert header["size_categories"] == ["n<1K"]
