"""Periods that are given: 8 of 10 angles of a grating, which repeats at 180."""

import itertools
from pathlib import Path

import keras
import numpy as np
import pytest

import tfcomp
from tests.datasets.own_tables import write_folder
from tfcomp import solvable
from tfcomp.config.errors import RunError
from tfcomp.datasets.factors import Factor, FactorSpace
from tfcomp.datasets.notes import describe_factor
from tfcomp.datasets.table_factors import TableError
from tfcomp.datasets.tables import read_table
from tfcomp.metrics import interpolation, references
from tfcomp.models.encodings import (
    BumpEncoding,
    CircleEncoding,
    OneHotEncoding,
)

PERIOD = 180
ANGLES = 18.0 * np.arange(8)
CLASSES = np.array([*itertools.product(range(2), range(8))])
IMAGES = np.random.default_rng(0).random((16, 8, 8)).astype(np.float32)
NAMES = ["shape", "ori"]
FLAG = "--factors=shape,ori:periodic:180"
NOTE = "ori: periodic, 180 = 0"


def make_table(
    kind: str = "periodic:180",
) -> tfcomp.FactorTable:
    values = [None, ANGLES.tolist()]
    kinds = ["ordered", kind]
    return tfcomp.FactorTable(IMAGES, CLASSES, values, NAMES, kinds=kinds)


SPACE = FactorSpace((make_table().space["ori"],))


def measure_slowly(value: float, other: float) -> float:
    """The shorter way between two angles, one turn after the other."""
    turns = range(-3, 4)
    return min(abs(value - other + turn * PERIOD) for turn in turns)


def write_npz(folder: Path) -> Path:
    path = folder / "gratings.npz"
    values = np.stack([CLASSES[:, 0], ANGLES[CLASSES[:, 1]]], axis=1)
    np.savez(
        path,
        images=IMAGES,
        classes=CLASSES,
        values=values,
        names=NAMES,
    )
    return path


def test_the_period_is_told() -> None:
    assert "ori: periodic, 144 = 0" in make_table("periodic").notes
    table = make_table()
    assert NOTE in table.notes and "180 = 0" in describe_factor(SPACE["ori"])
    data = tfcomp.evaluate(table.draw, table).dataset
    assert NOTE in data.notes
    unit = Factor("turn", 4, 0.0, 360.0, "degrees", periodic=True)
    assert unit.describe_period() == "360 = 0 degrees"


def test_a_period_below_the_range_is_refused() -> None:
    for period in ("100", "-180", "half"):
        with pytest.raises(TableError, match="kinds of ori must") as caught:
            make_table(f"periodic:{period}")
        assert "\n" not in str(caught.value)
    # dSprites: its last angle is the first one again.
    closed = make_table("periodic:126").space["ori"]
    assert closed.high == 126 and closed.is_closed
    assert closed.to_index(ANGLES).tolist() == [*range(8)]


def test_any_angle_has_the_nearest_value_around_the_period() -> None:
    angles = np.arange(-400.0, 400.0, 7)
    slow = [
        int(np.argmin([measure_slowly(angle, value) for value in ANGLES]))
        for angle in angles
    ]
    assert SPACE["ori"].to_index(angles).tolist() == slow
    code = OneHotEncoding(SPACE)(angles.astype(np.float32)[:, None])
    assert np.argmax(code, axis=1).tolist() == slow


def test_steps_are_around_the_period() -> None:
    index = np.arange(8)[:, None]
    for row, angle in enumerate(ANGLES):
        slow = [measure_slowly(angle, other) / 18 for other in ANGLES]
        steps = references.compute_offsets(index, index[row], SPACE)
        np.testing.assert_allclose(steps[:, 0], slow)

    is_ood = np.array([1, 1, 0, 0, 0, 1, 1, 1], bool)
    slow = [
        min(measure_slowly(angle, known) / 18 for known in ANGLES[~is_ood])
        for angle in ANGLES
    ]
    found = references.compute_border_distance(is_ood, SPACE)
    np.testing.assert_allclose(found, slow)


def test_codes_are_around_the_period() -> None:
    angles = np.array([-20, 0, 126, 150, 170, 180], np.float32)[:, None]
    bumps = [
        [np.exp(-((measure_slowly(a, v) / 18) ** 2) / 2) for v in ANGLES]
        for a in angles[:, 0]
    ]
    found = keras.ops.convert_to_numpy(BumpEncoding(SPACE)(angles))
    np.testing.assert_allclose(found, bumps, atol=1e-6)

    radians = np.radians(2 * angles[:, 0])
    circle = np.stack([np.cos(radians), np.sin(radians)], axis=1)
    found = keras.ops.convert_to_numpy(CircleEncoding(SPACE)(angles))
    np.testing.assert_allclose(found, circle, atol=1e-6)


def test_gaps_are_as_wide_as_their_angles() -> None:
    """Between 126 and 198 (18), 180 (0) is three quarters of the way."""
    is_ood = np.arange(8) == 0
    cycle = SPACE["ori"].cycle
    rows, edges, fraction = interpolation.find_edges(is_ood, cycle)
    assert rows.tolist() == [0] and edges.tolist() == [[7, 1]]
    assert fraction.tolist() == [0.75]


def test_readers_do_not_step_over_absent_angles() -> None:
    image = keras.Input((8, 8, 1))
    table = make_table()
    reader = tfcomp.Reader(keras.Model(image, image), table.space)
    reader.read = lambda images: np.array([[0, 7]])  # reads 126
    images = IMAGES[:1, ..., None]
    for angle, is_near in ((108, True), (0, False)):
        point = np.array([[0, angle]], np.float32)
        assert reader.check(images, point, steps=1)[0, 1] == is_near


def test_the_flag_and_heads_of_columns(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = f"--data={write_npz(tmp_path)}"
    flags = [
        "--dataset=table",
        data,
        "--region=shape:1,ori:0-36",
    ]
    assert solvable.main(["tfcomp solvable", *flags, FLAG]) == 0
    assert NOTE in capsys.readouterr().out.splitlines()
    short = FLAG.replace("180", "90")
    with pytest.raises(RunError, match="of ori.*at least 126") as caught:
        solvable.main(["tfcomp solvable", *flags, short])
    assert "\n" not in str(caught.value)

    rows = [f"{n}.png,{n // 4},{n % 4 * 18}" for n in range(8)]
    folder = tmp_path / "pictures"
    folder.mkdir()
    write_folder(folder, rows, "file,shape,ori:periodic:180")
    table = read_table(str(folder))
    assert table.space["ori"].high == PERIOD
    assert NOTE in table.notes
