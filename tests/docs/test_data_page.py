"""The page of datasets is what flags draw, hashed again.

With `UPDATE_PAGES=1` in the environment, the slow test writes the page.
"""

import functools
import hashlib
import itertools
import json
import math
import os
import re

import numpy as np
import pytest

from tests.docs.page_blocks import ROOT
from tfcomp.config.errors import RunError
from tfcomp.config.flagfiles import SHIPPED
from tfcomp.config.run_config import RunConfig
from tfcomp.config.run_flags import parse_config
from tfcomp.datasets import DATASETS, make_dataset
from tfcomp.datasets.dataset import Dataset
from tfcomp.datasets.notes import describe_factor

PAGE = ROOT / "docs" / "data.md"
BEGIN = "<!-- made from the flagfiles by tests/docs -->\n"
OTHER_COMMANDS = ("sweep", "threshold", "decoders")
SPLIT = ("region", "num_train", "coordinates", "noise", "num_bumps", "balance")
# Other tests register functions of their own.
BUILT_IN = {
    name
    for name in DATASETS.names()
    if DATASETS.get(name).target.__module__.startswith("tfcomp.")
}
LARGE = 10**6  # bytes: more is hashed by the slow test alone


@functools.cache
def group_flagfiles() -> dict[str, list[str]]:
    """Shipped flagfiles of single runs, by the images that they ask for."""
    groups: dict[str, list[str]] = {}
    for path in sorted(SHIPPED.glob("*.flags")):
        if path.stem.startswith(OTHER_COMMANDS):
            continue
        data = read_config(path.stem).data.to_flags()
        images = {k: v for k, v in data.items() if k not in SPLIT}
        groups.setdefault(json.dumps(images), []).append(path.stem)
    return groups


@functools.cache
def read_config(name: str) -> RunConfig:
    return parse_config([f"--flagfile={name}.flags"])


def list_stems() -> list[str]:
    """The first flagfile of each group of equal images."""
    return [names[0] for names in group_flagfiles().values()]


def count_bytes(dataset: Dataset) -> int:
    """The bytes of the images of all combinations, as uint8."""
    return len(dataset.splits.all.factors) * math.prod(dataset.image_shape)


def hash_images(dataset: Dataset) -> str:
    """The SHA-256 that the page defines."""
    digest = hashlib.sha256()
    for images in dataset.render_parts(dataset.splits.all.factors):
        digest.update(np.rint(255 * images).astype(np.uint8).tobytes())
    return digest.hexdigest()


def format_section(names: list[str], digest: str) -> str:
    dataset = make_dataset(read_config(names[0]))
    factors = "; ".join(map(describe_factor, dataset.space))
    shape = " x ".join(map(str, dataset.image_shape))
    return (
        f"\n### {names[0]}\n\n{', '.join(f'`{n}`' for n in names)}: "
        f"{dataset.about}.\n\n"
        f"- `--dataset={dataset.name}`, factors: {factors}\n"
        f"- {len(dataset.splits.all.factors):,} images of {shape}, "
        f"{count_bytes(dataset):,} bytes, licence {dataset.license}\n"
        f"- SHA-256 `{digest}`\n"
    )


def format_splits() -> str:
    rows = []
    for name in itertools.chain(*group_flagfiles().values()):
        config = read_config(name)
        splits = make_dataset(config).splits
        rows.append(
            f"| `{name}` | `{config.data.region}` | "
            f"{len(splits.train):,} | {int(splits.all.is_ood.sum()):,} |\n"
        )
    head = "| flagfile | held out | training images | held-out combinations |"
    return f"{head}\n|---|---|---|---|\n{''.join(rows)}"


def format_page(digests: dict[str, str]) -> str:
    sections = (
        format_section(names, digests[names[0]])
        for names in group_flagfiles().values()
    )
    return f"{''.join(sections)}\n## What they hold out\n\n{format_splits()}"


def find_digests() -> dict[str, str]:
    """Statements of the page, by the first flagfile of a section."""
    return dict(
        re.findall(
            r"^### (\w+)\n.*?^- SHA-256 `([0-9a-f]{64})`$",
            PAGE.read_text("utf-8"),
            re.MULTILINE | re.DOTALL,
        )
    )


def test_the_page_has_every_dataset_and_split() -> None:
    text = PAGE.read_text("utf-8")
    _, _, shown = text.partition(BEGIN)
    assert shown == format_page(find_digests())
    used = {read_config(name).data.dataset for name in list_stems()}
    # `table` is for images of one's own, and other tests register theirs.
    assert used == BUILT_IN - {"table"}
    assert "licence cc-by-sa-3.0" in shown and "licence mit" in shown


def test_small_images_have_the_hash_of_the_page() -> None:
    known = find_digests()
    small = 0
    for name in list_stems():
        dataset = make_dataset(read_config(name))
        if dataset.name != "rotated_digits" and count_bytes(dataset) < LARGE:
            assert hash_images(dataset) == known[name], name
            small += 1
    assert small >= 4


@pytest.mark.slow
def test_all_images_have_the_hash_of_the_page() -> None:
    known, found = find_digests(), {}
    for name in list_stems():
        try:
            found[name] = hash_images(make_dataset(read_config(name)))
        except RunError:  # no MNIST
            found[name] = known[name]
    if "UPDATE_PAGES" in os.environ:
        start, _, _ = PAGE.read_text("utf-8").partition(BEGIN)
        PAGE.write_text(f"{start}{BEGIN}{format_page(found)}", "utf-8")
    else:
        assert found == known
