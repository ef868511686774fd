"""The one object of a model on data: factors by name, tables, pictures."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import tfcomp
from tfcomp import ModelReport
from tfcomp.config.errors import ConfigError
from tfcomp.config.run_config import RunConfig
from tfcomp.figures.pictures import choose_spread
from tfcomp.metrics.jacobians import compute_stage_jacobians
from tfcomp.models.registry import make_stage_model

pytestmark = pytest.mark.usefixtures("untraced")

CLASSES = np.argwhere(np.ones((2, 3, 3)))
RNG = np.random.default_rng(0)
IMAGES = RNG.uniform(size=(18, 4, 4)).astype("f4")


@pytest.fixture(scope="module")
def run(smoke_run: RunConfig) -> ModelReport:
    return tfcomp.load_run(smoke_run.run_dir)


@pytest.fixture(scope="module")
def outputs(run: ModelReport) -> np.ndarray:
    """Images of the network by x and y, [12, 12, H, W, C]."""
    grid = run.dataset.splits.grid
    images = run.model.predict(grid, verbose=0)
    shape = images.shape[1:]
    return images.reshape(12, 12, *shape)


@pytest.fixture(scope="module")
def shapes() -> ModelReport:
    """A model that draws every image as it is, of shapes at places."""
    table = tfcomp.FactorTable(
        IMAGES,
        CLASSES,
        names=["shape", "x", "y"],
        levels=[["disc", "ring"], None, None],
    )
    return tfcomp.evaluate(
        table.draw,
        table,
        "shape:ring,x:2",
        name="<b>",
    )


@pytest.mark.parametrize(
    "factors",
    [
        [3, 4],
        {
            "y": 4,
            "x": [3],
        },
        pd.DataFrame(
            {
                "y": [4],
                "x": [3],
            }
        ),
    ],
)
def test_one_combination(run, outputs, factors):
    (image,) = run.draw(factors)
    assert_allclose(
        image,
        outputs[3, 4],
        atol=1e-6,
    )


def test_many_combinations(run, outputs):
    assert_allclose(
        run.draw(),
        outputs.reshape(run.draw().shape),
        atol=1e-6,
    )
    assert_allclose(
        run.draw(x=range(12), y=5),
        outputs[:, 5],
        atol=1e-6,
    )


def test_categories_by_name_and_by_number(shapes):
    by_name = shapes.draw(
        shape=["ring", "disc"],
        x=1,
        y=2,
    )
    by_number = shapes.draw(
        shape=[1, 0],
        x=1,
        y=2,
    )

    disc, ring = IMAGES[(CLASSES[:, 1:] == [1, 2]).all(axis=1)]
    assert_allclose(
        by_name[..., 0],
        [ring, disc],
        atol=1e-6,
    )
    assert_array_equal(by_number, by_name)


@pytest.mark.parametrize(
    "factors",
    [
        {
            "shape": 7,
            "x": 1,
            "y": 2,
        },
        {
            "shape": "cone",
            "x": 1,
            "y": 2,
        },
        [[0.4, 1, 2]],
    ],
)
def test_categories_that_do_not_exist(factors, shapes):
    with pytest.raises(ConfigError, match="among disc, r"):
        shapes.draw(factors)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda r: r.draw(x=1), "all of x, y"),
        (lambda r: r.draw([1, 2, 3]), r"\[n, 2\]"),
        (lambda r: r.draw([1, 2], x=1), "once"),
        (lambda r: r.draw(x=[1, 2], y=[1, 2, 3]), "length"),
        (lambda r: r.draw(x="left", y=1), "numbers"),
        (lambda r: r.activations("stage9"), "code, stage_0"),
        (lambda r: r.plot_samples("odd"), "id, ood"),
    ],
)
def test_mistakes_say_what_there_is(run, call, words):
    with pytest.raises(ConfigError, match=words):
        call(run)


def test_activations_and_geometry(run):
    points = np.float32([[3, 4], [5.5, 6]])
    stage = run.stages[1]
    stages = make_stage_model(run.model, [stage])
    jacobian = compute_stage_jacobians(stages, points)[stage]
    metrics = np.einsum("bki,bkj->bij", jacobian, jacobian)

    activations = run.activations(stage, points)
    geometry = run.geometry(
        stage,
        x=[3, 5.5],
        y=[4, 6],
    )

    assert_allclose(
        activations,
        stages(points)[stage],
        atol=1e-6,
    )
    assert_allclose(
        geometry,
        metrics,
        rtol=1e-3,
    )
    assert run.geometry(stage).shape == (144, 2, 2)


def test_the_table_has_the_errors_of_all_combinations(run):
    table = run.to_frame()

    names = ["x", "y", "is_ood", "mse", "relative_mse", "ssim_error"]
    assert list(table.columns) == names
    assert_array_equal(table["is_ood"], run.dataset.splits.is_ood)
    means = table.groupby("is_ood")["mse"].mean()
    scores = [run.scores[subset]["mse"] for subset in ("id", "ood")]
    assert means.tolist() == pytest.approx(scores, rel=1e-5)


def test_a_finer_table_has_the_same_errors(run):
    finer = run.refine(between=23).to_frame()  # every half pixel

    places = finer[["x", "y"]]
    is_on_grid = (places % 1 == 0).all(axis=1)
    errors = finer.loc[is_on_grid, "mse"]
    expected = run.to_frame()["mse"]
    assert len(finer) == 23**2
    assert_allclose(
        errors,
        expected,
        rtol=1e-3,
    )


def test_what_a_notebook_shows(run, shapes):
    page = shapes._repr_html_()

    assert "<table" in page
    assert "data:image/png;base64,iVBOR" in page
    assert "&lt;b" in page
    assert f"{run.scores['ood']['mse']:.4g}" in repr(run)
    # Scores that do not apply are not listed.
    assert "position" not in repr(shapes)
    assert set(shapes.scores["id"]) == {"mse", "relative_mse", "r2"}


def test_layers_are_plotted(shapes):
    assert shapes.plot_layers().axes


def test_figures_of_a_column_have_four_samples(run):
    column = run.plot_samples("id", width="column")

    assert len(choose_spread(np.arange(9))) == 8
    assert len(column.axes) == 2 * 4
    (circle,) = column.axes[0].lines
    assert circle.get_markersize() < 10  # points


@pytest.mark.parametrize("share, least", [(1.0, 0.0), (0.01, 0.9)])
def test_colors_of_errors_begin_at_0(share, least):
    table = tfcomp.FactorTable(
        IMAGES[:9],
        CLASSES[:9, 1:],
        names=["x", "y"],
    )
    model = tfcomp.evaluate(lambda f: share * table.draw(f), table, "x:2,y:2")

    figure = model.plot_error()

    (picture,) = figure.axes[0].images
    low, high = picture.get_clim()
    assert low == 0
    assert least <= picture.get_array().min() < high


def test_a_perfect_image_that_the_reference_equals_is_no_error():
    grays = np.broadcast_to([[[0.0]], [[0.5]], [[1.0]]], (3, 4, 4))
    table = tfcomp.FactorTable(
        grays,
        np.arange(3)[:, None],
        names=["x"],
    )

    errors = tfcomp.evaluate(table.draw, table).to_frame()

    assert errors["relative_mse"].tolist() == [0, 0, 0]


def make_categories(name: str) -> ModelReport:
    """A model of two categories without a region."""
    table = tfcomp.FactorTable(
        np.eye(4, dtype=np.float32).reshape(4, 2, 2),
        np.argwhere(np.ones((2, 2))),
        names=["a", "b"],
        kinds=["categorical", "categorical"],
    )
    return tfcomp.evaluate(
        table.draw,
        table,
        name=name,
    )


def test_categories_have_no_geometry_to_plot():
    model = make_categories("own")

    with pytest.raises(ConfigError, match="ordered"):
        model.plot_layers()
    with pytest.raises(ConfigError, match="ordered"):
        model.plot_error()
    with pytest.raises(ConfigError, match="among id"):
        model.plot_samples("ood")


def test_models_that_cannot_share_a_report():
    models = [make_categories("a b"), make_categories("a_b")]

    with pytest.raises(ConfigError, match="letters"):
        tfcomp.write_report(models, "report")
    with pytest.raises(ConfigError, match="at least one"):
        tfcomp.write_report([], "report")


def test_settings_are_not_given_twice():
    config = tfcomp.describe_run("smoke")

    with pytest.raises(ConfigError, match="describe_run"):
        tfcomp.train_run(config, depth=3)
