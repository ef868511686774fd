"""The page of decoders counts held-out images that training contains."""

import numpy as np
import pytest

import tfcomp
from tests.docs.page_blocks import ROOT
from tfcomp.datasets import make_dataset

PAGE = " ".join((ROOT / "docs/decoders.md").read_text("utf-8").split())


@pytest.mark.parametrize(
    ("region", "num_equal", "words"),
    [
        ("montero:element", 8, "all on `montero:element` (8)"),
        ("random_box:.1:22", 256, "`random_box:.1:22` (256)"),
        ("random_box:.1:21", 128, "128 on `random_box:.1:21` (of 192)"),
        ("montero:range", 0, "none on `montero:range`"),
    ],
)
def test_equal_images_are_those_of_the_page(
    region: str, num_equal: int, words: str
) -> None:
    dataset = make_dataset(tfcomp.describe_run("acting", region=region))
    combinations = dataset.splits.all
    images = np.round(255 * dataset.render_array(combinations.factors))
    images = images.astype(np.uint8)
    is_ood = combinations.is_ood
    known = {image.tobytes() for image in images[~is_ood]}
    assert sum(i.tobytes() in known for i in images[is_ood]) == num_equal
    assert words in PAGE
