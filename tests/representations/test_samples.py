"""Samples of planted generators, judged by the factors that a reader finds."""

from collections.abc import Callable

import keras
import numpy as np
import pandas as pd
import pytest
import scipy
from pytest import approx

import tfcomp
from tfcomp.report.report_build import MAKERS
from tfcomp.representations import readers, samples

pytestmark = pytest.mark.usefixtures("untraced", "few_permutations")

TINTS = 8  # values of the nuisance
COPIES = 4  # images of a combination for each of them
SIZES = (3, 4, 4)
CLASSES = np.argwhere(np.ones((*SIZES, TINTS, COPIES)))[:, :4]
NAMES = ["light", "x", "y", "tint"]


def render(classes: np.ndarray) -> np.ndarray:
    """Renders a point of some light at (x, y), and the tint below it."""
    count = len(classes)
    rows = np.arange(count)
    light, x, y, tint = classes.astype(int).T
    images = np.zeros((count, 5, 8, 1), np.float32)
    images[rows, y, x, 0] = (light + 1) / 3
    images[rows, 4, tint, 0] = 1
    return images


def make_table(classes: np.ndarray, **columns) -> tfcomp.FactorTable:
    """Makes a table of rendered classes, and of further columns."""
    return tfcomp.FactorTable(
        render(classes),
        np.column_stack([classes, *columns.values()]),
        names=[*NAMES, *columns],
        factors=NAMES[:3],
    )


TABLE = make_table(CLASSES)


def hold_out(values: np.ndarray) -> np.ndarray:
    """Holds out all but combinations of one factor that is not 0."""
    num_changed = (values > 0).sum(axis=1)
    return num_changed > 1


class PointReader(tfcomp.Reader):
    """Reads factors off the pixels; marks of the tint if it is asked."""

    def __init__(self, space, is_nuisance: bool = False):
        image = keras.Input((5, 8, 1))
        network = keras.Model(image, image)
        super().__init__(network, space)
        self._is_nuisance = is_nuisance
        self.accuracy = pd.DataFrame({"factor": ["tint"], "true": [1.0]})

    def read(self, images: np.ndarray) -> np.ndarray:
        if self._is_nuisance:
            marks = images[:, 4, :, 0]
            return marks.argmax(axis=1)[:, None]

        field = images[:, :4, :, 0]
        columns = field.max(axis=1)
        rows = field.max(axis=2)
        light = np.rint(3 * rows.max(axis=1)) - 1
        readings = [
            light.astype(int),
            columns.argmax(axis=1),
            rows.argmax(axis=1),
        ]
        return np.stack(readings, axis=1)


@pytest.fixture(scope="module")
def reader() -> PointReader:
    reader = PointReader(TABLE.space)
    space = TABLE.select(["tint"]).space
    reader.nuisance = PointReader(space, is_nuisance=True)
    return reader


class Sampler:
    """A perfect sampler, unless it changes what it is asked for.

    Args:
        change: Changes light, x, y and tint in place, [n, 4], with the help of
            a source of random numbers.
    """

    def __init__(self, change=None):
        self.rng = np.random.default_rng(0)
        self.change = change

    def __call__(self, factors: np.ndarray) -> np.ndarray:
        count = len(factors)
        classes = np.zeros((count, 4), int)
        classes[:, :3] = np.rint(factors)
        classes[:, 3] = self.rng.integers(TINTS, size=count)
        if self.change is not None:
            self.change(classes, self.rng)
        return render(classes)


def ignore_x(classes, rng):
    """Draws any x."""
    classes[:, 1] = rng.integers(4, size=len(classes))


def repeat(classes, rng):
    """Draws a single image of each combination."""
    classes[:, 3] = 0


def swap(classes, rng):
    """Swaps x and y where all factors were never seen together."""
    is_far = (classes[:, :3] > 0).all(axis=1)
    classes[is_far, 1:3] = classes[is_far, 2:0:-1]


def entangle(classes, rng):
    """Draws half of the samples one step too far along x and y alike."""
    steps = rng.integers(2, size=(len(classes), 1))
    moved = classes[:, 1:3] + steps
    classes[:, 1:3] = np.minimum(moved, 3)


