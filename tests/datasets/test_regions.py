"""Regions against slow loops; published splits; malformed specs."""

import itertools

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from tests.datasets.own_tables import list_rows, make_named, make_space
from tfcomp.config.errors import ConfigError
from tfcomp.datasets.factors import Factor, FactorSpace, make_pixel_space
from tfcomp.datasets.published import PUBLISHED
from tfcomp.datasets.regions import parse_region


def hold_out(spec: str, space: FactorSpace) -> np.ndarray:
    """Which combinations of the grid a region holds out."""
    region = parse_region(spec, space)
    return region.contains(space.grid())


TWO = make_pixel_space(12)
THREE = make_space(
    x=7,
    y=7,
    z=7,
)
ANGLE = Factor(
    "angle",
    36,
    0.0,
    360.0,
    periodic=True,
)
ROTATED = FactorSpace((Factor("x", 4, 0.0, 3.0), ANGLE))
LABELLED = FactorSpace(
    (
        *TWO,
        Factor(
            "digit",
            3,
            0.0,
            2.0,
            categorical=True,
        ),
    )
)
NAMED = FactorSpace(
    (
        make_named("shape", "a", "b", "c"),
        Factor(
            "size",
            4,
            1.0,
            9.0,
            levels=(1.0, 2.0, 4.0, 9.0),
        ),
        Factor(
            "angle",
            6,
            0.0,
            360.0,
            periodic=True,
        ),
    )
)

PLAIN = {
    "square:2-5": lambda *p: all(2 <= v <= 5 for v in p),
    "square:2.5-5": lambda *p: all(2.5 <= v <= 5 for v in p),
    "cross:2-3": lambda *p: any(2 <= v <= 3 for v in p),
    "corner:4": lambda *p: all(v >= 4 for v in p),
    "gap:x:2-3": lambda *p: 2 <= p[0] <= 3,
    "box:x:2-5,y:0-1": lambda *p: 2 <= p[0] <= 5 and 0 <= p[1] <= 1,
    "diagonal:1": lambda *p: max(p) - min(p) <= 1,
}
TURNED = {
    "gap:angle:350-10": lambda x, a: a >= 350 or a <= 10,
    "gap:angle:10-350": lambda x, a: 10 <= a <= 350,
    "angle:270-360": lambda x, a: a >= 270 or a == 0,
    "angle:270-": lambda x, a: a >= 270,
}
DIGITS = {
    "square:3-5": lambda x, y, d: 3 <= min(x, y) <= max(x, y) <= 5,
    "x:3-5,digit:1-1": lambda x, y, d: 3 <= x <= 5 and d == 1,
}
# On the grid alone: classes and names are those of the nearest value.
CLASSES = {
    "shape:c": lambda s, z, a: s == 2,
    "box:shape:b,size:2-4": lambda s, z, a: s == 1 and 2 <= z <= 4,
    "size:#1-2": lambda s, z, a: z in (2, 4),
    "angle:#5-1": lambda s, z, a: a in (300, 0, 60),
    "shape:#0,angle:#3": lambda s, z, a: s == 0 and a == 180,
    "shape:c|size:9": lambda s, z, a: s == 2 or z == 9,
    "size:1-4&not:shape:c": lambda s, z, a: z <= 4 and s != 2,
    "not:size:1|size:9&shape:c|shape:b": lambda s, z, a: z in (2, 4) and s > 0,
}


@pytest.mark.parametrize(
    "space, rules",
    [
        (TWO, PLAIN),
        (THREE, PLAIN),
        (ROTATED, TURNED),
        (LABELLED, DIGITS),
        (NAMED, CLASSES),
    ],
)
def test_regions_equal_their_definition(space, rules):
    table = space.grid()
    if space is not NAMED:
        # A region is defined between the grid values as well.
        table = np.concatenate([table, table + 0.5, table - 0.5])
    points = table.tolist()

    for spec, rule in rules.items():
        held_out = parse_region(spec, space).contains(table)

        expected = [bool(rule(*point)) for point in points]
        assert held_out.dtype == bool
        assert_array_equal(held_out, expected, err_msg=spec)
        assert 0 < sum(expected) < len(expected)


@pytest.mark.parametrize(
    "spec, expected",
    [
        ("corner:0", []),
        ("cross:4-6", [0, 2]),
        ("gap:x:4-6", [0]),
        ("not:x:9", []),
        ("wiedemer:orthogonal", []),
        ("wiedemer:diagonal:.25", []),
    ],
)
def test_stripe_is_held_out_for_its_own_value_only(spec, expected):
    nan = np.nan
    stripes = [[5, nan], [7, nan], [nan, 5], [nan, nan]]
    region = parse_region(spec, TWO)

    held_out = region.contains(np.float32(stripes))
    assert np.flatnonzero(held_out).tolist() == expected


