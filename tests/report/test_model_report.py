"""The one object of a model on data: factors by name, tables, pictures."""

from collections.abc import Callable

import numpy as np
import pandas as pd
import pytest

import tfcomp
from tfcomp.config.errors import ConfigError
from tfcomp.config.run_config import RunConfig
from tfcomp.metrics.jacobians import compute_stage_jacobians
from tfcomp.models.stages import make_stage_model

CLASSES = np.stack(
    np.meshgrid(range(2), range(3), range(3), indexing="ij"), -1
).reshape(-1, 3)


@pytest.fixture(scope="module")
def run(smoke_run: RunConfig) -> tfcomp.ModelReport:
    return tfcomp.load_run(smoke_run.run_dir)


@pytest.fixture(scope="module")
def shapes() -> tfcomp.ModelReport:
    """A model that draws every image as it is, of shapes at places."""
    images = np.random.default_rng(0).uniform(size=(18, 4, 4)).astype("f4")
    table = tfcomp.FactorTable(
        images,
        CLASSES,
        names=["shape", "x", "y"],
        levels=[["disc", "ring"], None, None],
    )
    return tfcomp.evaluate(table.draw, table, "shape:ring,x:2", name="own")


def test_factors_by_name_and_as_an_array(
    run: tfcomp.ModelReport, shapes: tfcomp.ModelReport
) -> None:
    grid = run.dataset.splits.grid
    expected = run.model.predict(grid, verbose=0)
    np.testing.assert_allclose(run.draw(), expected, atol=1e-6)
    index = np.flatnonzero((grid == [3, 4]).all(axis=1))
    for image in (
        run.draw(x=3, y=4),
        run.draw([3, 4]),
        run.draw({"y": 4, "x": [3]}),
        run.draw(pd.DataFrame({"y": [4], "x": [3]})),
    ):
        np.testing.assert_allclose(image, expected[index], atol=1e-6)
    row = run.draw(x=range(12), y=5)
    chosen = expected[grid[:, 1] == 5]
    np.testing.assert_allclose(row, chosen, atol=1e-6)
    found = shapes.draw(shape=["ring", "disc"], x=1, y=2)
    rows = [np.flatnonzero((CLASSES == [s, 1, 2]).all(1))[0] for s in (1, 0)]
    truth = shapes.dataset.render_array(shapes.dataset.splits.grid)
    np.testing.assert_allclose(found, truth[rows], atol=1e-6)
    np.testing.assert_array_equal(shapes.draw(shape=[1, 0], x=1, y=2), found)
    for factors in ({"shape": 7, "x": 1, "y": 2}, [[0.4, 1, 2]]):
        with pytest.raises(ConfigError, match="^shape must be among disc, r"):
            shapes.draw(factors)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda r: r.draw(z=1), "must be all of x, y"),
        (lambda r: r.draw(x=1), "must be all of x, y"),
        (lambda r: r.draw([1, 2, 3]), r"must be \[n, 2\] \(x, y\)"),
        (lambda r: r.draw([1, 2], x=1), "given once"),
        (lambda r: r.draw(x=[1, 2], y=[1, 2, 3]), "one length"),
        (lambda r: r.draw(x="left", y=1), "must be among numbers"),
        (lambda r: r.draw(x=[], y=[]), "factors must be"),
        (lambda r: r.draw(np.zeros((0, 2))), "factors must be"),
        (lambda r: r.activations("stage9"), "must be among code, stage_0"),
        (lambda r: r.plot_samples("odd"), "must be among id, ood"),
    ],
)
def test_mistakes_say_what_there_is(
    run: tfcomp.ModelReport, call: Callable, words: str
) -> None:
    with pytest.raises(ConfigError, match=words):
        call(run)


