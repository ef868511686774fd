"""Places of axes: found once for figures that differ in their colors alone."""

from collections.abc import Callable

import numpy as np
import pytest
from matplotlib import rc_context
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine

from tfcomp.config.errors import ConfigError
from tfcomp.datasets.factors import Factor
from tfcomp.datasets.grid_maps import GridMap
from tfcomp.figures import layout
from tfcomp.figures.curve_plots import draw_curves
from tfcomp.figures.exhibits import figure_to_array, figure_to_pdf
from tfcomp.figures.image_rows import draw_rows
from tfcomp.figures.map_plots import draw_maps

FACTORS = tuple(Factor(name, 6, 0.0, 5.0, "px") for name in "xy")
MASK = np.pad(np.ones((2, 2), bool), 2)


def draw_map(seed: int, high: float = 1.0) -> Figure:
    values = np.random.default_rng(seed).random((6, 6))
    maps = {"stage": GridMap(values=values, factors=FACTORS, mask=MASK)}
    return draw_maps(maps, label="volume", title="maps", limits=(0, high))


def draw_samples(seed: int, x: float = 2.0) -> Figure:
    images = np.random.default_rng(seed).random((3, 6, 6))
    rows = {"truth": images, "model": images / 2}
    positions = [[x, 1], [3, 4], [5, 5]]
    return draw_rows(rows, positions, MASK, title="samples")


@pytest.fixture
def steps(monkeypatch: pytest.MonkeyPatch) -> list[Figure]:
    """Figures in the order in which the engine is called for them."""
    called: list[Figure] = []
    execute = ConstrainedLayoutEngine.execute

    def count(engine: ConstrainedLayoutEngine, figure: Figure) -> None:
        called.append(figure)
        execute(engine, figure)

    monkeypatch.setattr(ConstrainedLayoutEngine, "execute", count)
    return called


@pytest.mark.parametrize(
    ("draw", "other"), [(draw_map, 1e-7), (draw_samples, 0.0)]
)
def test_places_are_found_once(
    draw: Callable[..., Figure], other: float, steps: list[Figure]
) -> None:
    draw(1)
    steps.clear()
    reused, changed = figure_to_array(draw(2)), draw(2, other)
    assert {*steps} == {changed}
    layout._known_places.clear()
    np.testing.assert_array_equal(reused, figure_to_array(draw(2)))
    assert {*steps} > {changed}


def test_figures_for_print() -> None:
    def draw() -> Figure:
        return draw_curves([0, 1], {"a": [0, 1]}, xlabel="x", ylabel="y")

    with layout.fit_width("column"):
        figure = draw()
    assert figure.get_figwidth() == 3.25
    assert figure.axes[0].xaxis.label.get_fontsize() == 7
    pdf = figure_to_pdf(figure)
    assert b"/Type3" not in pdf and b"/CIDFontType2" in pdf
    with rc_context({"font.size": 9}), layout.fit_width("page"):
        figure = draw()  # with text of the user's size
    assert figure.get_figwidth() == 6.75
    assert figure.axes[0].xaxis.label.get_fontsize() == 9
    with pytest.raises(ConfigError, match="column, page"):
        layout.fit_width("a4").__enter__()
