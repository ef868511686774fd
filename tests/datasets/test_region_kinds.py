"""Regions by names, shares and files; published splits and their counts."""

import dataclasses
import itertools
from pathlib import Path

import numpy as np
import pytest

from tfcomp.config.errors import ConfigError
from tfcomp.datasets.factors import Factor, FactorSpace, make_pixel_space
from tfcomp.datasets.published import PUBLISHED
from tfcomp.datasets.regions import parse_region
from tfcomp.datasets.views import read_points

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


@pytest.mark.parametrize(
    ("bounds", "names"),
    [
        ("1", "1"),
        ("1-1", "1"),
        ("1-2", "12"),
        ("2-", "23"),
        ("min-2", "12"),
        ("2.5-7", "3"),
        ("#0-1", "31"),
    ],
)
def test_names_that_are_numbers(
    bounds: str, names: str, tmp_path: Path
) -> None:
    """As they are printed, in any order; `#` counts classes."""
    levels = "3", "1", "2"
    digit = Factor("digit", 3, 0, 2, categorical=True, names=levels)
    space = FactorSpace((digit, *make_pixel_space(4)))
    held_out = parse_region(f"digit:{bounds}", space).contains(space.grid())
    index = space.to_index(space.grid())[held_out, 0]
    assert {levels[i] for i in index} == {*names}
    path = tmp_path / "held_out.csv"
    path.write_text("digit\n1.0\n")  # as pandas writes it
    listed = parse_region(f"file:{path}", space).contains(space.grid())
    assert {*space.to_index(space.grid())[listed, 0]} == {1}
    by_name = {"digit": [1, "1"], "x": 0, "y": 0}
    assert read_points(space, by_name=by_name)[:, 0].tolist() == [1, 1]
    tens = dataclasses.replace(digit, names=("10", "20", "30"))
    values = read_points(FactorSpace((tens,)), by_name={"digit": [30, "10"]})
    assert values.tolist() == [[2], [0]]
    assert read_points(FactorSpace((tens,)), values).tolist() == [[2], [0]]
    with pytest.raises(ConfigError, match="must be among 10, 20, 30"):
        read_points(FactorSpace((tens,)), by_name={"digit": 1})
    for wrong in ("digit:4", "digit:3-2"):
        with pytest.raises(ConfigError):
            parse_region(wrong, space)


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


def make_space(name: str, **sizes: int) -> FactorSpace:
    factors = {**PUBLISHED.get(name).load().classes, **sizes}
    return FactorSpace(
        tuple(Factor(n, k, 0.0, float(k)) for n, k in factors.items())
    )


@pytest.mark.parametrize(
    ("data", "spec", "count"),
    [
        ("dSprites", "montero:element", 5_808),
        ("dSprites", "montero:range", 122_880),
        ("dSprites", "montero:extrapolation", 368_640),
        ("3DShapes", "montero:element", 72),
        ("3DShapes", "montero:range", 60_000),
        ("3DShapes", "montero:extrapolation", 240_000),
    ],
)
def test_montero_holds_out_as_many_as_published(
    data: str, spec: str, count: int
) -> None:
    space = make_space(data)
    assert parse_region(spec, space).contains(space.grid()).sum() == count


@pytest.mark.parametrize(
    ("rung", "share"), [(0, 0.39), (1, 0.32), (2, 0.63), (3, 0.58)]
)
def test_ladder_trains_on_the_published_share(rung: int, share: float) -> None:
    space = make_space("dSprites", orientation=1)
    held_out = parse_region(f"orthotopic:{rung}", space).contains(space.grid())
    # As printed; the exact shares are .3906, .3236, .6250 and .5747.
    assert 1 - held_out.mean() == pytest.approx(share, abs=0.006)


def test_ladder_equals_its_definition() -> None:
    space = make_space("3DShapes")
    points = np.random.default_rng(0).choice(space.grid(), 500)
    found = parse_region("orthotopic:3", space).contains(points)
    order = [space.names.index(n) for n in ("floor_hue", "wall_hue")]
    order += [space.names.index(n) for n in ("object_hue", "scale", "shape")]
    for point, is_held_out in zip(points, found, strict=True):
        classes = [point[column] for column in order]
        high = [c >= t for c, t in zip(classes, (4, 4, 4, 3, 1), strict=True)]
        assert is_held_out == (sum(high) > 3)


def test_names_of_other_readers_and_other_sizes() -> None:
    named = {"label_shape": 3, "label_scale": 3, "label_orientation": 8}
    named |= {"posX": 8, "y_position": 16}
    space = FactorSpace(
        tuple(Factor(n, k, 0.0, float(k)) for n, k in named.items())
    )
    held_out = parse_region("montero:extrapolation", space)
    index = space.to_index(space.grid())
    expected = index[:, 3] >= 4
    np.testing.assert_array_equal(held_out.contains(space.grid()), expected)


def test_wiedemer_supports() -> None:
    space = make_pixel_space(5)
    grid = space.grid()
    axes = parse_region("wiedemer:orthogonal", space).contains(grid)
    near = parse_region("wiedemer:diagonal:.25", space).contains(grid)
    for row, (x, y) in enumerate(itertools.product(range(5), repeat=2)):
        assert axes[row] == (x != 2 and y != 2)
        assert near[row] == (abs(x - y) > 1)
    stripe = np.array([[1.0, np.nan]], np.float32)
    for spec in ("wiedemer:orthogonal", "wiedemer:diagonal:.25"):
        assert not parse_region(spec, space).contains(stripe)[0]


@pytest.mark.parametrize(
    ("spec", "data", "rule"),
    [
        ("montero:none", "dSprites", "element, range, extrapolation"),
        ("wiedemer:diagonal:2", "dSprites", "diagonal:WIDTH"),
    ],
)
def test_unknown_split(spec: str, data: str, rule: str) -> None:
    with pytest.raises(ConfigError, match=rule):
        parse_region(spec, make_space(data))


def test_each_value_is_trained_with_k_others() -> None:
    factors = [
        Factor(n, s, 0.0, 1.0) for n, s in (("a", 2), ("b", 6), ("c", 9))
    ]
    space = FactorSpace(tuple(factors))
    grid = space.grid()
    held_out = parse_region("uselis:3:2", space).contains(grid)
    trained = space.to_index(grid[~held_out])
    # b has blocks of 2 values and c of 3; a has too few and is free.
    pairs = {(b // 2, c // 3) for _, b, c in trained}
    assert pairs == {(0, 0), (0, 1), (1, 1), (1, 2), (2, 2), (2, 0)}
    assert len(trained) == 2 * 6 * 6
