"""What is made of the networks of a study: judgements, tables, figures."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from tfcomp.config.quiet import show_progress
from tfcomp.figures.exhibits import Exhibit, save_exhibit
from tfcomp.figures.layout import finish_figure
from tfcomp.figures.line_style import get_line_style
from tfcomp.storage.files import write_csv
from tfcomp.studies.prediction import forecast_report
from tfcomp.studies.prediction.design import HALVES, Found
from tfcomp.studies.prediction.evidence import (
    ID_ERROR,
    Evidence,
    make_evidence,
)
from tfcomp.studies.prediction.judgement import Row, judge

SHOWN = 6  # measures in the first picture, beside the ID error
SPREAD = 0.6  # of the distance of two times, that the measures of one take
ENDS = ("", "_low", "_high")
PANELS = {
    "tau": "all pairs",
    "conditional_tau": "pairs that share two hyperparameters",
}


def write_report(
    folder: Path,
    found: Sequence[Found],
    hyperparameters: Sequence[tuple[str, ...]],
    fresh: Sequence[Found] = (),
) -> None:
    """Writes tables of each half and of both, and the figures.

    Early numbers of one decoder are tried on fresh networks.
    """
    parts = {half: [e for e in found if e.cell.half == half] for half in HALVES}
    halves = {h: make_evidence(p, hyperparameters) for h, p in parts.items()}
    tables = judge_halves(halves)
    for name in (*HALVES, "power", "baselines", "one_decoder", "trust"):
        # Of another study, or an earlier one.
        (folder / f"{name}.csv").unlink(missing_ok=True)
    for half, rows in tables.items():
        if rows:
            write_csv(folder / f"{half}.csv", rows)
    proposed = sum(row["passes"] for row in tables[HALVES[0]])
    forecast_report.write_power(folder, halves, max(proposed, 1))
    forecast_report.write_forecasts(folder, found, hyperparameters, fresh)
    for exhibit in make_exhibits(tables, halves):
        save_exhibit(exhibit, folder / "figures")


def judge_halves(halves: Mapping[str, Evidence | None]) -> dict[str, list[Row]]:
    """The rows of both halves; none for one that has no networks."""
    first, second = (halves[half] for half in HALVES)
    if first is None:
        return {half: [] for half in HALVES}
    keys = first.list_keys()
    judged = judge(first, keys)
    rows = list(show_progress(judged, HALVES[0], "measure", len(keys)))
    if second is None:
        return {HALVES[0]: rows, HALVES[1]: []}
    found = dict(zip(keys, rows, strict=True))
    proposed = [key for key, row in found.items() if row["passes"]]
    # What was not proposed is shown beside it, and has no say.
    shown = [key for key in second.list_keys() if key in found]
    signs = {key: row["sign"] for key, row in found.items()}
    judged = judge(second, shown, signs, proposed)
    again = show_progress(judged, HALVES[1], "measure", len(shown))
    confirmed = [
        row
        | {"proposed": key in proposed}
        | {"predicts": key in proposed and row["passes"]}
        for key, row in zip(shown, again, strict=True)
    ]
    return {HALVES[0]: rows, HALVES[1]: confirmed}


def make_exhibits(
    tables: Mapping[str, Sequence[Row]], halves: Mapping[str, Evidence | None]
) -> list[Exhibit]:
    """The pictures of the held-back half, or else of the exploring one.

    The exploring half says which measures they show.
    """
    half = HALVES[bool(tables[HALVES[1]])]
    fair = [r for r in tables[HALVES[0]] if r["time"] < 1 and not r["peeks"]]
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
    figure = Figure(figsize=(9, 4), layout="constrained")
    panels = figure.subplots(1, len(PANELS), sharey=True)
    for axes, (column, heading) in zip(panels, PANELS.items(), strict=True):
        _draw_taus(axes, rows, names, column)
        axes.set_title(heading, fontsize="medium")
    panels[0].set_ylabel("Kendall's tau")
    title = "Which early number orders networks by their OOD error?"
    finish_figure(figure, title)
    caption = (
        "Kendall's tau between the OOD error and measures taken at five times, "
        "in the direction found first; bars: 95 % intervals over settings. "
        "Right: the smallest tau over pairs of networks that share any two "
        "hyperparameters. Measures that look at ID points alone, those with "
        "the highest tau on the exploring half first; networks of the half "
        f"`{half}`."
    )
    columns = ["measure", "time", "passes"]
    columns += [column + end for column in PANELS for end in ENDS]
    shown = [
        {column: row[column] for column in columns}
        for name in names
        for row in rows
        if row["measure"] == name
    ]
    return Exhibit("predict_times", title, caption, figure, shown)


def _draw_taus(
    axes: Axes, rows: Sequence[Row], names: Sequence[str], column: str
) -> None:
    """Draws a tau over time for each measure, with its intervals."""
    times = sorted({row["time"] for row in rows})
    for index, name in enumerate(names):
        own = [row for row in rows if row["measure"] == name]
        # Side by side at each time, since their intervals overlap.
        shift = SPREAD * (index / max(len(names) - 1, 1) - 0.5)
        tau, low, high = (
            np.array([row[column + end] for row in own], float) for end in ENDS
        )
        axes.errorbar(
            np.array([times.index(row["time"]) for row in own]) + shift,
            tau,
            (tau - low, high - tau),
            label=name,
            **{"linewidth": 0.8, "elinewidth": 1.4, "markersize": 4},
            **get_line_style(index),
        )
    axes.axhline(0.0, color="0.6", linewidth=1)
    axes.set_xticks(range(len(times)), [f"{time:.0%}" for time in times])
    axes.set_xlabel("share of the training")


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
            label=evidence.decoder_names[index],
            **get_line_style(index) | {"linestyle": "none", "markersize": 3},
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
