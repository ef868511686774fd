"""Pictures without trained networks: of scores over seeds, and of the data."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from tfcomp.config.run_config import RunConfig
from tfcomp.config.run_flags import parse_config
from tfcomp.datasets import Dataset, make_dataset
from tfcomp.evaluation.pictures import choose_spread, get_pixel_mask
from tfcomp.figures.forest_plots import ForestPanel, ForestRow, draw_forest
from tfcomp.figures.image_rows import draw_rows
from tfcomp.models import MODELS
from tfcomp.statistics.estimates import estimate_geometric
from tfcomp.statistics.setting_table import format_rows
from tfcomp.statistics.verdicts import Rule
from tfcomp.studies.claims.claim import Number
from tfcomp.studies.claims.columns import subtract_code
from tfcomp.studies.claims.own_checks import SLOPES, choose_study
from tfcomp.studies.claims.parts import estimate
from tfcomp.studies.paper.curves import Reader, draw_errors, draw_stages
from tfcomp.studies.paper.paper_figure import Drawer, Drawn, Found
from tfcomp.studies.thresholds.laws import fit_laws, make_exhibits

# The metric of each stage, the label of its axis, and its description.
STAGES: dict[str, tuple[Reader, str, str]] = {
    "factorization": ("factorization", "F (eq. 7)", "Factorization"),
    "probes": ("probe_r2_ood", "R²", "Linear probes from ID to OOD"),
    "volume": (
        lambda group: subtract_code(group.get_stages("log_volume_difference")),
        "log-volume, OOD - ID - code",
        "Mean log-volume over OOD points less the mean over ID points, and "
        "less the same difference of the code",
    ),
}
STRIPES_PER_ROW = 14
# The networks of appendix D, and their sizes in the paper.
NETWORKS = {"donut.flags --depth=2": "315K", "mlp.flags --depth=2": "272K"}


def draw_measure(found: Found, name: str, codes: Sequence[str]) -> Drawn:
    """Plots one of `STAGES`: a panel for each code, a line for a group."""
    read, ylabel, words = STAGES[name]
    panels = {}
    for code in codes:
        groups = {
            label.removeprefix(f"{code}, "): group
            for label, group in found.groups.items()
            if label.startswith(code)
        }
        panels[f"{code} code"] = groups, read
    figure = draw_stages(panels, ylabel)
    caption = f"{words}, mean over seeds, with 95 % intervals."
    return {caption: figure} if figure else {}


def draw_curve(found: Found, name: str) -> Drawn:
    """Plots an error over the values of the factor with a gap."""
    lines = {k: g.get_places(f"{name}_mse") for k, g in found.groups.items()}
    if not any(map(len, lines.values())):
        return {}
    group = next(iter(found.groups.values()))
    values = group.get_places(f"{name}_values").iloc[0].tolist()
    axes = {"xlabel": "angle (degrees)", "ylabel": "MSE over pixels"}
    figure = draw_errors(values, lines, **axes, logy=True)
    caption = "MSE at every angle, mean over seeds, with 95 % intervals."
    return {caption: figure} if figure else {}


def draw_search(found: Found, criterion: str) -> Drawn:
    """Plots thresholds against the size of the grid, with their laws."""
    rows: list[Any] = []
    for kind in SLOPES:
        if study := choose_study(found.evidence.studies, kind):
            table = study.thresholds
            chosen = (table["kind"] == kind) & (table["criterion"] == criterion)
            rows += table[chosen].to_dict("records")
    exhibits = make_exhibits(fit_laws(rows))
    return {e.caption: e.figure for e in exhibits if e.figure is not None}


def draw_scores(found: Found, names: Sequence[str]) -> Drawn:
    """Plots scores of all groups, side by side, on logarithmic scales."""
    panels = []
    for name in names:
        number = Number(name, name, Rule(), by=estimate_geometric)
        means = {k: estimate(number, [g]) for k, g in found.groups.items()}
        rows = [
            ForestRow(k, m.mean, m.low, m.high, list(m.values.values()))
            for k, m in means.items()
            if m is not None
        ]
        panels.append(ForestPanel(name, rows, is_log=True))
    if not all(panel.rows for panel in panels):
        return {}
    caption = (
        "Every seed (gray), the geometric mean (diamond), its 95 % interval."
    )
    return {caption: draw_forest(panels, side_by_side=True)}


def draw_donut() -> Drawn:
    """Plots images of some ID and OOD positions; outlines the region."""
    drawn = {}
    for file in ("donut.flags", "corner.flags"):
        _, dataset = _make(file)
        splits, images = dataset.splits, {}
        for subset, chosen in (("ID", splits.is_id), ("OOD", splits.is_ood)):
            points = splits.grid[choose_spread(np.flatnonzero(chosen))]
            images[subset] = dataset.render_array(points)
        caption = f"The held-out region {dataset.region.spec} is outlined."
        drawn[caption] = draw_rows(images, mask=get_pixel_mask(dataset))
    return drawn


def draw_some_stripes() -> Drawn:
    """Plots a vertical and a horizontal stripe."""
    _, dataset = _make("stripes.flags")
    stripes = dataset.splits.train
    middle = len(stripes) // 4
    shown = stripes[[middle, len(stripes) // 2 + middle]]
    caption = "A stripe at one x, and one at one y; the other is absent."
    images = {"stripes": dataset.render_array(shown)}
    return {caption: draw_rows(images, shown)}


def draw_all_stripes() -> Drawn:
    """Plots the training set of stripes alone."""
    _, dataset = _make("stripes.flags")
    stripes = dataset.splits.train
    rows = {}
    for start in range(0, len(stripes), STRIPES_PER_ROW):
        points = stripes[start : start + STRIPES_PER_ROW]
        (column,) = np.flatnonzero(np.isfinite(points[0]))
        label = f"{dataset.space.names[column]} from {points[0, column]:g}"
        rows[label] = dataset.render_array(points)
    return {f"All {len(stripes)} stripes.": draw_rows(rows)}


def list_networks() -> Drawn:
    """Returns the table of appendix D, with numbers of weights."""
    names = ["input", "layers", "hidden", "optimizer", "paper", "ours"]
    columns = {"property": names}
    for line, size in NETWORKS.items():
        config, dataset = _make(line)
        model = MODELS.get(config.model.model).load()(config, dataset)
        layers = [type(layer).__name__ for layer in model.layers]
        kind = "Dense" if config.model.model == "mlp" else "Conv2DTranspose"
        columns[line] = [
            f"{model.layers[1].output.shape[-1]} ({config.model.encoding})",
            f"{layers.count(kind)} {kind}",
            str(config.model.width),
            f"AdamW, {config.training.learning_rate:g}",
            size,
            f"{model.count_params():,}",
        ]
    rows = [list(columns), *zip(*columns.values(), strict=True)]
    caption = "Numbers of weights are counted in networks as they are built."
    return {caption: format_rows(rows).rstrip()}


DATA = {
    "donut": draw_donut,
    "some stripes": draw_some_stripes,
    "all stripes": draw_all_stripes,
    "networks": list_networks,
}
DRAWERS: dict[str, Drawer] = {
    "data": lambda _, name: DATA[name](),
    "stages": draw_measure,
    "curve": draw_curve,
    "search": draw_search,
    "scores": draw_scores,
}


def _make(line: str) -> tuple[RunConfig, Dataset]:
    config = parse_config(f"--flagfile={line}".split())
    return config, make_dataset(config)
