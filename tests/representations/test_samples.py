"""Samples of planted generators, judged by the factors that a reader finds."""

import keras
import numpy as np
import pandas as pd
import pytest
import scipy
from pytest import approx

import tfcomp
from tfcomp.report.report_build import MAKERS
from tfcomp.representations import samples

TINTS = 8  # values of the nuisance
COPIES = 4  # images of a combination for each of them
SIZES = (3, 4, 4)
CLASSES = np.argwhere(np.ones((*SIZES, TINTS, COPIES)))[:, :4]
NAMES = ["light", "x", "y", "tint"]


def render(classes: np.ndarray) -> np.ndarray:
    """Renders a point of some light at (x, y), and the tint below it."""
    light, x, y, tint = classes.astype(int).T
    images = np.zeros((len(classes), 5, 8, 1), np.float32)
    rows = np.arange(len(classes))
    images[rows, y, x, 0] = (light + 1) / 3
    images[rows, 4, tint, 0] = 1
    return images


TABLE = tfcomp.FactorTable(
    render(CLASSES),
    CLASSES,
    names=NAMES,
    factors=NAMES[:3],
)


def hold_out(values: np.ndarray) -> np.ndarray:
    """Holds out all but combinations of one factor that is not 0."""
    return (values > 0).sum(axis=1) > 1


class PointReader(tfcomp.Reader):
    """Reads factors off the pixels; marks of the tint if it is asked."""

    def __init__(self, space, is_nuisance: bool = False) -> None:
        image = keras.Input((5, 8, 1))
        super().__init__(keras.Model(image, image), space)
        self._is_nuisance = is_nuisance
        self.accuracy = pd.DataFrame({"factor": ["tint"], "true": [1.0]})

    def read(self, images: np.ndarray) -> np.ndarray:
        field = images[:, :4, :, 0]
        light = np.rint(3 * field.max(axis=(1, 2))) - 1
        x = field.max(axis=1).argmax(axis=1)
        y = field.max(axis=2).argmax(axis=1)
        tint = images[:, 4, :, 0].argmax(axis=1)
        if self._is_nuisance:
            return tint[:, None]
        return np.stack([light.astype(int), x, y], axis=1)


@pytest.fixture(scope="module")
def reader() -> PointReader:
    reader = PointReader(TABLE.space)
    space = TABLE.select(["tint"]).space
    reader.nuisance = PointReader(space, is_nuisance=True)
    return reader


class Sampler:
    """A perfect sampler, until a method changes what it is asked for."""

    def __init__(self) -> None:
        self.rng = np.random.default_rng(0)

    def __call__(self, factors: np.ndarray) -> np.ndarray:
        classes = np.rint(factors).astype(int)
        tint = self.rng.integers(TINTS, size=len(classes))
        changed, tint = self.change(classes.copy(), tint)
        return render(np.column_stack([changed, tint]))

    def change(
        self,
        classes: np.ndarray,
        tint: np.ndarray,
    ) -> tuple[np.ndarray, np.ndarray]:
        return classes, tint


class Ignorant(Sampler):
    """Draws any x."""

    def change(self, classes, tint):
        classes[:, 1] = self.rng.integers(4, size=len(classes))
        return classes, tint


class Repeater(Sampler):
    """Draws a single image of each combination."""

    def change(self, classes, tint):
        return classes, 0 * tint


class Swapper(Sampler):
    """Swaps x and y where all factors were never seen together."""

    def change(self, classes, tint):
        is_far = (classes > 0).all(axis=1)
        classes[is_far, 1:] = classes[is_far, :0:-1]
        return classes, tint


class Entangled(Sampler):
    """Draws half of the samples one step too far along x and y alike."""

    def change(self, classes, tint):
        steps = self.rng.integers(2, size=len(classes))
        classes[:, 1:] = np.minimum(classes[:, 1:] + steps[:, None], 3)
        return classes, tint


class Shaky(Sampler):
    """Draws x and y a step too far, each by itself."""

    def change(self, classes, tint):
        steps = self.rng.integers(2, size=(len(classes), 2))
        classes[:, 1:] = np.minimum(classes[:, 1:] + steps, 3)
        return classes, tint


def judge(
    sampler: Sampler,
    reader: PointReader,
    count: int = 24,
) -> tuple[tfcomp.ModelReport, pd.DataFrame]:
    result = tfcomp.evaluate(
        sampler,
        TABLE,
        hold_out,
        reader=reader,
        samples=count,
    )
    table = result.tables["samples"]
    names = ["score", "factor", "subset", "level"]
    return result, table.set_index(names).sort_index()


def test_a_perfect_sampler_reaches_all_references(reader) -> None:
    result, table = judge(Sampler(), reader)

    conformity = table.loc["conformity", "all"]
    numbers = conformity[["value", "low", "high", "reference", "ceiling"]]
    assert (numbers == 1).all(axis=None)
    assert set(conformity.index) == {
        ("id", "any"),
        ("id", "0"),
        ("ood", "any"),
        ("ood", "1"),
        ("ood", "2"),
    }
    assert (table.loc["independence", "value"] == 0).all()
    coverage = table.loc["coverage", "tint"]
    assert (coverage["low"] < coverage["value"]).all()
    assert (coverage["value"] < coverage["high"]).all()
    distance = coverage["value"] - coverage["reference"]
    assert (distance.abs() < 0.05).all()

    (readings, exhibit) = MAKERS["readings"]([result.analysis]).exhibits
    assert len(exhibit.rows) == len(table)
    assert readings.name != exhibit.name


