"""What does not fit is named before anything is drawn."""

from collections.abc import Callable

import numpy as np
import pytest

from tfcomp.datasets.factors import Factor
from tfcomp.datasets.grid_maps import GridMap
from tfcomp.figures.cells import compute_outline
from tfcomp.figures.curve_plots import draw_curve_panels, draw_curves
from tfcomp.figures.embedding_plots import draw_embeddings, draw_spectrum
from tfcomp.figures.forest_plots import ForestPanel, draw_forest
from tfcomp.figures.image_rows import draw_rows
from tfcomp.figures.manifold_plots import draw_manifolds
from tfcomp.figures.map_plots import draw_gram_matrices, draw_maps
from tfcomp.figures.power_law_plots import Scaling, draw_power_laws
from tfcomp.figures.stage_plots import draw_stage_panels, merge_stages
from tfcomp.figures.tuning_plots import draw_index_distribution, draw_tuning

X = np.array([1.0, 10.0, 100.0])
IMAGES = np.zeros((3, 4, 5))  # [n, H, W]
UNITS = np.zeros((2, 5, 3))
X_FACTOR = Factor("x", 3, 0.0, 2.0)
LINE = GridMap(X, (X_FACTOR,))
STAGES = ["code", "stage_0", "image"]
LABELS = {"xlabel": "x", "ylabel": "y"}

# Arguments that fit, of which every case below changes some.
GOOD = {
    draw_curves: {"x": X, "series": {"a": X}, **LABELS},
    draw_curve_panels: {"xlabel": "epoch"},
    draw_embeddings: {"values": [1, 2], "factor_label": "x"},
    draw_spectrum: {"singular_values": np.eye(2), "effective_rank": [1, 1]},
    draw_forest: {},
    draw_gram_matrices: {"matrices": {"a": np.eye(3)}, "num_id": 2},
    draw_rows: {"rows": {"a": IMAGES}},
    draw_manifolds: {
        "embeddings": {"a": np.zeros((12, 2))},
        "factors": np.zeros((12, 2)),
        "is_ood": np.zeros(12, bool),
        "space": [X_FACTOR, X_FACTOR],
    },
    draw_maps: {"label": "MSE"},
    GridMap: {"values": X, "factors": (X_FACTOR,)},
    draw_power_laws: {"guides": {}, **LABELS},
    Scaling: {},
    compute_outline: {},
    draw_stage_panels: {
        "panels": {"": {"a": [1, 1, 1]}},
        "stages": {"a": STAGES},
        "ylabel": "MSE",
    },
    merge_stages: {},
    draw_tuning: {"plane": None},
    draw_index_distribution: {"label": "index"},
}