def shake(classes, rng):
    """Draws x and y a step too far, each by itself."""
    steps = rng.integers(2, size=(len(classes), 2))
    moved = classes[:, 1:3] + steps
    classes[:, 1:3] = np.minimum(moved, 3)


def judge(
    sampler: Callable[[np.ndarray], np.ndarray],
    reader: PointReader,
    table: tfcomp.FactorTable = TABLE,
    count: int = 12,
) -> tfcomp.ModelReport:
    return tfcomp.evaluate(
        sampler,
        table,
        hold_out,
        reader=reader,
        samples=count,
    )


def index_scores(report: tfcomp.ModelReport) -> pd.DataFrame:
    names = ["score", "factor", "subset", "level"]
    table = report.tables["samples"]
    return table.set_index(names).sort_index()


def test_a_perfect_sampler_reaches_all_references(reader):
    report = judge(Sampler(), reader)

    table = index_scores(report)
    conformity = table.loc["conformity", "all"]
    for column in ("value", "low", "high", "reference", "ceiling"):
        assert (conformity[column] == 1).all()
    assert set(conformity.index) == {
        ("id", "any"),
        ("id", "0"),
        ("ood", "any"),
        ("ood", "1"),
        ("ood", "2"),
    }
    independence = table.loc["independence", "value"]
    assert (independence == 0).all()
    coverage = table.loc["coverage", "tint"]
    assert (coverage["low"] < coverage["value"]).all()
    assert (coverage["value"] < coverage["high"]).all()
    distance = coverage["value"] - coverage["reference"]
    assert distance.abs().max() < 0.05

    section = MAKERS["readings"]([report.analysis])
    readings, exhibit = section.exhibits
    assert len(exhibit.rows) == len(table)
    assert readings.name != exhibit.name


def test_one_that_ignores_a_factor(reader):
    table = index_scores(judge(Sampler(ignore_x), reader))

    conformity = table.loc["conformity", "all"]
    values = conformity["value"].to_numpy()
    assert values == approx(1 / 4, abs=0.1)
    total = conformity.loc[("ood", "any")]
    assert total["value"] == approx(1 / 4, abs=0.05)
    assert total["low"] < total["value"] < total["high"]
    assert total["high"] < 1 / 3
    independence = table.loc["independence"]
    distance = independence["value"] - independence["reference"]
    assert distance.abs().max() < 0.02


def test_one_that_repeats_an_image(reader):
    table = index_scores(judge(Sampler(repeat), reader))

    conformity = table.loc["conformity", "value"]
    coverage = table.loc["coverage", "tint"]
    values = coverage["value"].to_numpy()
    assert (conformity == 1).all()
    assert values == approx(1 - 1 / TINTS, abs=0.03)
    assert coverage["reference"].max() < 0.5


def test_one_that_swaps_factors_far_from_training(reader):
    table = index_scores(judge(Sampler(swap), reader))

    conformity = table.loc["conformity", "all"]["value"]
    same = 1 / 3  # of the far combinations: x equals y
    assert conformity["ood", "2"] == approx(same)
    near = conformity.drop([("ood", "2"), ("ood", "any")])
    assert (near == 1).all()
    # Along x, the far ones change y.
    of_x = table.loc["independence", "x"]
    independence = of_x.loc["ood"].loc["any"]
    assert independence["value"] > 10 * independence["reference"]


@pytest.mark.parametrize(
    ("change", "is_dependent"),
    [
        (entangle, True),
        (shake, False),
    ],
)
def test_errors_that_depend_on_each_other(
    change,
    is_dependent,
    reader,
):
    table = index_scores(judge(Sampler(change), reader))

    light = table.loc["independence", "light"]
    above = light["value"] - light["reference"]
    assert ((above > 0.05) == is_dependent).all()


