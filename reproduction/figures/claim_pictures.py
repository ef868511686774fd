"""Figures of the claims: symptoms of failure, and cures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from reproduction.claims import c13_smoothness, c18_units, c23_effective_rank
from reproduction.claims.c09_warp import read_late
from reproduction.claims.evidence import Evidence
from reproduction.claims.judge import ALL, UNTRAINED, Row
from reproduction.claims.networks import (
    BUMPS_ALONE,
    LONG,
    SHORT,
    STRIPES,
    read_score,
    select_penalties,
)
from reproduction.claims.page import judge_claims
from reproduction.figures.paper_figure import Drawn
from reproduction.figures.score_pictures import draw_panels
from tfcomp.figures.exhibits import finish_figure, make_figure, scale_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes

CODES = ("bump", "ramp")
HELD_OUT = "networks"
COLORS = {
    HELD_OUT: "#b2182b",
    ALL: "#2166ac",
    UNTRAINED: "#777777",
}
# The claim, the start of its quantity, and the label of its row.
SYMPTOMS = (
    ("C1", "OOD error", "log₁₀ of held-out\nrelative MSE (C1)"),
    ("C4", "R² of", "R² on training\nimages (C4)"),
    ("C5", "alignment", "additive less\nradial kernel (C5)"),
    ("C6", "F (exact)", "factorization,\nlast less first (C6)"),
    ("C6", "F (published", "the same by the\npublished code (C6)"),
    ("C8", "probe", "probe R²,\nlast less first (C8)"),
    ("C9", "|log V", "warp of\nlate stages (C9)"),
    (
        "C21",
        "share of OOD images with two",
        "share of images with\nseveral peaks (C21)",
    ),
)
ERROR = "ood/relative_mse"


def draw_symptoms(evidence: Evidence) -> Drawn:
    """Draws a row for each symptom and a column for each code.

    Args:
        evidence: As read by `read_evidence`.
    """
    rows = judge_claims(evidence)
    if not any(row.number.n for row in rows):
        return {}
    figure = make_figure((6.75, 8))
    grid = figure.subplots(
        nrows=len(SYMPTOMS),
        ncols=len(CODES),
        sharex="row",
        sharey=True,
        squeeze=False,
    )
    drawn = {}
    for panels, (claim, start, label) in zip(grid, SYMPTOMS, strict=True):
        for axes, code in zip(panels, CODES, strict=True):
            samples = find_samples(rows, claim, code, start)
            for name, values in samples.items():
                drawn[claim, start, code, name] = values
            _plot_lines(axes, samples)
        panels[0].set_ylabel(label, rotation=0, ha="right", va="center")
    for axes, code in zip(grid[0], CODES, strict=True):
        axes.set_title(f"{code} code", fontsize=scale_text(10))
    names = ["held out", *list(COLORS)[1:]]
    grid[0, 0].set_yticks(range(len(names)), names)
    grid[0, 0].invert_yaxis()

    keys = ["claim", "quantity", "code", "networks", "seed"]
    table = pd.concat(drawn, names=keys).rename("value")
    finish_figure(figure, "", table.reset_index)
    caption = (
        "Symptoms of networks that fail at the held-out square, of networks "
        "that were trained on all combinations, and of untrained networks. A "
        "point is a seed, a tick the mean."
    )
    return {caption: figure}


def find_samples(
    rows: Sequence[Row],
    claim: str,
    code: str,
    start: str,
) -> Mapping[str, pd.Series]:
    """Finds values by seed, by the name of the networks; of errors, log10.

    Args:
        rows: Of all claims.
        claim: As `C6`.
        code: The part of the claim.
        start: The start of the quantity.
    """
    for row in rows:
        is_asked = row.claim == claim and row.part == code
        if not (is_asked and row.quantity.startswith(start)):
            continue
        if claim != "C1":
            return row.samples
        return {name: np.log10(row.samples[name]) for name in row.samples}
    return {}


def _plot_lines(axes: Axes, samples: Mapping[str, pd.Series]) -> None:
    """Plots a line of points for each kind of networks, from top to bottom."""
    for line, (name, color) in enumerate(COLORS.items()):
        values = samples.get(name, pd.Series(dtype=float)).dropna()
        if values.empty:
            place = (0.5, line)
            axes.annotate(
                "not scored",
                place,
                xycoords=("axes fraction", "data"),
                ha="center",
                va="center",
                fontsize=scale_text(7),
            )
            continue
        height = [line] * len(values)
        axes.plot(values, height, "o", color=color, ms=scale_text(5), alpha=0.5)
        axes.plot(
            values.mean(), line, "|", color=color, ms=scale_text(13), mew=2
        )
    axes.margins(y=0.3)
    axes.axvline(0, color="#cccccc", lw=0.8, zorder=0)
    axes.tick_params(labelsize=scale_text(8))
    axes.locator_params(axis="x", nbins=4)


def draw_cures(evidence: Evidence) -> Drawn:
    """Draws numbers of networks with and without penalties, and stripes.

    Args:
        evidence: As read by `read_evidence`.
    """
    low_rank = {}
    tried = select_penalties(evidence, c23_effective_rank.SEEDS)
    for name, runs in tried.items():
        low_rank[name] = evidence.fitted(runs)
    if low_rank["both"].empty:
        return {}

    common = {"precision": "float32", "seed": c18_units.SEEDS}
    bumps = evidence.select(**BUMPS_ALONE, **common)
    stripes = evidence.select(**STRIPES, **SHORT, **common, num_bumps=0)
    both = evidence.select(**STRIPES, **LONG, **common, num_bumps=50)
    striped = {
        "bumps": evidence.fitted(bumps),
        "stripes": evidence.placed(stripes),
        "stripes, 50 bumps": evidence.placed(both),
    }
    penalties = draw_panels(
        evidence,
        low_rank,
        {
            ERROR: read_score(ERROR),
            "effective rank of embeddings": c23_effective_rank.read_rank,
            "sd of log-volume, mean over stages": c13_smoothness.read_spread,
        },
    )
    units = draw_panels(
        evidence,
        striped,
        {
            ERROR: read_score(ERROR),
            "warp, late stages": read_late,
            "product less sum units, last hidden stage": c18_units.read_last,
        },
    )
    return {
        "Low-rank networks without penalties, with entropy, with variance, "
        "and with both.": penalties,
        "CNNs trained on bumps, on stripes, and on both.": units,
    }


DRAWERS = {"symptoms": draw_symptoms, "cures": draw_cures}