@pytest.mark.parametrize(
    ("draw", "changes", "message"),
    [
        (draw_curves, {"series": {}}, "at least one entry, received none"),
        (draw_curves, {"series": {"a": [1, 2]}}, r"same.* \[n\].*'a'\": \(2,"),
        (draw_curves, {"x": [X], "series": {"a": [X]}}, r"\(1, 3\)"),
        (draw_curves, {"bands": {"b": (X, X)}}, "bands .*'b'"),
        (draw_curves, {"bands": {"a": (X, X[:2])}}, r"high of 'a'\": \(2,\)"),
        (draw_curves, {"x": [np.nan, 1, 2]}, "x must be finite"),
        (draw_curves, {"shaded": (3, 3)}, "low < high, received 3, 3"),
        (draw_curve_panels, {"panels": {"loss": {}}}, "at least one curve"),
        (draw_embeddings, {"matrices": np.zeros((3, 3))}, r"mat.* \(3, 3\)"),
        (draw_embeddings, {"matrices": np.zeros((0, 3, 3))}, r"\(0, 3, 3\)"),
        (draw_embeddings, {"matrices": IMAGES}, r"values .*\(3,\).*\(2,\)"),
        (draw_spectrum, {"singular_values": X}, r"\[V, R\].* \(3,\)"),
        (draw_spectrum, {"singular_values": [[], []]}, r"\[V, R\].* \(2, 0\)"),
        (draw_spectrum, {"singular_values": -np.eye(2)}, "not be neg.* -1"),
        (
            draw_spectrum,
            {"effective_rank": 1.0},
            r"effective_rank .* \(2,\), received \(\)",
        ),
        (draw_forest, {"panels": [ForestPanel("a", [])]}, "at least one row"),
        (draw_gram_matrices, {"matrices": {}}, "square and of one size"),
        (draw_gram_matrices, {"matrices": {"a": UNITS[0]}}, r"\(5, 3\)"),
        (draw_gram_matrices, {"num_id": 4}, "0 to 3, received 4"),
        (draw_rows, {"rows": {}}, "at least one entry"),
        (
            draw_rows,
            {"rows": {"a": IMAGES, "b": IMAGES[:2]}},
            r"same shape .*'b': \(2, 4, 5\)",
        ),
        (draw_rows, {"rows": {"a": IMAGES[0]}}, r"\[n, H, W\].* \(4, 5\)"),
        (
            draw_rows,
            {"rows": {"a": IMAGES, "b": np.zeros((3, 4, 5, 3))}},
            r"\(3, 4, 5, 3\)",
        ),
        (draw_rows, {"rows": {"a": np.zeros((17, 2, 2))}}, "1 to 16, .* 17"),
        (draw_rows, {"positions": np.eye(2)}, r"positions .* \(2, 2\)"),
        (draw_rows, {"mask": IMAGES[0]}, r"mask .* \(5, 4\).*\(4, 5\)"),
        (draw_manifolds, {"embeddings": {}}, "embeddings must have"),
        (
            draw_manifolds,
            {"embeddings": {"a": np.zeros((12, 3))}},
            "embeddings must have",
        ),
        (draw_manifolds, {"space": [X_FACTOR]}, "factors must have shape"),
        (draw_manifolds, {"is_ood": X > 0}, "is_ood must have shape"),
        (draw_maps, {"maps": {}}, "must have at least one entry"),
        (draw_maps, {"maps": {"a": LINE}}, "two factors each"),
        (GridMap, {"values": X[:2]}, r"sizes of the factors, \(3,\).*\(2,\)"),
        (GridMap, {"mask": UNITS[0] > 0}, r"the factors, \(3,\).*\(5, 3\)"),
        (Scaling, {"points": [(16, 0)]}, "above 0"),
        (draw_power_laws, {"series": {"a": Scaling()}}, "at least one point"),
        (compute_outline, {"mask": X > 0}, r"\[nx, ny\], received \(3,\)"),
        (draw_stage_panels, {"panels": {"": {}}}, "at least one line"),
        (
            draw_stage_panels,
            {"panels": {"": {"a": [1, 2]}}},
            r"'a' must have shape \(3,\).* \(2,\)",
        ),
        (draw_stage_panels, {"errors": {"": {"a": [1]}}}, r"3,\) and \(1, 2\)"),
        (draw_stage_panels, {"errors": {"": {"a": [1, -1, 1]}}}, "not be neg"),
        (draw_stage_panels, {"errors": {"": {"b": X}}}, "errors .*'b'"),
        (draw_stage_panels, {"errors": {"c": {"a": X}}}, "errors .*'c'"),
        (draw_stage_panels, {"stages": {"b": STAGES}}, r"every line.*\['a'\]"),
        (merge_stages, {"lists": [["a", "b"], ["b", "a"]]}, "same order for"),
        (merge_stages, {"lists": [["a", "a"]]}, "same order for all lines"),
        (draw_tuning, {"units": {}}, "at least one entry"),
        (draw_index_distribution, {"values": {}}, "at least one stage"),
    ],
)
def test_bad_input_is_named(
    draw: Callable, changes: dict, message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        draw(**(GOOD[draw] | changes))
