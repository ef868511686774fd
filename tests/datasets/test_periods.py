"""Periods that are given: 8 of 10 angles of a grating, which repeats at 180."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

import tfcomp
from tfcomp.datasets.factors import Factor, FactorSpace
from tfcomp.datasets.notes import describe_factors
from tfcomp.datasets.table_columns import TableError
from tfcomp.metrics import interpolation, references
from tfcomp.models.encodings import (
    BumpEncoding,
    CircleEncoding,
    OneHotEncoding,
)

PERIOD = 180
ANGLES = 18.0 * np.arange(8)
CLASSES = np.argwhere(np.ones((2, 8)))
IMAGES = np.random.default_rng(0).random((16, 8, 8)).astype(np.float32)
NAMES = ["shape", "ori"]
NOTE = "ori: periodic, 180 = 0"


def make_table(kind: str = "periodic:180") -> tfcomp.FactorTable:
    values = [None, ANGLES.tolist()]
    kinds = ["ordered", kind]
    return tfcomp.FactorTable(
        IMAGES,
        CLASSES,
        values,
        NAMES,
        kinds=kinds,
    )


ORI = make_table().space["ori"]
SPACE = FactorSpace((ORI,))


def measure_steps(value: float) -> np.ndarray:
    """Steps to all angles on the shorter way, one turn after the other."""
    turns = PERIOD * np.arange(-3, 4)
    others = ANGLES[:, None] + turns
    ways = np.abs(value - others)
    return ways.min(axis=1) / 18


def test_the_period_is_told():
    table = make_table()
    report = tfcomp.evaluate(table.draw, table)

    assert NOTE in table.notes
    assert NOTE in report.dataset.notes
    assert "180 = 0" in describe_factors(report.dataset)
    assert "ori: periodic, 144 = 0" in make_table("periodic").notes
    turn = Factor(
        "turn",
        4,
        0.0,
        360.0,
        "degrees",
        periodic=True,
    )
    assert turn.describe_period() == "360 = 0 degrees"


@pytest.mark.parametrize("period", ["100", "-180", "half"])
def test_a_period_below_the_range_is_refused(period):
    with pytest.raises(TableError, match="kinds of ori"):
        make_table(f"periodic:{period}")


def test_a_closed_factor():
    """As in dSprites, whose last angle is the first one again."""
    closed = make_table("periodic:126").space["ori"]
    assert closed.high == 126
    assert closed.is_closed
    assert closed.to_index(ANGLES).tolist() == [*range(8)]


def test_any_angle_has_the_nearest_value_around_the_period():
    angles = np.arange(-400, 400, 7, np.float32)

    index = ORI.to_index(angles)
    codes = OneHotEncoding(SPACE)(angles[:, None])

    nearest = [measure_steps(angle).argmin() for angle in angles]
    assert index.tolist() == nearest
    assert np.argmax(codes, axis=1).tolist() == nearest


def test_steps_are_around_the_period():
    index = np.arange(8)[:, None]
    steps = np.stack([measure_steps(angle) for angle in ANGLES])
    for row in range(8):
        offsets = references.compute_offsets(index, index[row], SPACE)
        assert_allclose(offsets[:, 0], steps[row])

    is_ood = np.isin(range(8), [2, 3, 4], invert=True)
    distances = references.compute_border_distance(is_ood, SPACE)
    to_trained = steps[:, ~is_ood]
    assert_allclose(distances, to_trained.min(axis=1))


def test_codes_are_around_the_period():
    angles = np.array([-20, 0, 126, 150, 170, 180], np.float32)

    points = angles[:, None]

    bumps = BumpEncoding(SPACE)(points)
    circle = CircleEncoding(SPACE)(points)

    steps = np.stack([measure_steps(angle) for angle in angles])
    expected = np.exp(-(steps**2) / 2)
    assert_allclose(bumps, expected, atol=1e-6)
    radians = np.radians(2 * angles)
    columns = [np.cos(radians), np.sin(radians)]
    expected = np.stack(columns, axis=1)
    assert_allclose(circle, expected, atol=1e-6)


def test_gaps_are_as_wide_as_their_angles():
    """Between 126 and 198 (18), 180 (0) is three quarters of the way."""
    is_ood = np.arange(8) == 0
    rows, edges, fraction = interpolation.find_edges(is_ood, ORI.cycle)
    assert rows.tolist() == [0]
    assert edges.tolist() == [[7, 1]]
    assert fraction.tolist() == [0.75]
