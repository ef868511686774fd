"""Published splits: the counts of their papers, and slow definitions."""

import itertools

import numpy as np
import pytest

from tfcomp.config.errors import ConfigError
from tfcomp.datasets.factors import Factor, FactorSpace, make_pixel_space
from tfcomp.datasets.named_splits import PUBLISHED
from tfcomp.datasets.regions import parse_region


def make_space(name: str, **sizes: int) -> FactorSpace:
    factors = {**PUBLISHED[name]["classes"], **sizes}
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
        ("MPI3D", "montero:range", 86_400),
        ("MPI3D", "montero:range_color", 86_400),
        ("MPI3D", "montero:element", 16),
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
        ("orthotopic:0", "MPI3D", "another region for MPI3D"),
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
