"""Planted decoders, inverted: what is found must be what was planted."""

from collections.abc import Callable

import keras
import numpy as np
import pandas as pd
import pytest
from keras import ops
from numpy import ndarray as Array
from numpy.testing import assert_allclose
from pytest import approx

import tfcomp
from tests.metrics import planted
from tfcomp.config.run_flags import parse_config
from tfcomp.datasets import make_dataset
from tfcomp.datasets.factors import Factor
from tfcomp.metrics import inversion
from tfcomp.report import output_section
from tfcomp.report.report_build import MAKERS
from tfcomp.representations import readers

pytestmark = pytest.mark.usefixtures("untraced")

SIZE = 8
GRID = planted.make_grid(SIZE, SIZE)
IS_OOD = planted.hold_out(GRID, 3, 5)
REGION = "square:3-5"
WIDTHS = (1.0, 1.5)  # of a bump along x and along y, in pixels


def draw(x, y, exp=np.exp):
    """Draws bumps at x and y, [n, 1, 1] each."""
    places = np.arange(SIZE, dtype="float32")
    columns = (places - x) / WIDTHS[0]
    rows = (places[:, None] - y) / WIDTHS[1]
    return exp(-0.5 * (columns**2 + rows**2))


COLUMNS, ROWS = GRID.T[:, :, None, None]
TABLE = tfcomp.FactorTable(
    draw(COLUMNS, ROWS),
    GRID.astype(int),
    names=["x", "y"],
    units=["px", "px"],
)


@keras.saving.register_keras_serializable("tests")
class Bumps(keras.layers.Layer):
    """Draws bumps, displaced; at held-out places it may draw nothing."""

    def __init__(self, displaced=0.0, is_blank=False, **options):
        super().__init__(**options)
        self.displaced = displaced
        self.is_blank = is_blank

    def call(self, factors):
        x = factors[:, :1, None] - self.displaced
        y = factors[:, 1:, None]
        images = draw(x, y, ops.exp)
        if self.is_blank:
            is_inside = (factors > 2.5) & (factors < 5.5)
            is_far = ops.all(is_inside, axis=1)
            is_far = is_far[:, None, None]
            images = ops.where(is_far, 0 * images, images)
        return images


class Zeros(tfcomp.Reader):
    """Reads the first value of all factors."""

    def __init__(self, table: tfcomp.FactorTable):
        image = keras.Input(table.image_shape)
        network = keras.Model(image, image)
        super().__init__(network, table.space)

    def read(self, images: Array) -> Array:
        shape = (len(images), len(self.space))
        return np.zeros(shape, int)


def make_decoder(**options) -> keras.Model:
    factors = keras.Input((2,))
    images = Bumps(**options)(factors)
    return keras.Model(factors, images)


def invert(
    model: Callable | str,
    table: tfcomp.FactorTable = TABLE,
    region: str = REGION,
) -> pd.DataFrame:
    result = tfcomp.evaluate(model, table, region)
    return index(result.invert(Zeros(table)))


def index(rows: pd.DataFrame) -> pd.DataFrame:
    names = ["source", "subset", "level", "factor"]
    return rows.set_index(names).sort_index()


def select(table: pd.DataFrame, source: str = "model") -> pd.DataFrame:
    """Returns rows of any level by subset and factor."""
    rows = table.loc[source]
    return rows.xs("any", level="level")


def test_rivals_of_a_function():
    """It has no derivatives: the grid alone is searched."""
    table = invert(TABLE.draw)

    sources = set(table.index.get_level_values("source"))
    assert sources == {
        "model",
        "truth",
        "nearest training image",
        output_section.READER,
    }
    for source in ("model", "truth"):
        rows = select(table, source)
        assert (rows["found"] == 1).all()
        assert (rows["error"] == 0).all()
    nearest = select(table, "nearest training image")
    found = nearest["found"]
    assert (found["id"] == 1).all()
    assert found["ood", "all"] == 0
    reader = select(table, output_section.READER)
    x = GRID[~IS_OOD, 0]
    share = np.mean(x == 0)
    near_share = np.mean(x <= 1)
    assert reader["found"]["id", "x"] == approx(share)
    assert reader["near"]["id", "x"] == approx(near_share)
    assert reader["error"]["ood", "all"] == approx(5)
    assert table["condition"].isna().all()


