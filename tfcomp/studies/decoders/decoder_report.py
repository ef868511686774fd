"""Tables and a picture of decoders on splits."""

from collections import Counter
from collections.abc import Sequence
from itertools import product
from pathlib import Path
from statistics import mean
from typing import Any

from tfcomp.figures.exhibits import figure_to_png
from tfcomp.figures.map_plots import draw_score_table
from tfcomp.statistics.setting_table import format_rows
from tfcomp.statistics.verdicts import MIN_SEEDS
from tfcomp.storage.files import write_bytes, write_text
from tfcomp.studies.decoders.cells import (
    Cell,
    judge_expectations,
    write_rounded,
)

EXPECTATIONS = [
    "data and split",
    "the matching decoder composes",
    "others fail",
]
SIGNS = {"composes": "yes", "fails": "no", "undecided": "?", "not fitted": "–"}
NUMBERS = {
    "id_relative_mse": "id/relative_mse",
    "ood_relative_mse": "ood/relative_mse",
    "ood_position_accuracy": "ood/position_accuracy",
    "additive_predictor": "references/additive/ood",
    "nearest_memory": "references/nearest_id/ood",
    "weights": "train/weights",
    "seconds": "train/seconds",
}
COSTS = {"weights": "train/weights", "s of training": "train/seconds"}


def write_cells(cells: Sequence[Cell], output: Path) -> str:
    """Writes decoders.csv, decoders.md and decoders.png; returns Markdown."""
    write_rounded(output / "decoders.csv", map(describe_cell, cells))
    expected = format_rows([EXPECTATIONS, *judge_expectations(cells)])
    tables = [*format_verdicts(cells), expected, format_costs(cells)]
    text = "\n".join(tables)
    write_text(output / "decoders.md", text)
    write_bytes(output / "decoders.png", draw_cells(cells))
    return text


def describe_cell(cell: Cell) -> dict[str, Any]:
    """Returns a row of decoders.csv: means over seeds."""
    fitted, low, high = cell.fitted, None, None
    if cell.estimate and cell.estimate.count >= MIN_SEEDS:
        low, high = cell.estimate.low, cell.estimate.high
    numbers = {name: cell.average(path) for name, path in NUMBERS.items()}
    error = numbers["ood_relative_mse"]
    ratios = {
        f"over_{name}": error / other if error is not None and other else None
        for name, other in (
            ("additive", numbers["additive_predictor"]),
            ("nearest", numbers["nearest_memory"]),
        )
    }
    return {
        "split": cell.split,
        "decoder": cell.decoder,
        "seeds": len(cell.runs),
        "fitted": len(fitted),
        "verdict": cell.verdict,
        "expected": cell.expected,
        "ood_r2": cell.mean,
        "ood_r2_low": low,
        "ood_r2_high": high,
        "id_r2_worst": min(fitted["id_r2"], default=None),
        **numbers,
        **ratios,
    }


def format_verdicts(cells: Sequence[Cell]) -> list[str]:
    """Returns a table of verdicts with OOD R^2 for each kind of data."""
    tables = []
    for data in sorted({cell.data for cell in cells}):
        here = [cell for cell in cells if cell.data == data]
        texts = {(c.decoder, c.split): _format_cell(c) for c in here}
        decoders, splits = _list_names(here)
        rows = [
            [decoder, *(texts.get((decoder, split), "") for split in splits)]
            for decoder in decoders
        ]
        tables.append(format_rows([["decoder", *splits], *rows]))
    return tables


def format_costs(cells: Sequence[Cell]) -> str:
    """Returns mean weights and seconds of training, by kind of data."""
    pairs = list(product(sorted({cell.data for cell in cells}), COSTS))
    rows = [["decoder", *(f"{data}: {name}" for data, name in pairs)]]
    for decoder in sorted({cell.decoder for cell in cells}):
        row = [decoder]
        for data, name in pairs:
            found = [
                cell.average(COSTS[name])
                for cell in cells
                if (cell.decoder, cell.data) == (decoder, data)
            ]
            known = [number for number in found if number is not None]
            row.append(f"{mean(known):,.0f}" if known else "")
        rows.append(row)
    return format_rows(rows)


def draw_cells(cells: Sequence[Cell]) -> bytes:
    """Returns a PNG file with all cells as colors."""
    keys = {(cell.decoder, cell.split): cell for cell in cells}
    means = {
        k: c.estimate.mean if c.estimate else None for k, c in keys.items()
    }
    figure = draw_score_table(
        {k: float("nan") if m is None else m for k, m in means.items()},
        {key: _format_cell(cell) for key, cell in keys.items()},
        *_list_names(cells),
        label="OOD R² (below 0 as 0)",
        title="Which decoder composes? Mean over seeds; gray: not fitted, "
        "white: not in this comparison",
    )
    return figure_to_png(figure, num_colors=256, dpi=150)


def _format_cell(cell: Cell) -> str:
    text, count = SIGNS[cell.verdict], len(cell.fitted)
    if cell.estimate:
        text += f" {cell.estimate.mean:.2f}"
    return text + f" ({count} of {len(cell.runs)})" * (count < len(cell.runs))


def _list_names(cells: Sequence[Cell]) -> tuple[list[str], list[str]]:
    """Returns decoders, by how often they compose, and splits."""
    counts = Counter(cell.decoder for cell in cells)
    for cell in cells:
        counts[cell.decoder] += 1000 * (cell.verdict == "composes")
    decoders = sorted(counts, key=lambda name: (-counts[name], name))
    return decoders, sorted({cell.split for cell in cells})
