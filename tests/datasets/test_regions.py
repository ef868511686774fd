"""Regions against slow loops; malformed and impossible specs."""

from collections.abc import Callable
from itertools import combinations, combinations_with_replacement

import numpy as np
import pytest

from tfcomp.config.errors import ConfigError
from tfcomp.datasets.factors import Factor, FactorSpace, make_pixel_space
from tfcomp.datasets.regions import REGIONS, parse_region

TWO = make_pixel_space(12)
THREE = FactorSpace(
    tuple(Factor(name, 7, 0.0, 6.0, unit="px") for name in ("x", "y", "z"))
)
ANGLE = Factor("angle", 36, 0.0, 360.0, periodic=True)
ROTATED = FactorSpace((Factor("x", 4, 0.0, 3.0), ANGLE))
LABELLED = FactorSpace((*TWO, Factor("digit", 3, 0.0, 2.0, categorical=True)))

Rule = Callable[[tuple[float, ...]], bool]


PLAIN: dict[str, Rule] = {
    "square:2-5": lambda p: all(2 <= v <= 5 for v in p),
    "square:2.5-5": lambda p: all(2.5 <= v <= 5 for v in p),
    "cross:2-3": lambda p: any(2 <= v <= 3 for v in p),
    "corner:4": lambda p: all(v >= 4 for v in p),
    "gap:x:2-3": lambda p: 2 <= p[0] <= 3,
    "box:x:2-5,y:0-1": lambda p: 2 <= p[0] <= 5 and 0 <= p[1] <= 1,
    "diagonal:1": lambda p: all(abs(a - b) <= 1 for a, b in combinations(p, 2)),
    "diagonal:0": lambda p: len(set(p)) == 1,
}


@pytest.mark.parametrize(
    ("spec", "space", "rule"),
    [
        *((spec, TWO, rule) for spec, rule in PLAIN.items()),
        *((spec, THREE, rule) for spec, rule in PLAIN.items()),
        ("gap:angle:350-10", ROTATED, lambda p: p[1] >= 350 or p[1] <= 10),
        ("gap:angle:10-350", ROTATED, lambda p: 10 <= p[1] <= 350),
        ("angle:270-360", ROTATED, lambda p: p[1] >= 270 or p[1] == 0),
        ("angle:270-", ROTATED, lambda p: p[1] >= 270),
        ("angle:360", ROTATED, lambda p: p[1] == 0),
        ("square:3-5", LABELLED, lambda p: 3 <= min(p[:2]) <= max(p[:2]) <= 5),
        ("diagonal:2", LABELLED, lambda p: abs(p[0] - p[1]) <= 2),
        ("x:3-5,digit:1-1", LABELLED, lambda p: 3 <= p[0] <= 5 and p[2] == 1),
    ],
)
def test_region_equals_its_definition(
    spec: str, space: FactorSpace, rule: Rule
) -> None:
    table = space.grid()
    # Half steps, too: a region is defined between the grid values as well.
    table = np.concatenate([table, table + 0.5, table - 0.5])
    found = parse_region(spec, space).contains(table)
    expected = [bool(rule(tuple(point))) for point in table.tolist()]
    assert found.dtype == bool
    np.testing.assert_array_equal(found, expected)
    assert 0 < sum(expected) < len(expected)


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ("corner:0", []),
        ("diagonal:11", []),
        ("cross:4-6", [0, 2]),
        ("gap:x:4-6", [0]),
    ],
)
def test_stripe_is_held_out_for_its_own_value_only(
    spec: str, expected: list[int]
) -> None:
    nan = np.nan
    stripes = np.array([[5, nan], [7, nan], [nan, 5], [nan, nan]], np.float32)
    held_out = parse_region(spec, TWO).contains(stripes)
    assert np.flatnonzero(held_out).tolist() == expected


@pytest.mark.parametrize(
    ("spec", "rule"),
    [
        ("none:3", "takes no bounds"),
        ("square:3", "must have bounds of the form LOW-HIGH"),
        ("square:nan-5", "must have bounds of the form LOW-HIGH"),
        ("square:8-3", "must have its lower bound first"),
        ("square:3-12", "must lie in the range of x, 0 to 11"),
        ("corner:1e", "must have one number after its kind"),
        ("x:#0-12", "must lie in the range of x, #0 to #11"),
        ("diagonal:-1", "must have a half width of at least 0"),
        ("gap:3-5", "must name factors among: x, y"),
        ("box:x:3-5,y", "must have bounds of the form LOW-HIGH"),
        ("gap:x:3-5,x:7-9", "must name each factor once"),
    ],
)
def test_bad_spec_names_flag_rule_and_value(spec: str, rule: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_region(spec, TWO)
    message = str(caught.value)
    assert message.startswith(f"--region {rule}")
    assert message.endswith(f"got {spec!r}")
    assert "\n" not in message
    assert (caught.value.name, caught.value.value) == ("region", spec)


def test_user_registers_a_region() -> None:
    def make_checkers(arguments: str, space: FactorSpace):
        return lambda values: values.sum(axis=1) % 2 == 0

    REGIONS.register("checkers_for_this_test", make_checkers)
    region = parse_region("checkers_for_this_test:any", TWO)
    assert region.spec == "checkers_for_this_test:any"
    assert region.contains(TWO.grid()).sum() == 72


EVEN = {
    "hue": (np.arange(10) / 10, True),
    "scale": (np.linspace(0.75, 1.25, 8), False),
    "shape": (np.arange(4.0), False),
    "orientation": (np.linspace(-30, 30, 15), False),
    "sprite": (np.linspace(0, 1, 32), False),
    "turn": (np.linspace(0, 2 * np.pi, 40), False),
    "log": (10.0 ** np.arange(-6, 3), False),
    "fine": (1000 + np.arange(40) / 8, False),
}


def make_factor(name: str) -> Factor:
    values, periodic = EVEN[name]
    high = values[-1] + (values[1] - values[0]) * periodic
    even = name != "log"
    levels = () if even else tuple(values.tolist())
    return Factor(
        name, len(values), values[0], high, "", periodic, False, levels
    )


@pytest.mark.parametrize("name", EVEN)
def test_printed_values_are_bounds(name: str) -> None:
    """All intervals of shipped layouts, with the digits that are printed."""
    factor = make_factor(name)
    space = FactorSpace((factor,))
    grid, values = space.grid(), factor.values().tolist()
    for low, high in combinations_with_replacement(range(factor.size), 2):
        expected = np.zeros(factor.size, bool)
        expected[low : high + 1] = True
        for show in (factor.describe, "{:.7g}".format):
            spec = f"{name}:{show(values[low])}-{show(values[high])}"
            found = parse_region(spec, space).contains(grid)
            np.testing.assert_array_equal(found, expected, err_msg=spec)


@pytest.mark.parametrize(
    ("spec", "classes"),
    [
        ("scale:1.0357", [4]),
        ("scale:0.75-0.892857", [0, 1, 2]),
        ("scale:1-", [4, 5, 6, 7]),
        ("scale:1-max", [4, 5, 6, 7]),
        ("scale:min-0.9", [0, 1, 2]),
        ("scale:#6-", [6, 7]),
        ("scale:1.2-1.28", [7]),
        ("scale:0.72-0.8", [0]),
        ("scale:0.8217-0.9", [2]),
    ],
)
def test_open_and_rounded_bounds(spec: str, classes: list[int]) -> None:
    space = FactorSpace((make_factor("scale"),))
    held_out = parse_region(spec, space).contains(space.grid())
    assert np.flatnonzero(held_out).tolist() == classes