def test_positions_between_those_of_the_grid():
    """The decoder draws x - d at x, so that an image of x is found at x + d."""
    table = invert(make_decoder(displaced=0.7))

    # The last x is beyond the range.
    rows = select(table).loc["ood"]
    found = rows["found"]
    error = rows["error"]
    assert found["x"] == 0
    assert found["y"] == 1
    assert found["all"] == 0
    assert (rows["near"] == 1).all()
    assert error["x"] == approx(0.7, abs=0.01)
    assert error["y"] == approx(0, abs=0.01)


def test_condition_by_differences():
    table = invert(make_decoder())

    step = 1e-3
    ratios = []
    for x, y in GRID[IS_OOD].astype(float):
        of_x = draw(x + step, y) - draw(x - step, y)
        of_y = draw(x, y + step) - draw(x, y - step)
        slopes = np.reshape([of_x, of_y], (2, -1))
        smallest, largest = np.linalg.eigvalsh(slopes @ slopes.T)
        ratios.append(smallest / largest)
    expected = np.median(ratios)
    condition = select(table)["condition"]
    assert condition["ood", "all"] == approx(expected, rel=0.01)


@pytest.fixture(scope="module")
def blank() -> tfcomp.ModelReport:
    """A decoder that draws nothing at held-out places."""
    model = make_decoder(is_blank=True)
    return tfcomp.evaluate(model, TABLE, REGION)


def test_blanks_are_not_found(blank):
    table = index(blank.invert(Zeros(TABLE)))

    chance = 1 / IS_OOD.sum()
    found = select(table)["found"]
    true_found = select(table, "truth")["found"]
    assert (found["id"] == 1).all()
    assert found["ood", "all"] <= chance
    assert (true_found == 1).all()


@pytest.mark.parametrize("num_bumps", [0, 3])
def test_the_nearest_training_image_was_in_training(num_bumps):
    """Stripes lack x or y, so that bumps alone are images of the grid."""
    flags = "--dataset=stripes --region=corner:5 --grid_size=8"
    config = parse_config([*flags.split(), f"--num_bumps={num_bumps}"])
    data = make_dataset(config)
    analysis = tfcomp.evaluate(data.render_array, data).analysis

    target = inversion.list_targets(data)
    rows = inversion.invert_model(analysis, target, {}).rows

    shares = {}
    for row in rows:
        if row["source"] == inversion.NEAREST and row["factor"] == "all":
            shares[row["subset"], row["level"]] = row["found"]
    if num_bumps == 0:
        assert not shares
    else:
        num_id = data.splits.is_id.sum()
        assert shares["id", "any"] == approx(num_bumps / num_id)


ANGLES = np.arange(0, 360, 30)
TURNED = np.argwhere(np.ones((2, 12)))
PLACES = np.arange(0, 360, 15, dtype="float32")
ROW = np.float32([[0], [1]])


def draw_ring(kind, angle, cos=np.cos, exp=np.exp):
    """Draws a bump around a ring of 24 pixels, in one of two rows."""
    radians = (angle - PLACES) * np.float32(np.pi / 180)
    profile = exp(3 * cos(radians) - 3)
    is_row = 1 - (ROW - kind) ** 2
    return is_row * profile


KIND, PLACE = TURNED.T[:, :, None, None]
RING = tfcomp.FactorTable(
    draw_ring(KIND, ANGLES[PLACE]),
    TURNED,
    names=["kind", "angle"],
    values=[None, ANGLES.tolist()],
    kinds=["categorical", "periodic"],
)