def test_one_that_ignores_a_factor(reader) -> None:
    _, table = judge(Ignorant(), reader)

    conformity = table.loc["conformity", "all"]
    assert conformity["value"].to_numpy() == approx(1 / 4, abs=0.1)
    total = conformity.loc[("ood", "any")]
    assert total["value"] == approx(1 / 4, abs=0.05)
    assert total["low"] < total["value"] < total["high"] < 1 / 3
    independence = table.loc["independence"]
    distance = independence["value"] - independence["reference"]
    assert (distance.abs() < 0.02).all()


def test_one_that_repeats_an_image(reader) -> None:
    _, table = judge(Repeater(), reader)

    assert (table.loc["conformity", "value"] == 1).all()
    coverage = table.loc["coverage", "tint"]
    assert coverage["value"].to_numpy() == approx(1 - 1 / TINTS, abs=0.03)
    assert (coverage["reference"] < 0.5).all()


def test_one_that_swaps_factors_far_from_training(reader) -> None:
    _, table = judge(Swapper(), reader)

    conformity = table.loc["conformity", "all"]["value"]
    same = 1 / 3  # of the far combinations: x equals y
    assert conformity["ood", "2"] == approx(same)
    assert (conformity.drop([("ood", "2"), ("ood", "any")]) == 1).all()
    # Along x, the far ones change y.
    independence = table.loc["independence", "x"].loc["ood"].loc["any"]
    assert independence["value"] > 10 * independence["reference"]


def test_errors_that_depend_on_each_other(reader) -> None:
    _, entangled = judge(Entangled(), reader)
    _, shaky = judge(Shaky(), reader)

    for table, is_dependent in ((entangled, True), (shaky, False)):
        light = table.loc["independence", "light"]
        above = light["value"] - light["reference"]
        assert ((above > 0.05) == is_dependent).all()


@pytest.mark.parametrize("copies", [1, 2])
def test_a_perfect_sampler_of_few_images(reader, rng, copies) -> None:
    """Each tint once, or a few random ones: coverage is of a perfect one."""
    classes = TABLE.points.repeat(TINTS // copies, axis=0).astype(int)
    tint = np.arange(len(classes)) % TINTS
    if copies > 1:
        tint = rng.integers(TINTS, size=len(classes))
    classes = np.column_stack([classes, tint])
    few = tfcomp.FactorTable(
        render(classes),
        classes,
        names=NAMES,
        factors=NAMES[:3],
    )

    for sampler, is_perfect in ((Sampler(), True), (Repeater(), False)):
        result = tfcomp.evaluate(
            sampler,
            few,
            hold_out,
            reader=reader,
            samples=24,
        )

        rows = result.tables["samples"]
        rows = rows.set_index(["score", "subset"])
        coverage = rows.loc[("coverage", "ood")]
        distance = coverage["value"] - coverage["reference"]
        assert (abs(distance) < 0.06) == is_perfect


def test_one_sample_has_no_coverage(reader) -> None:
    _, table = judge(Sampler(), reader, count=1)

    assert set(table.index.get_level_values("score")) == {
        "conformity",
        "independence",
    }


def test_dependence_by_its_definition(rng) -> None:
    readings = rng.integers(3, size=(50, 3))
    readings[:, 2] = readings[:, 0] * rng.integers(2, size=50)
    joint = np.zeros((3, 3, 3))
    np.add.at(joint, tuple(readings.T), 1 / 50)
    marginals = [joint.sum(axis=(1, 2)), joint.sum((0, 2)), joint.sum((0, 1))]
    product = np.einsum("i,j,k->ijk", *marginals)

    dependence = samples.compute_dependence(readings)

    distance = scipy.spatial.distance.jensenshannon(
        joint.ravel(),
        product.ravel(),
        base=2,
    )
    assert dependence == approx(distance**2)


def test_distance_of_readings() -> None:
    first = np.array([0, 0, 1, 2])
    second = np.array([0, 3])

    assert samples.compute_distance(first, second) == approx(0.5)
    assert samples.compute_distance(first, first) == 0
    assert samples.compute_distance(first, second + 4) == 1


def test_an_interval_has_the_width_of_the_normal_one(rng) -> None:
    values = rng.random(400)

    low, high = samples.bootstrap_mean(values)

    width = 2 * 1.96 * values.std() / np.sqrt(400)
    assert high - low == approx(width, rel=0.1)
    assert low < values.mean() < high


def test_a_reader_of_nuisances_is_trained_too() -> None:
    reader = tfcomp.train_reader(TABLE, epochs=1)

    assert reader.space.names == tuple(NAMES[:3])
    assert reader.nuisance is not None
    assert reader.nuisance.space.names == ("tint",)
    assert (
        tfcomp.train_reader(
            TABLE.select(NAMES),
            epochs=1,
        ).nuisance
        is None
    )


def test_images_that_are_not_finite_are_wrong() -> None:
    image = keras.Input((5, 8, 1))
    flat = keras.layers.Flatten()(image)
    heads = [keras.layers.Dense(size)(flat) for size in SIZES]
    reader = tfcomp.Reader(keras.Model(image, heads), TABLE.space)
    images = render(CLASSES[:2])
    images[1, 0, 0] = np.nan

    assert (reader.read(images)[1] == -1).all()
    assert not reader.check(images, TABLE.points[:2], steps=4)[1].any()


def test_nuisances_that_cannot_be_read_are_a_note(capsys) -> None:
    """A number of each image, and times, which are no classes."""
    number = np.arange(len(CLASSES))[:, None]
    table = tfcomp.FactorTable(
        TABLE.images,
        np.hstack([CLASSES, number, (number // 2) / 7]),
        names=[*NAMES, "file", "time"],
        factors=NAMES[:3],
    )
    assert table.nuisance == ["tint", "time"]

    reader = tfcomp.train_reader(table, epochs=1)

    assert reader.nuisance is None
    (note,) = capsys.readouterr().err.splitlines()
    assert "time" in note
