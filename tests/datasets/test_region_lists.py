"""Regions by names, classes, unions, complements, shares and files."""

from pathlib import Path

import numpy as np
import pytest

from tfcomp.config.errors import ConfigError
from tfcomp.datasets.factors import Factor, FactorSpace
from tfcomp.datasets.regions import parse_region

SHAPE = Factor(
    "shape", 3, 0.0, 2.0, categorical=True, names=("square", "disk", "heart")
)
SIZE = Factor("size", 4, 1.0, 9.0, levels=(1.0, 2.0, 4.0, 9.0))
ANGLE = Factor("angle", 6, 0.0, 360.0, periodic=True)
SPACE = FactorSpace((SHAPE, SIZE, ANGLE))


@pytest.mark.parametrize(
    ("spec", "rule"),
    [
        ("shape:heart", lambda s, z, a: s == 2),
        ("box:shape:disk,size:2-4", lambda s, z, a: s == 1 and 2 <= z <= 4),
        ("size:4", lambda s, z, a: z == 4),
        ("size:#1-2", lambda s, z, a: z in (2, 4)),
        ("angle:#5-1", lambda s, z, a: a in (300, 0, 60)),
        ("shape:#0,angle:#3", lambda s, z, a: s == 0 and a == 180),
        ("shape:heart|size:9", lambda s, z, a: s == 2 or z == 9),
        ("not:shape:heart|size:9", lambda s, z, a: s != 2 and z != 9),
        ("not:gap:size:1-2", lambda s, z, a: z > 2),
        ("size:1-4&not:shape:heart", lambda s, z, a: z <= 4 and s != 2),
        (
            "not:size:1|size:9&shape:heart|shape:disk",
            lambda s, z, a: z in (2, 4) and s > 0,
        ),
    ],
)
def test_region_equals_its_definition(spec, rule) -> None:
    grid = SPACE.grid()
    found = parse_region(spec, SPACE).contains(grid)
    assert found.tolist() == [rule(*point) for point in grid.tolist()]


def test_an_absent_factor_lies_in_no_complement() -> None:
    table = np.array([[np.nan, 9.0, 0.0], [0.0, 9.0, 0.0]], np.float32)
    found = parse_region("not:shape:heart", SPACE).contains(table)
    assert found.tolist() == [False, True]


def test_random_share() -> None:
    grid = SPACE.grid()
    held_out = {
        spec: parse_region(spec, SPACE).contains(grid)
        for spec in ("random:0.25", "random:0.25:0", "random:0.25:1")
    }
    first, same, other = held_out.values()
    assert first.sum() == other.sum() == round(0.25 * len(grid))
    np.testing.assert_array_equal(first, same)
    assert (first != other).any()
    # Between grid values the nearest combination decides.
    inside = parse_region("random:0.25", SPACE)
    near = grid + np.float32([0.2, 0.1, 10.0])
    np.testing.assert_array_equal(inside.contains(near), first)
    assert not inside.contains(np.full((2, 3), np.nan, np.float32)).any()


def test_file_of_combinations(tmp_path: Path) -> None:
    path = tmp_path / "held_out.csv"
    path.write_text("size,shape\n9,heart\n1, square\n\n4,1\n")
    found = parse_region(f"file:{path}", SPACE).contains(SPACE.grid())
    listed = {(2.0, 9.0), (0.0, 1.0), (1.0, 4.0)}
    expected = [(s, z) in listed for s, z, _ in SPACE.grid().tolist()]
    assert found.tolist() == expected


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("", "readable CSV"),
        ("size,shape\n", "with rows"),
        ("size,color\n1,2\n", "factors among: shape, size, angle"),
        ("size,size\n1,2\n", "factors among"),
        ("size,shape\n9\n", "line 2 has shape ''"),
        ("size,shape\n9,heart\n3,heart\n", "line 3 has size '3'"),
        ("shape\nstar\n", "line 2 has shape 'star'"),
    ],
)
def test_file_that_is_not_right(tmp_path: Path, text: str, rule: str) -> None:
    path = tmp_path / "held_out.csv"
    path.write_text(text)
    with pytest.raises(ConfigError, match=rule):
        parse_region(f"file:{path}", SPACE)


@pytest.mark.parametrize("seed", range(6))
def test_a_random_box_hides_no_value(seed: int) -> None:
    grid = SPACE.grid()
    region = parse_region(f"random_box:0.2:{seed}", SPACE)
    held_out = region.contains(grid)
    index = SPACE.to_index(grid)
    for column, size in enumerate(SPACE.shape):
        assert len({*index[~held_out, column]}) == size
    # It is the product of what it has of every factor.
    values = [{*column} for column in index[held_out].T]
    assert held_out.sum() == np.prod([len(found) for found in values])
    assert 1 <= held_out.sum() < len(grid) / 2
    absent = np.array([[0.0, np.nan, 60.0]], np.float32)
    assert not region.contains(absent).any()
