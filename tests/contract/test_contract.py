"""Names, flags and verdicts change on purpose alone (see `freeze.py`)."""

import csv
import difflib
import hashlib
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pytest

from tests.contract.freeze import TOP, list_flags, list_names
from tfcomp.config.errors import RunError
from tfcomp.config.run_flags import parse_config
from tfcomp.datasets import make_dataset

FROZEN = Path(__file__).with_name("frozen")
# `tests/reproduction/claims/test_page.py` holds that the committed evidence
# gives this table.
CLAIMS = TOP / "docs/tables/claims.csv"
NUMBERS = ("mean", "low", "high", "n")
HINT = "if this is on purpose: python tests/contract/freeze.py FOLDER, and copy"


def check_lines(name: str, found: Iterable[str]):
    """Compares lines with a frozen file."""
    frozen = (FROZEN / name).read_text("utf-8").splitlines()
    lines = difflib.ndiff(frozen, list(found))
    changed = [line for line in lines if line.startswith(("- ", "+ "))]
    text = "\n".join(changed)
    assert not changed, f"{text}\n{HINT} FOLDER/{name} to {FROZEN}"


def test_public_names_and_signatures_are_the_frozen_ones():
    check_lines("names.txt", list_names())


def test_flags_and_defaults_are_the_frozen_ones():
    check_lines("flags.txt", list_flags())


def read_rows(path: Path) -> list[dict[str, str]]:
    """The rows of a table."""
    with open(path, encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


SLOW = ("rotated_digits", "rotated_mnist", "sprites")
IMAGES = {}  # hashes by the name of a flagfile
for row in read_rows(FROZEN / "images.csv"):
    IMAGES[row["flagfile"]] = row["sha256"]
QUICK = [name for name in IMAGES if name not in SLOW]


@pytest.mark.parametrize(
    "name",
    [*QUICK, *(pytest.param(name, marks=pytest.mark.slow) for name in SLOW)],
)
def test_the_images_of_an_experiment_are_the_frozen_ones(name: str):
    """All combinations in the order of the grid, as `round(255 * pixel)`."""
    config = parse_config([f"--flagfile={name}.flags"])
    try:
        dataset = make_dataset(config)
    except RunError as error:
        pytest.skip(f"no MNIST: {error}")

    digest = hashlib.sha256()
    for images in dataset.render_parts(dataset.splits.all.factors):
        pixels = np.rint(255 * images).astype(np.uint8)
        digest.update(pixels.tobytes())

    assert digest.hexdigest() == IMAGES[name]


def test_numbers_of_claims_are_the_frozen_ones():
    """Version 4 of the claims judged the same quantities by other rules."""
    rows = {}
    for row in read_rows(CLAIMS):
        rows[row["claim"], row["part"], row["quantity"]] = row

    frozen = read_rows(FROZEN / "claims.csv")
    assert len(frozen) > 60
    for old in frozen:
        row = rows[old["claim"], old["part"], old["quantity"]]
        for name in NUMBERS:
            if old[name]:  # a trend had no interval
                expected = pytest.approx(float(old[name]), rel=1e-12)
                assert float(row[name]) == expected, old
