"""Two figures of the claims: symptoms of failure, and cures.

A point is a seed and a tick is the mean over seeds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from reproduction.claims import (
    c13_smoothness,
    c18_units,
    c23_effective_rank,
)
from reproduction.claims.c09_warp import read_late
from reproduction.claims.evidence import Evidence
from reproduction.claims.judge import ALL, UNTRAINED, Row
from reproduction.claims.networks import (
    BUMPS_ALONE,
    LONG,
    STRIPES,
    select_penalties,
)
from reproduction.claims.page import judge_claims

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from pandas import Series

CODES = ("bump", "ramp")
COLORS = {"networks": "#b2182b", ALL: "#2166ac", UNTRAINED: "#777777"}
NAMES = {"networks": "held out", ALL: ALL, UNTRAINED: UNTRAINED}
# The claim, the start of its quantity, and the label of its row.
SYMPTOMS = (
    ("C1", "OOD error", "C1: log10 of\nOOD error"),
    ("C4", "R² of", "C4: R² on\nmemories"),
    ("C5", "alignment", "C5: additive less\nradial kernel"),
    ("C6", "F (exact)", "C6: fall of F\n(exact)"),
    ("C6", "F (published", "C6: fall of F\n(published code)"),
    ("C8", "probe", "C8: probe R²,\nlast less first"),
    ("C9", "|log V", "C9: warp,\nlate stages"),
    ("C21", "share of OOD images with two", "C21: several\npeaks"),
)
Samples = Mapping[str, "Series"]


def draw_symptoms(found: Any, _: str) -> dict[str, Any]:
    """Draws a row for each symptom and a column for each code."""
    import matplotlib.pyplot as plt

    rows = judge_claims(found.evidence)
    if not any(row.number.n for row in rows):
        return {}
    figure, grid = plt.subplots(
        len(SYMPTOMS), 2, figsize=(6.75, 7.5), sharex="row", squeeze=False
    )
    for axes_row, (claim, start, label) in zip(grid, SYMPTOMS, strict=True):
        for axes, code in zip(axes_row, CODES, strict=True):
            row = _find_row(rows, claim, code, start)
            samples = dict(row.samples) if row is not None else {}
            if claim == "C1":
                samples = {n: np.log10(v) for n, v in samples.items()}
            _draw_lines(axes, samples, list(COLORS), list(COLORS.values()))
            axes.set_yticks(range(3), NAMES.values() if code == "bump" else [])
            if not samples:
                axes.text(0.5, 0.5, "no claim", transform=axes.transAxes)
        axes_row[0].set_ylabel(label, rotation=0, ha="right", va="center")
        axes_row[0].yaxis.set_label_coords(-0.38, 0.5)
    for axes, code in zip(grid[0], CODES, strict=True):
        axes.set_title(f"{code} code")
    figure.subplots_adjust(0.34, 0.04, 0.98, 0.95, wspace=0.12, hspace=0.55)
    caption = (
        "Symptoms of networks that fail at the held-out square, of networks "
        "that were trained on all combinations, and of untrained networks. A "
        "point is a seed, a tick the mean."
    )
    return {caption: figure}


def _find_row(
    rows: Sequence[Row], claim: str, code: str, start: str
) -> Row | None:
    for row in rows:
        is_asked = row.claim == claim and row.part == code
        if is_asked and row.quantity.startswith(start):
            return row
    return None


def _draw_lines(
    axes: Axes, samples: Samples, names: Sequence[str], colors: Sequence[str]
) -> None:
    """Draws a line of points for each sample, from top to bottom."""
    for line, (name, color) in enumerate(zip(names, colors, strict=True)):
        values = samples.get(name)
        if values is None or not values.notna().any():
            if samples:
                axes.text(0, line, " not scored", va="center", fontsize=6)
            continue
        axes.plot(
            values, [line] * len(values), "o", color=color, ms=4, alpha=0.5
        )
        axes.plot(values.mean(), line, "|", color=color, ms=13, mew=2)
    axes.set_ylim(len(names) - 0.4, -0.6)
    axes.axvline(0, color="#cccccc", lw=0.8, zorder=0)
    axes.tick_params(labelsize=7)
    axes.locator_params(axis="x", nbins=4)


def draw_cures(found: Any, _: str) -> dict[str, Any]:
    """Draws numbers of networks with and without the cures."""
    import matplotlib.pyplot as plt

    left, right = read_penalties(found.evidence), read_stripes(found.evidence)
    if not any(len(v) for s in left.values() for v in s.values()):
        return {}
    count = max(len(left), len(right))
    figure, grid = plt.subplots(count, 2, figsize=(6.75, 5.5), squeeze=False)
    titles = ("penalties on low-rank networks", "stripes beside bumps")
    for column, panels in enumerate((left, right)):
        grid[0, column].set_title(titles[column])
        for axes in grid[len(panels) :, column]:
            axes.set_axis_off()
        for axes, (label, samples) in zip(
            grid[:, column], panels.items(), strict=False
        ):
            colors = [f"C{number}" for number in range(len(samples))]
            _draw_lines(axes, samples, list(samples), colors)
            axes.set_yticks(range(len(samples)), list(samples))
            axes.set_xlabel(label, fontsize=7, labelpad=1)
    figure.subplots_adjust(0.09, 0.08, 0.98, 0.94, wspace=0.42, hspace=0.75)
    caption = (
        "Cures: low-rank networks without penalties, with entropy, variance or "
        "both; and CNNs on bumps, on stripes, and on both. A point is a seed, "
        "a tick the mean."
    )
    return {caption: figure}


def read_penalties(evidence: Evidence) -> dict[str, dict[str, Series]]:
    """Reads the panels of penalties: by their labels, by penalties, by seed."""
    runs = select_penalties(evidence, c23_effective_rank.SEEDS)
    fitted = {name: evidence.fitted(chosen) for name, chosen in runs.items()}
    panels: dict[str, dict[str, Series]] = {"log10 of OOD error (blank: 0)": {}}
    panels["effective rank"] = {}
    panels["sd of log-volume"] = {}
    for name, chosen in fitted.items():
        error = np.log10(evidence.score(chosen, "ood/relative_mse"))
        rank = c23_effective_rank.read_rank(evidence, chosen)
        stages = evidence.stages(chosen, c13_smoothness.NAMES["all"])
        spread = stages.drop(columns="code").mean(axis=1)
        for panel, values in zip(
            panels.values(), (error, rank, spread), strict=True
        ):
            panel[name] = values
    return panels


def read_stripes(evidence: Evidence) -> dict[str, dict[str, Series]]:
    """Reads the panels of stripes: by their labels, by data, by seed."""
    seeds = c18_units.SEEDS
    precise = {"precision": "float32", "seed": seeds}
    short = c18_units.SHORT
    runs = {
        "bumps": evidence.fitted(evidence.select(**BUMPS_ALONE, **precise)),
        "stripes": evidence.placed(
            evidence.select(**STRIPES, **short, **precise, num_bumps=0)
        ),
        "stripes, 50 bumps": evidence.placed(
            evidence.select(**STRIPES, **LONG, **precise, num_bumps=50)
        ),
    }
    panels: dict[str, dict[str, Series]] = {"log10 of OOD error (blank: 0)": {}}
    panels["warp, late stages"] = {}
    panels["product less sum units, last hidden stage"] = {}
    for name, chosen in runs.items():
        error = np.log10(evidence.score(chosen, "ood/relative_mse"))
        warp = read_late(evidence, chosen)
        stages = evidence.stages(chosen, "product_less_sum")
        units = stages.drop(columns=["code", "image"]).iloc[:, -1]
        for panel, values in zip(
            panels.values(), (error, warp, units), strict=True
        ):
            panel[name] = values
    return panels
