"""The table of scores as colors."""

from matplotlib.colors import to_hex
from matplotlib.patches import Rectangle

from tfcomp.figures.map_plots import draw_score_table


def test_every_kind_of_cell() -> None:
    values = {("a", "data range:low"): 0.5, ("b", "data far"): float("nan")}
    texts = {key: f"{value:.1f}" for key, value in values.items()}
    columns = ["data range:low", "data far", "data montero:extrapolation"]
    figure = draw_score_table(
        values, texts, ["a", "b"], columns, label="R²", title="a title"
    )
    axes, colorbar = figure.axes
    assert [t.get_text() for t in axes.get_yticklabels()] == ["a", "b"]
    assert [t.get_text() for t in axes.get_xticklabels()] == [
        "data\nrange:low",
        "data\nfar",
        "data\nmontero:\nextrapolation",  # wider than a cell
    ]
    written = {t.get_position(): t.get_text() for t in axes.texts}
    assert written == {(0, 0): "0.5", (1, 1): "nan"}
    # Not run is white, and a NaN is not.
    blank = [p for p in axes.patches if isinstance(p, Rectangle)]
    assert {to_hex(p.get_facecolor()) for p in blank} == {"#ffffff"}
    places = {(p.get_x() + 0.5, p.get_y() + 0.5) for p in blank}
    assert places == {(1, 0), (2, 0), (0, 1), (2, 1)}
    assert colorbar.get_ylabel() == "R²"
