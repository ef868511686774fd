"""Figures of the claims: symptoms of failure, and cures."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from reproduction.claims import c13_smoothness, c18_units, c23_effective_rank
from reproduction.claims.c09_warp import read_late
from reproduction.claims.evidence import Evidence
from reproduction.claims.judge import ALL, UNTRAINED
from reproduction.claims.networks import (
    BUMPS_ALONE,
    LONG,
    SHORT,
    STRIPES,
    select_penalties,
)
from reproduction.claims.page import judge_claims
from reproduction.figures.paper_figure import Drawn, FigureRuns
from reproduction.figures.score_pictures import draw_panels
from tfcomp.figures.exhibits import finish_figure, make_figure, scale_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes

CODES = ("bump", "ramp")
HELD_OUT = "held out"
COLORS = {
    HELD_OUT: "#b2182b",
    ALL: "#2166ac",
    UNTRAINED: "#777777",
}
# The label of each row, with the claim and its quantity.
SYMPTOMS = {
    "log₁₀ of held-out\nrelative MSE (C1)": (
        "C1",
        "OOD error, a blank image has 1",
    ),
    "R² on training\nimages (C4)": (
        "C4",
        "R² of OOD outputs on outputs sharing x or y",
    ),
    "additive less\nradial kernel (C5)": (
        "C5",
        "alignment, additive less radial kernel",
    ),
    "factorization,\nlast less first (C6)": (
        "C6",
        "F (exact), image less stage 0",
    ),
    "the same by the\npublished code (C6)": (
        "C6",
        "F (published code), image less stage 0",
    ),
    "probe R²,\nlast less first (C8)": (
        "C8",
        "probe R² (ID to OOD), last less first hidden",
    ),
    "warp of\nlate stages (C9)": (
        "C9",
        "|log V - ID median|, OOD less ID, late stages",
    ),
    "share of images with\nseveral peaks (C21)": (
        "C21",
        "share of OOD images with two peaks or more",
    ),
}
ERROR = "ood/relative_mse"


def draw_claims(runs: FigureRuns, name: str) -> Drawn:
    """Draws a figure of the claims.

    Args:
        runs: Its evidence has the runs.
        name: `symptoms` or `cures`.
    """
    drawers = {"symptoms": draw_symptoms, "cures": draw_cures}
    return drawers[name](runs.evidence)


def draw_symptoms(evidence: Evidence) -> Drawn:
    """Draws a row for each symptom and a column for each code.

    Args:
        evidence: As read by `read_evidence`.
    """
    names = {claim for claim, _ in SYMPTOMS.values()}
    rows = {}
    for row in judge_claims(evidence, names):
        rows[row.claim, row.part, row.quantity] = row
    if not evidence.results.loaded:
        return {}
    figure = make_figure((6.75, 8))
    grid = figure.subplots(
        nrows=len(SYMPTOMS),
        ncols=len(CODES),
        sharex="row",
        sharey=True,
    )
    drawn = {}
    for panels, label in zip(grid, SYMPTOMS, strict=True):
        claim, quantity = SYMPTOMS[label]
        for axes, code in zip(panels, CODES, strict=True):
            row = rows[claim, code, quantity]
            samples = {HELD_OUT: row.values, **row.others}
            if claim == "C1":
                samples = {name: np.log10(samples[name]) for name in samples}
            for name, values in samples.items():
                drawn[claim, quantity, code, name] = values
            _plot_lines(axes, samples)
        panels[0].set_ylabel(
            label,
            rotation=0,
            ha="right",
            va="center",
        )
    for axes, code in zip(grid[0], CODES, strict=True):
        axes.set_title(f"{code} code", fontsize=scale_text(10))
    grid[0, 0].set_yticks(range(len(COLORS)), COLORS)
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


def _plot_lines(axes: Axes, samples: Mapping[str, pd.Series]) -> None:
    """Plots a line of points for each kind of networks, from top to bottom."""
    for line, (name, color) in enumerate(COLORS.items()):
        values = samples.get(name, pd.Series(dtype=float)).dropna()
        if values.empty:
            axes.text(
                0.5,
                line,
                "not scored",
                transform=axes.get_yaxis_transform(),
                ha="center",
                va="center",
                fontsize=scale_text(7),
            )
            continue
        height = [line] * len(values)
        axes.plot(
            values,
            height,
            "o",
            color=color,
            ms=scale_text(5),
            alpha=0.5,
        )
        axes.plot(
            values.mean(),
            line,
            "|",
            color=color,
            ms=scale_text(13),
            mew=2,
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
    tried = select_penalties(evidence, c23_effective_rank.SEEDS)
    low_rank = {name: tried[name].fitted for name in tried}
    if low_rank["both"].runs.empty:
        return {}

    common = {"precision": "float32", "seed": c18_units.SEEDS}
    bumps = evidence.select(**BUMPS_ALONE, **common)
    stripes = evidence.select(**STRIPES, **SHORT, **common, num_bumps=0)
    both = evidence.select(**STRIPES, **LONG, **common, num_bumps=50)
    striped = {
        "bumps": bumps.fitted,
        "stripes": stripes.placed,
        "stripes, 50 bumps": both.placed,
    }
    penalties = draw_panels(
        low_rank,
        {
            ERROR: ERROR,
            "effective rank of embeddings": c23_effective_rank.read_rank,
            "sd of log-volume, mean over stages": c13_smoothness.read_spread,
        },
    )
    units = draw_panels(
        striped,
        {
            ERROR: ERROR,
            "warp, late stages": read_late,
            "product less sum units, last hidden stage": c18_units.read_last,
        },
    )
    return {
        "Low-rank networks without penalties, with entropy, with variance, "
        "and with both.": penalties,
        "CNNs trained on bumps, on stripes, and on both.": units,
    }
