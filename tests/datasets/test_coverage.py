"""Families of regions by coverage."""

import numpy as np
import pytest

from tfcomp.config.errors import ConfigError
from tfcomp.datasets.factors import make_pixel_space
from tfcomp.datasets.regions import parse_region
from tfcomp.datasets.splits import add_seed, list_regions

SPACE = make_pixel_space(8)
GRID = SPACE.grid()


def find_trained(region: str, seed: int) -> np.ndarray:
    """Which combinations a seed's region leaves to training."""
    seeded = add_seed(region, seed)
    return ~parse_region(seeded, SPACE).contains(GRID)


@pytest.mark.parametrize(
    "coverage, regions",
    [
        ("random:.1,.25", ["random:0.9", "random:0.75"]),
        ("uselis:4:1,3", ["uselis:4:1", "uselis:4:3"]),
        ("orthotopic:0,2", ["orthotopic:0", "orthotopic:2"]),
    ],
)
def test_regions_of_a_family(coverage, regions):
    assert list_regions(coverage) == regions


@pytest.mark.parametrize(
    "coverage",
    [
        ".1,.2",
        "random",
        "random:",
        "random:0",
        "random:1",
        "random:.1,",
        "random:.1:3",
        "random:20",
        "square:6-22",
        "uselis:3",
    ],
)
def test_mistakes(coverage):
    with pytest.raises(ConfigError, match="--coverage"):
        list_regions(coverage)


@pytest.mark.parametrize("seed", [0, 1])
def test_training_has_the_share_and_keeps_it(seed):
    """Larger shares of a seed contain smaller ones."""
    before = np.zeros(len(GRID), bool)
    for region, share in zip(
        list_regions("random:.125,.5,.75"),
        (0.125, 0.5, 0.75),
        strict=True,
    ):
        is_trained = find_trained(region, seed)

        assert is_trained.mean() == share
        assert not (before & ~is_trained).any()
        before = is_trained


def test_seeds_draw_their_own_random_splits_alone():
    assert add_seed("random:0.9", 3) == "random:0.9:3"
    assert add_seed("uselis:8:3", 3) == "uselis:8:3"
