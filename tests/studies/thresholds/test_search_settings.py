"""Flags of a search: lists, targets, regions in fractions."""

import numpy as np
import pytest

from tfcomp.config.errors import ConfigError
from tfcomp.config.run_flags import list_flag_lines, parse_flags
from tfcomp.datasets.factors import make_pixel_space
from tfcomp.datasets.regions import parse_region
from tfcomp.studies.thresholds.cases import scale_region
from tfcomp.studies.thresholds.search_settings import (
    SearchSettings,
    define_search_flags,
    is_reached,
)


def test_every_kind_has_its_own_region() -> None:
    assert SearchSettings().variants == [
        ("bumps", "none"),
        ("stripes_and_bumps", "corner:0.5"),
    ]


@pytest.mark.parametrize(
    ("flag", "value", "message"),
    [
        ("grid_sizes", "16,x", "--grid_sizes must be positive integers"),
        ("grid_sizes", "", "--grid_sizes must be different values"),
        ("grid_sizes", "16,16", "--grid_sizes must be different values"),
        ("kinds", "stripes", "--kinds must be among: bumps"),
        ("regions", "none,", "--regions must be different values"),
        ("regions", '"none', "--regions must be quoted as in CSV"),
        ("criterion", "mse", "--criterion must be among"),
        ("target", "0.9,0.9", "--target must have a number for each"),
        ("target", "high", "--target must be greater than 0"),
        ("target", "1.5", "--target must be greater than 0 and at most 1"),
        ("target", "nan", "--target must be greater than 0"),
        ("seeds", 0, "--seeds must be at least 1"),
        ("steps", 0, "--steps must be at least 1"),
        ("tolerance", 1.0, "--tolerance must be greater than 1"),
        ("max_bumps", -1, "--max_bumps must be at least 0"),
    ],
)
def test_bad_values(flag: str, value: object, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        SearchSettings(**{flag: value})


def test_settings_survive_their_flags() -> None:
    settings = SearchSettings(regions='"box:x:0-1,y:0-0.5"', tolerance=1.5)
    values = parse_flags(list_flag_lines(settings), define_search_flags())
    assert SearchSettings.from_flags(values) == settings


@pytest.mark.parametrize(
    ("criterion", "missed"),
    [("position_accuracy", 0.49), ("relative_mse", 0.51)],
)
def test_reached(criterion: str, missed: float) -> None:
    scores = (0.5, missed, None)
    found = [is_reached(criterion, score, 0.5) for score in scores]
    assert found == [True, False, False]


@pytest.mark.parametrize(
    ("spec", "pixels"),
    [
        ("none", "none"),
        ("corner:0.5", "corner:13.5"),
        ("square:0.25-0.75", "square:6.75-20.25"),
        ("box:x:0-1,y:0.1-0.2", "box:x:0-27,y:2.7-5.4"),
        ("corner:0.3333333", "corner:8.999999"),
    ],
)
def test_fractions_of_a_grid_of_28(spec: str, pixels: str) -> None:
    assert scale_region(spec, 28) == pixels


@pytest.mark.parametrize("grid_size", [8, 16, 20, 24, 28, 32])
def test_half_holds_out_the_same_share_of_every_grid(grid_size: int) -> None:
    space = make_pixel_space(grid_size)
    for spec in ("corner:0.5", "square:0.25-0.75"):
        region = parse_region(scale_region(spec, grid_size), space)
        assert np.mean(region.contains(space.grid())) == 0.25


@pytest.mark.parametrize("spec", ["corner:14", "square:0.5-1.5", "corner:1.01"])
def test_pixels_are_no_fractions(spec: str) -> None:
    with pytest.raises(ConfigError, match="--regions must have bounds"):
        scale_region(spec, 28)