@pytest.mark.parametrize(
    "spec, rule",
    [
        ("none:3", "bounds"),
        ("square:3", "LOW-HIGH"),
        ("square:nan-5", "LOW-HIGH"),
        ("square:8-3", "lower bound"),
        ("square:3-12", "0 to 11"),
        ("corner:1e", "number"),
        ("x:#0-12", "#0 to #11"),
        ("diagonal:-1", "at least 0"),
        ("gap:3-5", "x, y"),
        ("box:x:3-5,y", "LOW-HIGH"),
        ("gap:x:3-5,x:7-9", "once"),
        ("montero:element", "published"),
        ("wiedemer:diagonal:2", "diagonal:WIDTH"),
    ],
)
def test_bad_spec_names_flag_rule_and_value(spec, rule):
    with pytest.raises(ConfigError) as error:
        parse_region(spec, TWO)
    assert rule in error.value.rule
    assert error.value.name == "region"
    assert error.value.value == spec


EVEN = {
    "hue": (np.arange(10) / 10, True),
    "scale": (np.linspace(0.75, 1.25, 8), False),
    "turn": (np.linspace(0, 2 * np.pi, 20), False),
    "log": (10.0 ** np.arange(-6, 3), False),
}


def make_factor(name: str) -> Factor:
    values, periodic = EVEN[name]
    high = values[-1]
    if periodic:
        high += values[1] - values[0]
    levels = ()
    if name == "log":
        levels = tuple(values.tolist())
    return Factor(
        name,
        size=len(values),
        low=values[0],
        high=high,
        periodic=periodic,
        levels=levels,
    )


@pytest.mark.parametrize("name", EVEN)
def test_printed_values_are_bounds(name):
    """All intervals of shipped layouts, with the digits that are printed."""
    factor = make_factor(name)
    space = FactorSpace((factor,))
    values = factor.values().tolist()
    pairs = itertools.combinations_with_replacement(range(factor.size), 2)
    for low, high in pairs:
        expected = np.zeros(factor.size, bool)
        expected[low : high + 1] = True
        for show in (factor.describe, "{:.7g}".format):
            spec = f"{name}:{show(values[low])}-{show(values[high])}"
            held_out = hold_out(spec, space)
            assert_array_equal(held_out, expected, err_msg=spec)


@pytest.mark.parametrize(
    "spec, classes",
    [
        ("scale:1.0357", [4]),
        ("scale:0.75-0.892857", [0, 1, 2]),
        ("scale:1-max", [4, 5, 6, 7]),
        ("scale:min-0.9", [0, 1, 2]),
        ("scale:#6-", [6, 7]),
        ("scale:1.2-1.28", [7]),
        ("scale:0.72-0.8", [0]),
    ],
)
def test_open_and_rounded_bounds(spec, classes):
    scale = FactorSpace((make_factor("scale"),))
    held_out = hold_out(spec, scale)
    assert np.flatnonzero(held_out).tolist() == classes


@pytest.mark.parametrize(
    "bounds, names",
    [
        ("1", "1"),
        ("3", "3"),
        ("#0-1", "31"),
    ],
)
def test_names_that_are_numbers(bounds, names):
    digit = make_named("digit", "3", "1", "2")
    space = FactorSpace((digit,))

    held_out = hold_out(f"digit:{bounds}", space)

    held_out_names = np.array(digit.names)[held_out]
    assert set(held_out_names) == set(names)
    # An interval could be one of names or of values.
    with pytest.raises(ConfigError, match="3, 1, 2"):
        parse_region("digit:1-2", space)


@pytest.mark.parametrize("name", ["not", "random", "box"])
def test_a_factor_may_have_the_name_of_a_kind(name):
    space = make_space(**{name: 4, "x": 3})
    index = space.to_index(space.grid())

    held_out = hold_out(f"{name}:2,x:1|{name}:#0", space)

    expected = (index == [2, 1]).all(axis=1) | (index[:, 0] == 0)
    assert_array_equal(held_out, expected)


