"""The two pictures of a study: which measures, how early; and the best one."""

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.figure import Figure

from tfcomp.figures.exhibits import Exhibit
from tfcomp.figures.layout import finish_figure
from tfcomp.figures.line_style import LINE_COLORS, LINE_MARKERS, draw_line
from tfcomp.prediction.design import HALVES
from tfcomp.prediction.judgement import ID_ERROR, Evidence, Row

SHOWN = 6  # measures in the first picture, beside the ID error
TAU = "Kendall's tau with the OOD error, in the direction found first"


def make_exhibits(
    tables: Mapping[str, Sequence[Row]],
    halves: Mapping[str, Evidence | None],
) -> list[Exhibit]:
    """The pictures of the held-back half, or else of the exploring one.

    The exploring half says which measures they show.
    """
    half = HALVES[bool(tables[HALVES[1]])]
    early = [row for row in tables[HALVES[0]] if row["time"] < 1]
    fair = [row for row in early if not row["peeks"]]
    ranked = sorted(fair, key=lambda row: -row["tau"])
    names = list(dict.fromkeys(row["measure"] for row in ranked))
    names = [name for name in names if name != ID_ERROR][:SHOWN]
    evidence = halves[half]
    if not names or evidence is None:
        return []
    best = next(row for row in ranked if row["measure"] == names[0])
    return [
        _show_times(tables[half], [ID_ERROR, *names], half),
        _show_best(evidence, best, half),
    ]


def _show_times(
    rows: Sequence[Row], names: Sequence[str], half: str
) -> Exhibit:
    figure = Figure(figsize=(7, 4), layout="constrained")
    axes = figure.subplots()
    shown = []
    for index, name in enumerate(names):
        own = [row for row in rows if row["measure"] == name]
        times, taus, lows, highs = (
            np.array([row[column] for row in own], float)
            for column in ("time", "tau", "tau_low", "tau_high")
        )
        draw_line(axes, index, times, taus, name, (lows, highs))
        columns = ("measure", "time", "tau", "tau_low", "tau_high", "passes")
        shown += [{c: row[c] for c in columns} for row in own]
    axes.axhline(0.0, color="0.6", linewidth=1)
    axes.set_xlabel("share of the training at which the measure is taken")
    axes.set_ylabel("Kendall's tau")
    title = "Which early number orders networks by their OOD error?"
    finish_figure(figure, title)
    caption = (
        f"{TAU}; band: 95 % interval over settings. Measures that look at ID "
        "points alone, those with the highest tau on the exploring half first; "
        f"networks of the half `{half}`."
    )
    return Exhibit("predict_times", title, caption, figure, shown)


def _show_best(evidence: Evidence, best: Row, half: str) -> Exhibit:
    figure = Figure(figsize=(7, 4), layout="constrained")
    axes = figure.subplots()
    name, time = best["measure"], best["time"]
    values = evidence.measures[name, f"{time:g}"]
    networks = evidence.networks
    decoders = networks.settings[evidence.decoder]
    for index in range(decoders.max() + 1):
        rows = decoders == index
        axes.plot(
            values[rows],
            networks.outcome[rows],
            LINE_MARKERS[index % len(LINE_MARKERS)],
            color=LINE_COLORS[index % len(LINE_COLORS)],
            markersize=3,
            label=evidence.decoder_names[index],
        )
    axes.set_xlabel(f"{name} at {time:.0%} of the training")
    axes.set_ylabel("log₁₀ OOD relative MSE at the end")
    title = f"{name} and the OOD error"
    finish_figure(figure, title)
    caption = (
        "One point for each network, all trained to the same ID error; "
        f"networks of the half `{half}`."
    )
    rows = [
        {"decoder": evidence.decoder_names[d], name: v, "log10_ood": o}
        for d, v, o in zip(decoders, values, networks.outcome, strict=True)
    ]
    return Exhibit("predict_best", title, caption, figure, rows)