@pytest.mark.parametrize(
    ("copies", "sampler", "is_perfect"),
    [
        (1, Sampler(), True),
        (2, Sampler(), True),
        (2, Sampler(repeat), False),
    ],
)
def test_coverage_of_few_images(
    copies,
    sampler,
    is_perfect,
    reader,
    rng,
):
    """Each tint once, or a few random ones: coverage is of a perfect one."""
    points = TABLE.points.repeat(TINTS // copies, axis=0)
    tint = np.arange(len(points)) % TINTS
    if copies > 1:
        tint = rng.integers(TINTS, size=len(points))
    classes = np.column_stack([points.astype(int), tint])

    report = judge(sampler, reader, make_table(classes))

    table = index_scores(report)

    coverage = table.loc["coverage", "tint"].loc["ood"].loc["any"]
    distance = coverage["value"] - coverage["reference"]
    assert (abs(distance) < 0.06) == is_perfect


def test_each_sample_is_drawn_once(reader):
    """By scores and readers together; sampling may take minutes."""
    perfect = Sampler()
    sizes = []

    def sample(factors: np.ndarray) -> np.ndarray:
        sizes.append(len(factors))
        return perfect(factors)

    judge(sample, reader, count=6)

    # A few more tell the shape, and whether calls differ.
    assert sum(sizes) < 7 * len(TABLE.points)


def test_one_sample_has_no_coverage(reader):
    report = judge(Sampler(), reader, count=1)

    scores = report.tables["samples"]["score"]
    assert set(scores) == {"conformity", "independence"}


def test_dependence_by_its_definition(rng):
    readings = rng.integers(3, size=(50, 3))
    readings[:, 2] = readings[:, 0] * rng.integers(2, size=50)
    joint = np.zeros((3, 3, 3))
    np.add.at(joint, tuple(readings.T), 1 / 50)
    product = np.einsum(
        "i,j,k->ijk",
        joint.sum(axis=(1, 2)),
        joint.sum(axis=(0, 2)),
        joint.sum(axis=(0, 1)),
    )

    dependence = samples.compute_dependence(readings)

    distance = scipy.spatial.distance.jensenshannon(
        joint.ravel(),
        product.ravel(),
        base=2,
    )
    assert dependence == approx(distance**2)


def test_distance_of_readings():
    first = np.array([0, 0, 1, 2])
    second = np.array([0, 3])

    half = samples.compute_distance(first, second)
    none = samples.compute_distance(first, first)
    all_of_it = samples.compute_distance(first, second + 4)

    assert half == approx(0.5)
    assert none == 0
    assert all_of_it == 1


def test_an_interval_has_the_width_of_the_normal_one(rng):
    values = rng.random(400)

    low, high = samples.bootstrap_mean(values)

    width = 2 * 1.96 * values.std() / np.sqrt(400)
    assert high - low == approx(width, rel=0.1)
    assert low < values.mean() < high


# Two tints of each combination, once.
FEW = CLASSES[CLASSES[:, 3] < 2][::COPIES]


@pytest.fixture
def no_training(monkeypatch):
    """Leaves readers as they are initialized."""
    monkeypatch.setattr(readers, "_fit", lambda *args: None)


@pytest.mark.usefixtures("no_training")
def test_a_reader_of_nuisances_is_trained_too():
    reader = tfcomp.train_reader(make_table(FEW))

    assert reader.space.names == tuple(NAMES[:3])
    assert reader.nuisance is not None
    assert reader.nuisance.space.names == ("tint",)
    assert reader.nuisance.nuisance is None


def test_images_that_are_not_finite_are_wrong():
    image = keras.Input((5, 8, 1))
    flat = keras.layers.Flatten()(image)
    heads = []
    for size in SIZES:
        dense = keras.layers.Dense(size)
        heads.append(dense(flat))
    network = keras.Model(image, heads)
    reader = tfcomp.Reader(network, TABLE.space)
    images = render(CLASSES[:2])
    images[1, 0, 0] = np.nan

    readings = reader.read(images)
    is_right = reader.check(images, TABLE.points[:2], steps=4)

    assert (readings[1] == -1).all()
    assert not is_right[1].any()


@pytest.mark.usefixtures("no_training")
def test_nuisances_that_cannot_be_read_are_a_note(capsys):
    """A number of each image, and times, which are no classes."""
    number = np.arange(len(FEW))
    time = number // 2 / 7
    table = make_table(FEW, file=number, time=time)
    assert table.nuisance == ["tint", "time"]

    reader = tfcomp.train_reader(table)

    assert reader.nuisance is None
    (note,) = capsys.readouterr().err.splitlines()
    assert "time" in note