@keras.saving.register_keras_serializable("tests")
class Ring(keras.layers.Layer):
    """Draws bumps around a ring, displaced by degrees."""

    def __init__(self, displaced: float, **options):
        super().__init__(**options)
        self.displaced = displaced

    def call(self, factors):
        kind = factors[:, :1, None]
        angle = factors[:, 1:, None] - self.displaced
        return draw_ring(kind, angle, ops.cos, ops.exp)


@pytest.mark.parametrize(
    "degrees, is_found",
    [
        (-12, 1),
        (18, 0),
    ],
)
def test_a_period_is_crossed(degrees, is_found):
    factors = keras.Input((2,))
    images = Ring(degrees)(factors)
    model = keras.Model(factors, images)

    table = select(invert(model, RING, region="kind:1,angle:0"))

    steps = abs(degrees) / 30
    assert (table["near"] == 1).all()
    for subset in ("id", "ood"):
        rows = table.loc[subset]
        assert rows["error"]["angle"] == approx(steps, abs=0.01)
        assert rows["found"]["angle"] == is_found
        assert rows["found"]["kind"] == 1


def test_steps_of_uneven_values():
    factor = Factor("x", 4, 1.0, 8.0, levels=(1.0, 2.0, 4.0, 8.0))
    points = np.array([1, 3, 8])
    truth = np.array([2, 4, 2])

    steps = inversion.count_steps([factor], points[:, None], truth[:, None])

    assert_allclose(steps[:, 0], [1, 0.5, 2])


def test_another_class_is_not_near():
    def exchange(factors: Array) -> Array:
        exchanged = abs([1, 0] - factors)
        return RING.draw(exchanged)

    rows = select(invert(exchange, RING, region="kind:1,angle:0"))

    kinds = rows.xs("kind", level="factor")
    angles = rows.xs("angle", level="factor")
    both = rows.xs("all", level="factor")
    assert (kinds["near"] == 0).all()
    assert both["error"].isna().all()
    assert (angles["found"] == 1).all()


def test_several_images_of_a_combination():
    """Single images are looked for among outputs, not their means."""
    flipped = TABLE.images[:, ::-1]
    images = np.concatenate([TABLE.images, flipped])
    classes = np.tile(GRID.astype(int), (2, 1))
    table = tfcomp.FactorTable(images, classes, names=["x", "y"])

    rows = invert(TABLE.draw, table, "x:3-5,y:3-5")

    found = select(rows)["found"]
    assert found["ood", "x"] == 1
    assert found["ood", "y"] == approx(0.5)  # those that were not flipped


def test_a_reader_of_id_images_has_not_seen_the_others(monkeypatch):
    seen = []

    def fit(model: keras.Model, images: Array, *_):
        seen.append(images)

    monkeypatch.setattr(readers, "_fit", fit)
    result = tfcomp.evaluate(TABLE.draw, TABLE, "x:6-7")

    table = index(result.invert())

    (images,) = seen
    profiles = images.max(axis=(1, 3))  # along x, [n, W]
    columns = profiles.argmax(axis=1)
    assert set(columns) == set(range(6))
    assert not select(table, output_section.READER).empty


@pytest.mark.usefixtures("no_layout")
def test_the_section(blank, monkeypatch):
    reader = Zeros(TABLE)
    monkeypatch.setattr(output_section, "train_id_reader", lambda _: reader)

    section = MAKERS["inversion"]([blank.analysis])

    assert "0% by the model" in section.finding
    table, error = section.exhibits
    sources = {row["source"] for row in table.rows}
    assert output_section.READER in sources
    rows = pd.DataFrame(error.rows)
    is_id = ~rows["is_ood"]
    assert rows["error"][is_id].max() < 0.1


def test_embeddings_have_no_images(rng):
    embeddings = rng.random((len(GRID), 5))
    table = tfcomp.FactorTable(None, GRID.astype(int))
    result = tfcomp.evaluate_embeddings(embeddings, table, "")

    with pytest.raises(tfcomp.ConfigError, match="images"):
        result.invert()