def test_random_share():
    first = hold_out("random:0.25", NAMED)
    other = hold_out("random:0.25:1", NAMED)

    assert first.sum() == other.sum() == round(0.25 * len(first))
    assert (first != other).any()
    assert_array_equal(hold_out("random:0.25:0", NAMED), first)
    # Between grid values the nearest combination decides.
    region = parse_region("random:0.25", NAMED)
    near = NAMED.grid() + np.float32([0.2, 0.1, 10.0])
    assert_array_equal(region.contains(near), first)


@pytest.mark.parametrize("seed", range(6))
def test_a_random_box_hides_no_value(seed):
    region = parse_region(f"random_box:0.2:{seed}", NAMED)
    grid = NAMED.grid()

    held_out = region.contains(grid)

    trained = grid[~held_out]
    for values, size in zip(trained.T, NAMED.shape, strict=True):
        assert len(np.unique(values)) == size
    # It is the product of the values that it has of every factor.
    num_values = [len(np.unique(values)) for values in grid[held_out].T]
    num_ood = held_out.sum()
    assert num_ood == np.prod(num_values)
    assert 1 <= num_ood < len(grid) / 2
    absent = np.float32([[0.0, np.nan, 60.0]])
    assert not region.contains(absent).any()


def make_published(name: str, **sizes: int) -> FactorSpace:
    """The factors of a published data set, some with other sizes."""
    classes = PUBLISHED.get(name).load().classes | sizes
    return make_space(**classes)


@pytest.mark.parametrize(
    "data, spec, count",
    [
        ("dSprites", "montero:element", 5_808),
        ("dSprites", "montero:range", 122_880),
        ("dSprites", "montero:extrapolation", 368_640),
        ("3DShapes", "montero:element", 72),
        ("3DShapes", "montero:range", 60_000),
        ("3DShapes", "montero:extrapolation", 240_000),
        ("MPI3D", "montero:element", 16),
        ("MPI3D", "montero:range", 86_400),
        ("MPI3D", "montero:range_color", 86_400),
    ],
)
def test_montero_holds_out_as_many_as_published(data, spec, count):
    assert hold_out(spec, make_published(data)).sum() == count


@pytest.mark.parametrize(
    "rung, share",
    [
        (0, 0.39),
        (1, 0.32),
        (2, 0.63),
        (3, 0.58),
    ],
)
def test_ladder_trains_on_the_published_share(rung, share):
    space = make_published("dSprites", orientation=1)
    held_out = hold_out(f"orthotopic:{rung}", space)
    # As printed; the exact shares are .3906, .3236, .6250 and .5747.
    assert 1 - held_out.mean() == pytest.approx(share, abs=0.006)


def test_names_of_other_readers_and_other_sizes():
    space = make_space(
        label_shape=3,
        label_scale=3,
        label_orientation=8,
        posX=8,
        y_position=16,
    )
    held_out = hold_out("montero:extrapolation", space)
    x = space.to_index(space.grid())[:, 3]
    assert_array_equal(held_out, x >= 4)
    with pytest.raises(ConfigError, match="extrapolation"):
        parse_region("montero:none", space)
    # Nobody published such a split of other data.
    with pytest.raises(ConfigError, match="MPI3D"):
        parse_region("orthotopic:0", make_published("MPI3D"))


@pytest.mark.parametrize(
    "groups, columns",
    [
        ("", [[0], [1], [2], [3]]),
        (":x_a+y_a,x_b+y_b", [[0, 1], [2, 3]]),
    ],
)
def test_wiedemer_supports(groups, columns):
    space = make_space(
        x_a=3,
        y_a=3,
        x_b=3,
        y_b=3,
    )
    grid = space.grid()
    parts = np.stack([grid[:, part] for part in columns])

    axes = hold_out(f"wiedemer:orthogonal{groups}", space)
    near = hold_out(f"wiedemer:diagonal:.5{groups}", space)

    is_off = (parts != 1).any(axis=2)
    num_off = is_off.sum(axis=0)
    distances = np.ptp(parts, axis=0)
    is_apart = (distances > 1).any(axis=1)
    assert_array_equal(axes, num_off > 1)
    assert_array_equal(near, is_apart)


def test_each_value_is_trained_with_k_others():
    space = make_space(
        a=2,
        b=6,
        c=9,
    )
    held_out = hold_out("uselis:3:2", space)
    trained = space.grid()[~held_out]
    # b has blocks of 2 values and c of 3; a has too few and is free.
    blocks = trained[:, 1:] // [2, 3]
    assert list_rows(blocks) == {
        (0, 0),
        (0, 1),
        (1, 1),
        (1, 2),
        (2, 2),
        (2, 0),
    }
    assert len(trained) == 2 * 6 * 6