def test_activations_and_geometry(run: tfcomp.ModelReport) -> None:
    points = np.array([[3, 4], [5.5, 6]], np.float32)
    stage = run.stages[1]
    stages = make_stage_model(run.model, [stage])
    found = run.activations(stage, points)
    np.testing.assert_allclose(found, stages(points)[stage], atol=1e-6)
    slow = compute_stage_jacobians(stages, points)[stage]
    metric = np.einsum("bki,bkj->bij", slow, slow)
    np.testing.assert_allclose(
        run.geometry(stage, x=[3, 5.5], y=[4, 6]), metric, rtol=1e-3
    )
    whole = run.geometry(stage)
    assert whole.shape == (144, 2, 2)
    some = run.geometry(stage, run.dataset.splits.grid[:7])
    np.testing.assert_allclose(some, whole[:7], rtol=1e-5)


def test_the_table_has_the_errors_of_all_combinations(
    run: tfcomp.ModelReport,
) -> None:
    frame = run.to_frame()
    names = ["x", "y", "is_ood", "mse", "relative_mse", "ssim_error"]
    assert list(frame.columns) == names
    assert frame["is_ood"].sum() == run.dataset.splits.is_ood.sum()
    means = frame.groupby("is_ood")["mse"].mean()
    for is_ood, subset in ((False, "id"), (True, "ood")):
        expected = run.scores[subset]["mse"]
        assert means[is_ood] == pytest.approx(expected, rel=1e-5)

    finer = run.refine(between=23).to_frame()  # every half pixel
    assert len(finer) == 23**2
    on_grid = finer[(finer[["x", "y"]] % 1 == 0).all(axis=1)]
    np.testing.assert_allclose(on_grid["mse"], frame["mse"], rtol=1e-3)


def test_what_a_notebook_shows(
    run: tfcomp.ModelReport, shapes: tfcomp.ModelReport
) -> None:
    assert f"{run.scores['ood']['mse']:.4g}" in repr(run)
    page = run._repr_html_()
    assert "<table" in page and "data:image/png;base64,iVBOR" in page
    named = tfcomp.evaluate(run.model, run.dataset, name="<b>")
    assert "&lt;b" in named._repr_html_()
    # Scores that do not apply are not listed.
    assert "position" not in repr(shapes)
    assert set(shapes.scores["id"]) == {"mse", "relative_mse", "r2"}


def test_samples_errors_and_layers_are_plotted(
    shapes: tfcomp.ModelReport,
) -> None:
    figures = [shapes.plot_samples("id"), shapes.plot_samples("ood")]
    figures += [shapes.plot_error(), shapes.plot_layers()]
    assert all(figure.axes for figure in figures)


def test_a_perfect_image_that_the_reference_equals_is_no_error() -> None:
    grays = np.linspace(0, 1, 3)[:, None, None] * np.ones((4, 4))
    table = tfcomp.FactorTable(grays, np.arange(3)[:, None], names=["x"])
    gray = tfcomp.evaluate(table.draw, table).to_frame()
    assert gray["relative_mse"].tolist() == [0, 0, 0]


def test_categories_have_no_geometry_to_plot() -> None:
    images = np.eye(4, dtype=np.float32).reshape(4, 2, 2)
    classes = np.stack(np.divmod(np.arange(4), 2), axis=1)
    kinds = ["categorical", "categorical"]
    table = tfcomp.FactorTable(images, classes, names=["a", "b"], kinds=kinds)
    model = tfcomp.evaluate(table.draw, table)
    for plot in (model.plot_layers, model.plot_error):
        with pytest.raises(ConfigError, match="must have an ordered factor"):
            plot()
    with pytest.raises(ConfigError, match="must be among id"):
        model.plot_samples("ood")
    with pytest.raises(ConfigError, match="must be at least one"):
        tfcomp.write_report([], "report")
    like = [tfcomp.evaluate(table.draw, table, name=n) for n in ("a b", "a_b")]
    with pytest.raises(ConfigError, match="names of different letters"):
        tfcomp.write_report(like, "report")  # their files would have one name


def test_settings_are_not_given_twice() -> None:
    config = tfcomp.describe_run("smoke")
    with pytest.raises(ConfigError, match="describe_run"):
        tfcomp.train_run(config, depth=3)
