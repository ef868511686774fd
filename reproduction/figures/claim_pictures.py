"""Two figures of the claims: symptoms of failure, and cures.

A point is a seed and a tick is the mean over seeds.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.figure import Figure

from reproduction.claims import c13_smoothness, c18_units, c23_effective_rank
from reproduction.claims.c09_warp import read_late
from reproduction.claims.evidence import Evidence
from reproduction.claims.judge import ALL, UNTRAINED, Row
from reproduction.claims.networks import (
    BUMPS_ALONE,
    LONG,
    SHORT,
    STRIPES,
    select_penalties,
)
from reproduction.claims.page import judge_claims

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from pandas import DataFrame, Series

CODES = ("bump", "ramp")
COLORS = {
    "networks": "#b2182b",
    ALL: "#2166ac",
    UNTRAINED: "#777777",
}
LOG_ERROR = "log₁₀ of held-out relative MSE (blank: 0)"
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
Samples = Mapping[str, "Series"]
Panels = dict[str, dict[str, "Series"]]  # by label, and by name of the runs


def draw_symptoms(evidence: Evidence) -> dict[str, Figure]:
    """Draws a row for each symptom and a column for each code.

    Args:
        evidence: As read by `read_evidence`.
    """
    rows = judge_claims(evidence)
    if not any(row.number.n for row in rows):
        return {}
    figure = Figure((6.75, 7.5))
    grid = figure.subplots(
        nrows=len(SYMPTOMS),
        ncols=2,
        sharex="row",
        squeeze=False,
    )
    symptoms = zip(grid, SYMPTOMS, strict=True)
    for panels, (claim, start, label) in symptoms:
        for axes, code in zip(panels, CODES, strict=True):
            samples = _find_samples(
                rows,
                claim,
                code,
                start,
            )
            _plot_lines(axes, samples, COLORS)
            axes.set_yticks(range(3), [])
            if not samples:
                _write(axes, 1, "no claim")
        first = panels[0]
        first.set_yticklabels(["held out", ALL, UNTRAINED])
        first.set_ylabel(
            label,
            rotation=0,
            ha="right",
            va="center",
        )
        first.yaxis.set_label_coords(-0.44, 0.5)
    for axes, code in zip(grid[0], CODES, strict=True):
        axes.set_title(f"{code} code")
    figure.subplots_adjust(
        left=0.34,
        bottom=0.04,
        right=0.98,
        top=0.95,
        wspace=0.12,
        hspace=0.55,
    )
    caption = (
        "Symptoms of networks that fail at the held-out square, of networks "
        "that were trained on all combinations, and of untrained networks. A "
        "point is a seed, a tick the mean."
    )
    return {caption: figure}


def _find_samples(
    rows: Sequence[Row],
    claim: str,
    code: str,
    start: str,
) -> Samples:
    for row in rows:
        if row.claim != claim or row.part != code:
            continue
        if not row.quantity.startswith(start):
            continue
        if claim != "C1":
            return row.samples
        logs = {}
        for name, values in row.samples.items():
            logs[name] = np.log10(values)
        return logs
    return {}


def _plot_lines(
    axes: Axes,
    samples: Samples,
    colors: Mapping[str, str],
) -> None:
    """Plots a line of points for each color, from top to bottom."""
    for line, (name, color) in enumerate(colors.items()):
        values = samples.get(name)
        if values is not None and values.notna().any():
            height = [line] * len(values)
            axes.plot(
                values,
                height,
                "o",
                color=color,
                ms=4,
                alpha=0.5,
            )
            axes.plot(
                values.mean(),
                line,
                "|",
                color=color,
                ms=13,
                mew=2,
            )
        elif samples:
            _write(axes, line, "not scored")
    axes.set_ylim(len(colors) - 0.4, -0.6)
    axes.axvline(
        0,
        color="#cccccc",
        lw=0.8,
        zorder=0,
    )
    axes.tick_params(labelsize=7)
    axes.locator_params(axis="x", nbins=4)


def _write(axes: Axes, line: int, text: str) -> None:
    """Writes into the middle of a line of a panel."""
    axes.annotate(
        text,
        (0.5, line),
        xycoords=("axes fraction", "data"),
        ha="center",
        va="center",
        fontsize=6,
    )


def draw_cures(evidence: Evidence) -> dict[str, Figure]:
    """Draws numbers of networks with and without the cures.

    Args:
        evidence: As read by `read_evidence`.
    """
    penalties = read_penalties(evidence)
    columns = {
        "penalties on low-rank networks": penalties,
        "stripes beside bumps": read_stripes(evidence),
    }
    ranks = penalties["effective rank"]
    if not any(len(values) for values in ranks.values()):
        return {}
    figure = Figure((6.75, 5.5))
    grid = figure.subplots(3, 2, squeeze=False)
    for place, (title, panels) in enumerate(columns.items()):
        column = grid[:, place]
        column[0].set_title(title)
        named = zip(column, panels.items(), strict=True)
        for axes, (label, samples) in named:
            names = list(samples)
            colors = {name: f"C{i}" for i, name in enumerate(names)}
            _plot_lines(axes, samples, colors)
            axes.set_yticks(range(len(names)), names)
            axes.set_xlabel(label, fontsize=7, labelpad=1)
    figure.subplots_adjust(
        left=0.09,
        bottom=0.08,
        right=0.98,
        top=0.94,
        wspace=0.42,
        hspace=0.75,
    )
    caption = (
        "Cures: low-rank networks without penalties, with entropy, variance or "
        "both; and CNNs on bumps, on stripes, and on both. A point is a seed, "
        "a tick the mean."
    )
    return {caption: figure}


def read_penalties(evidence: Evidence) -> Panels:
    """Reads the panels of penalties."""
    runs = select_penalties(evidence, c23_effective_rank.SEEDS)
    fitted = {}
    for name, tried in runs.items():
        fitted[name] = evidence.fitted(tried)
    readers = {
        LOG_ERROR: read_log_error,
        "effective rank": c23_effective_rank.read_rank,
        "sd of log-volume": c13_smoothness.read_spread,
    }
    return read_panels(evidence, fitted, readers)


def read_stripes(evidence: Evidence) -> Panels:
    """Reads the panels of stripes."""
    common = {"precision": "float32", "seed": c18_units.SEEDS}
    bumps = evidence.select(**BUMPS_ALONE, **common)
    stripes = evidence.select(
        **STRIPES,
        **SHORT,
        **common,
        num_bumps=0,
    )
    both = evidence.select(
        **STRIPES,
        **LONG,
        **common,
        num_bumps=50,
    )
    runs = {
        "bumps": evidence.fitted(bumps),
        "stripes": evidence.placed(stripes),
        "stripes, 50 bumps": evidence.placed(both),
    }
    readers = {
        LOG_ERROR: read_log_error,
        "warp, late stages": read_late,
        "product less sum units, last hidden stage": c18_units.read_last,
    }
    return read_panels(evidence, runs, readers)


def read_panels(
    evidence: Evidence,
    runs: Mapping[str, DataFrame],
    readers: Mapping[str, Callable[[Evidence, DataFrame], Series]],
) -> Panels:
    """Reads a panel by each reader, with a sample of each kind of runs.

    Args:
        evidence: The runs and their numbers.
        runs: Runs by the name of their kind.
        readers: By the label of a panel, what reads a number of each run.
    """
    panels: Panels = {}
    for label, read in readers.items():
        samples = {}
        for name, kind_runs in runs.items():
            samples[name] = read(evidence, kind_runs)
        panels[label] = samples
    return panels


def read_log_error(evidence: Evidence, runs: DataFrame) -> Series:
    """Reads log10 of the OOD error of each run.

    Args:
        evidence: The runs and their numbers.
        runs: The runs that are read.
    """
    errors = evidence.score(runs, "ood/relative_mse")
    return np.log10(errors)


DRAWERS = {"symptoms": draw_symptoms, "cures": draw_cures}
