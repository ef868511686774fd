"""Numbers to matplotlib figures, one file a kind of figure.

Every function returns a `matplotlib.figure.Figure` of its own; nothing goes
through the global state of pyplot, so that figures can be drawn in callbacks
and threads and are freed with their last reference. Maps and images have x to
the right and y upwards, and cell `(i, j)` of the factor grid at x = i, y = j.
"""

from tfcomp.figures.curve_plots import BandCurve
from tfcomp.figures.curve_plots import draw_curve_panels
from tfcomp.figures.curve_plots import draw_curves
from tfcomp.figures.embedding_plots import draw_embeddings
from tfcomp.figures.embedding_plots import draw_spectrum
from tfcomp.figures.forest_plots import ForestPanel
from tfcomp.figures.forest_plots import ForestRow
from tfcomp.figures.forest_plots import draw_forest
from tfcomp.figures.gram_plots import draw_gram_matrices
from tfcomp.figures.image_rows import draw_rows
from tfcomp.figures.manifold_plots import draw_manifolds
from tfcomp.figures.map_plots import draw_maps
from tfcomp.figures.power_law_plots import Scaling
from tfcomp.figures.power_law_plots import draw_power_laws
from tfcomp.figures.region_marks import compute_outline
from tfcomp.figures.region_marks import draw_outline
from tfcomp.figures.render import figure_to_array
from tfcomp.figures.render import figure_to_pdf
from tfcomp.figures.render import figure_to_png
from tfcomp.figures.stage_plots import draw_stage_panels
from tfcomp.figures.tuning_plots import draw_index_distribution
from tfcomp.figures.tuning_plots import draw_tuning

__all__ = [
    "BandCurve",
    "ForestPanel",
    "ForestRow",
    "Scaling",
    "compute_outline",
    "draw_curve_panels",
    "draw_curves",
    "draw_embeddings",
    "draw_forest",
    "draw_gram_matrices",
    "draw_index_distribution",
    "draw_manifolds",
    "draw_maps",
    "draw_outline",
    "draw_power_laws",
    "draw_rows",
    "draw_spectrum",
    "draw_stage_panels",
    "draw_tuning",
    "figure_to_array",
    "figure_to_pdf",
    "figure_to_png",
]
