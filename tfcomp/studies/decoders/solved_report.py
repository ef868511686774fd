"""Tables and a picture of splits by the share that training determines."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from tfcomp.figures.exhibits import figure_to_png
from tfcomp.figures.map_plots import draw_score_table
from tfcomp.statistics.setting_table import format_rows
from tfcomp.storage.files import write_bytes, write_text
from tfcomp.studies.decoders.cells import Cell, average, write_rounded
from tfcomp.studies.decoders.solved import (
    Split,
    correlate,
    list_new,
    list_splits,
)

OWN = "acting"
FACTS = {
    "training_images": "points/id",
    "certified_1": "certificate/1/certified",
    "certified_2": "certificate/2/certified",
    "certified_3": "certificate/3/certified",
    "missing_images": "certificate/1/missing_rank",
    "lit_pixels": "coverage/pixels",
}


def write_splits(table: pd.DataFrame, output: Path) -> str:
    """Writes solved.csv, solved.md and solved.png; returns the Markdown."""
    splits = list_splits(table)
    if not splits:
        return ""
    rows = [row for split in splits for row in list_rows(split)]
    write_rounded(output / "solved.csv", rows)
    text = f"{format_splits(splits)}\n{format_law(splits)}"
    write_text(output / "solved.md", text)
    write_bytes(output / "solved.png", draw_splits(splits))
    return f"\n{text}"


def list_rows(split: Split) -> list[dict[str, Any]]:
    """Returns the numbers of solved.csv, for each decoder and predictor."""
    facts = {name: split.read(path) for name, path in FACTS.items()}
    for name in ("training_images", "missing_images"):
        number = facts[name]
        facts[name] = None if number is None else int(number)
    shared: dict[str, Any] = {"split": split.name, **facts}
    latest = [*split.latest.values()]
    latest += [cell for cells in split.rounds.values() for cell in cells[:-1]]
    rows = [shared | _describe(cell) for cell in latest]
    empty = dict.fromkeys(list(rows[0])[len(shared) :])
    return rows + [
        shared | empty | {"decoder": f"({name})", "r2": value}
        for name, value in split.predictors.items()
    ]


def _describe(cell: Cell) -> dict[str, Any]:
    """Returns the numbers of a round of a decoder."""
    estimate, r2 = cell.estimate, cell.runs["id_r2"]
    return {
        "decoder": cell.decoder,
        "first_seed": int(cell.runs["seed"].iloc[0]),
        "runs": len(cell.runs),
        "fitted": len(cell.fitted),
        "fitted_at_85": int((r2 >= 0.85).sum()),
        "fitted_at_95": int((r2 >= 0.95).sum()),
        "r2": estimate and estimate.mean,
        "r2_low": estimate and estimate.low,
        "r2_high": estimate and estimate.high,
        "r2_certified": average(cell.fitted, "r2/certified"),
        "r2_others": average(cell.fitted, "r2/others"),
    }


def format_splits(splits: Sequence[Split]) -> str:
    """Returns a row for each split, the determined ones first."""
    rows = []
    for split in splits:
        own, predictors = split.latest.get(OWN), split.predictors
        row = {
            "held out": f"`{split.name}`",
            "certified": f"{split.share:.0%}",
            "training images": _format(split.read("points/id"), ",.0f"),
            "images missing": _format(
                split.read("certificate/1/missing_rank"), ",.0f"
            ),
            "pixels lit": _format(split.read("coverage/pixels"), ".0%"),
            "nearest image": _format(predictors["nearest"]),
            "additive predictor": _format(predictors["additive"]),
            "acting": _format_rounds(split.rounds.get(OWN, ())),
            "of certified, others": _format_kinds(own),
            "best of the others": _format_best(split),
        }
        rows.append([*row.values()])
    return format_rows([list(row), *rows])


def format_law(splits: Sequence[Split]) -> str:
    """Returns how R^2 goes with the determined share, over new splits."""
    splits = list_new(splits)
    names = sorted({name for split in splits for name in split.rounds})
    rows = []
    for name in names:
        if found := correlate(splits, name):
            tau, low, high, count = found
            rows.append([name, count, f"{tau:.2f} [{low:.2f}, {high:.2f}]"])
    head = ["decoder", "splits", "Kendall's tau of R² and certified share"]
    return format_rows([head, *rows]) if rows else ""


def draw_splits(splits: Sequence[Split]) -> bytes:
    """Returns a PNG file of all decoders and predictors on all splits."""
    values, texts = {}, {}
    names = [f"{', '.join(s.name.split(','))} {s.share:.0%}" for s in splits]
    for split, column in zip(splits, names, strict=True):
        found = {name: cell.mean for name, cell in split.latest.items()}
        for name, value in split.predictors.items():
            if value is not None:
                found[f"({name})"] = value
        for name, value in found.items():
            values[name, column] = float("nan") if value is None else value
            texts[name, column] = _format(value)
    order = sorted(
        {row for row, _ in values},
        key=lambda row: (row.startswith("("), row != OWN, row),
    )
    figure = draw_score_table(
        values,
        texts,
        order,
        names,
        label="R² of held-out images (below 0 as 0)",
        title="Held-out combinations by the share that training determines; "
        "gray: does not fit, white: not run, in parentheses: no network",
    )
    return figure_to_png(figure, num_colors=256, dpi=110)


def format_cell(cell: Cell) -> str:
    """Formats as `0.94 [0.91, 0.97]`, with `4 of 5` if some do not fit."""
    count = f"{len(cell.fitted)} of {len(cell.runs)}"
    estimate = cell.estimate
    if estimate is None:
        return f"not fitted ({count})"
    text = f"{estimate.mean:.2f}"
    if estimate.low is not None:
        text += f" [{estimate.low:.2f}, {estimate.high:.2f}]"
    return text + f", {count}" * (len(cell.fitted) < len(cell.runs))


def _format_rounds(rounds: Sequence[Cell]) -> str:
    """Returns the latest round of the own decoder, and the earlier ones."""
    if not rounds:
        return "not run"
    *before, last = map(format_cell, rounds)
    names = ["first", "second"][: len(before)]
    looks = [f"{n} look {text}" for n, text in zip(names, before, strict=True)]
    return "; ".join([last, *looks])


def _format_kinds(cell: Cell | None) -> str:
    paths = ("r2/certified", "r2/others")
    kinds = [average(cell.fitted, path) for path in paths] if cell else []
    return ", ".join(map(_format, kinds)) if any(kinds) else "–"


def _format_best(split: Split) -> str:
    means = {
        name: cell.mean
        for name, cell in split.latest.items()
        if name != OWN and cell.mean is not None
    }
    if not means:
        return "not run"
    name = max(means, key=lambda name: means[name])
    return f"{name} {format_cell(split.latest[name])}"


def _format(value: float | None, digits: str = ".2f") -> str:
    return "–" if value is None else format(value, digits)
