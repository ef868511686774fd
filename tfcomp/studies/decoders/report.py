"""Tables and pictures of decoders on splits."""

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import product
from pathlib import Path
from statistics import mean
from typing import Any

from tfcomp.figures.exhibits import figure_to_png
from tfcomp.figures.map_plots import draw_score_table
from tfcomp.statistics.setting_table import format_rows
from tfcomp.statistics.verdicts import MIN_SEEDS
from tfcomp.storage.files import write_bytes, write_csv, write_text
from tfcomp.studies.decoders.cells import Cell, average, judge_expectations
from tfcomp.studies.decoders.splits import Split, count_ordered, list_new
from tfcomp.tables.groups import Group

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
OWN = "acting"
FACTS = {
    "training_images": "points/id",
    "certified_1": "certificate/1/certified",
    "certified_2": "certificate/2/certified",
    "certified_3": "certificate/3/certified",
    "missing_images": "certificate/1/missing_rank",
    "lit_pixels": "coverage/pixels",
}
COUNTS = ("training_images", "missing_images")
LOOKS = ("first", "second")


def write_cells(cells: Sequence[Cell], output: Path) -> str:
    """Writes decoders.csv, decoders.md and decoders.png; returns Markdown."""
    _write_rounded(output / "decoders.csv", map(_describe_cell, cells))
    expected = format_rows([EXPECTATIONS, *judge_expectations(cells)])
    text = "\n".join([*_format_verdicts(cells), expected, _format_costs(cells)])
    write_text(output / "decoders.md", text)
    names = {(cell.decoder, cell.split): cell for cell in cells}
    figure = draw_score_table(
        {key: _to_color(cell.mean) for key, cell in names.items()},
        {key: _format_sign(cell) for key, cell in names.items()},
        *_list_names(cells),
        label="OOD R² (below 0 as 0)",
        title="Which decoder composes? Mean over seeds; gray: not fitted, "
        "white: not in this comparison",
    )
    picture = figure_to_png(figure, num_colors=256, dpi=150)
    write_bytes(output / "decoders.png", picture)
    return text


def write_splits(splits: Sequence[Split], output: Path, name: str) -> str:
    """Writes a CSV, a Markdown and a PNG file; returns the Markdown."""
    if not splits:
        return ""
    rows = [row for split in splits for row in list_rows(split)]
    _write_rounded(output / f"{name}.csv", rows)
    text = f"{format_splits(splits)}\n{_format_pairs(splits)}"
    write_text(output / f"{name}.md", text)
    write_bytes(output / f"{name}.png", _draw_splits(splits))
    return f"\n{text}"


def _describe_cell(cell: Cell) -> dict[str, Any]:
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
        "seeds": len(cell.group),
        "fitted": len(fitted),
        "verdict": cell.verdict,
        "expected": cell.expected,
        "ood_r2": cell.mean,
        "ood_r2_low": low,
        "ood_r2_high": high,
        "id_r2_worst": min(fitted.get("r2/id"), default=None),
        **numbers,
        **ratios,
    }


def _format_verdicts(cells: Sequence[Cell]) -> list[str]:
    """Returns a table of verdicts with OOD R² for each kind of data."""
    tables = []
    for data in sorted({cell.data for cell in cells}):
        here = [cell for cell in cells if cell.data == data]
        texts = {(c.decoder, c.split): _format_sign(c) for c in here}
        decoders, splits = _list_names(here)
        rows = [
            [decoder, *(texts.get((decoder, split), "") for split in splits)]
            for decoder in decoders
        ]
        tables.append(format_rows([["decoder", *splits], *rows]))
    return tables


def _format_costs(cells: Sequence[Cell]) -> str:
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


def _format_sign(cell: Cell) -> str:
    text, count = SIGNS[cell.verdict], len(cell.fitted)
    if cell.mean is not None:
        text += f" {cell.mean:.2f}"
    return text + f" ({count} of {len(cell.group)})" * (count < len(cell.group))


def _list_names(cells: Sequence[Cell]) -> tuple[list[str], list[str]]:
    """Returns decoders, by how often they compose, and splits."""
    counts = Counter(cell.decoder for cell in cells)
    for cell in cells:
        counts[cell.decoder] += 1000 * (cell.verdict == "composes")
    decoders = sorted(counts, key=lambda name: (-counts[name], name))
    return decoders, sorted({cell.split for cell in cells})


def list_rows(split: Split) -> list[dict[str, Any]]:
    """Returns the rows of solved.csv, for each decoder and predictor."""
    facts = {name: split.read(path) for name, path in FACTS.items()}
    counts = {name: f and int(f) for name in COUNTS for f in [facts[name]]}
    shared: dict[str, Any] = {"split": split.name, **facts, **counts}
    cells = [*split.latest.values()]
    cells += [cell for each in split.rounds.values() for cell in each[:-1]]
    rows = [shared | _describe_round(split, cell) for cell in cells]
    empty = dict.fromkeys(list(rows[0])[len(shared) :])
    return rows + [
        shared | empty | {"decoder": f"({name})", "r2": value}
        for name, value in split.references.items()
    ]


def _describe_round(split: Split, cell: Cell) -> dict[str, Any]:
    estimate, r2 = cell.estimate, cell.group.get("r2/id")
    return {
        "decoder": cell.decoder,
        "first_seed": cell.group.seeds[0],
        "runs": len(cell.group),
        "fitted": len(cell.fitted),
        "fitted_at_85": int((r2 >= 0.85).sum()),
        "fitted_at_95": int((r2 >= 0.95).sum()),
        "r2": estimate and estimate.mean,
        "r2_low": estimate and estimate.low,
        "r2_high": estimate and estimate.high,
        "solves": split.is_solved(cell),
        "r2_certified": average(cell.fitted, "r2/certified"),
        "r2_others": average(cell.fitted, "r2/others"),
    }


def format_splits(splits: Sequence[Split]) -> str:
    """Returns a row for each split, the determined ones first."""
    rows = []
    for split in splits:
        own, references = split.latest.get(OWN), split.references
        best = max(references, key=references.__getitem__, default="")
        row = {
            "held out": f"`{split.name}`",
            "determined": f"{split.share:.0%}",
            "training images": _format(split.read("points/id"), ",.0f"),
            "images missing": _format(
                split.read("certificate/1/missing_rank"), ",.0f"
            ),
            "pixels lit": _format(split.read("coverage/pixels"), ".0%"),
            "best reference": f"{best} {_format(references.get(best))}".strip(),
            "acting": _format_rounds(split.rounds.get(OWN, ())),
            "acting solves it": split.is_solved(own) if own else "",
            "of determined, others": _format_kinds(own),
            "best of the others": _format_best(split),
        }
        rows.append([*row.values()])
    return format_rows([list(row), *rows])


def _format_pairs(splits: Sequence[Split]) -> str:
    """Returns how often R² is higher on the determined one of two splits."""
    splits = list_new(splits)
    rows = [["decoder", "splits", "not determined", "pairs in order"]]
    for name in sorted({name for split in splits for name in split.rounds}):
        known, others, ordered = count_ordered(splits, name)
        if known and others:
            pairs = f"{ordered} of {known * others}"
            rows.append([name, str(known + others), str(others), pairs])
    return format_rows(rows) if rows[1:] else ""


def _draw_splits(splits: Sequence[Split]) -> bytes:
    """Returns a PNG file of all decoders and predictors on all splits."""
    values: dict[tuple[str, str], float | None] = {}
    names = [f"{', '.join(s.name.split(','))} {s.share:.0%}" for s in splits]
    for split, column in zip(splits, names, strict=True):
        for name, cell in split.latest.items():
            values[name, column] = cell.mean
        for name, value in split.references.items():
            values[f"({name})", column] = value
    order = sorted(
        {row for row, _ in values},
        key=lambda row: (row.startswith("("), row != OWN, row),
    )
    figure = draw_score_table(
        {key: _to_color(value) for key, value in values.items()},
        {key: _format(value) for key, value in values.items()},
        order,
        names,
        label="R² of held-out images (below 0 as 0)",
        title="Held-out combinations by the share that training determines; "
        "gray: does not fit, white: not run, in parentheses: no network",
    )
    return figure_to_png(figure, num_colors=256, dpi=110)


def format_cell(cell: Cell) -> str:
    """Formats as `0.94 [0.91, 0.97]`, with `4 of 5` if some do not fit."""
    count = f"{len(cell.fitted)} of {len(cell.group)}"
    estimate = cell.estimate
    if estimate is None:
        return f"not fitted ({count})"
    text = f"{estimate.mean:.2f}"
    if estimate.low is not None:
        text += f" [{estimate.low:.2f}, {estimate.high:.2f}]"
    return text + f", {count}" * (len(cell.fitted) < len(cell.group))


def _format_rounds(rounds: Sequence[Cell]) -> str:
    """Returns the latest round of the own decoder, and the earlier ones."""
    if not rounds:
        return "not run"
    *before, last = map(format_cell, rounds)
    looks = [f"{n} look {t}" for n, t in zip(LOOKS, before, strict=False)]
    return "; ".join([last, *looks])


def _format_kinds(cell: Cell | None) -> str:
    fitted = cell.fitted if cell else Group()
    kinds = [average(fitted, f"r2/{k}") for k in ("certified", "others")]
    return ", ".join(map(_format, kinds)) if any(kinds) else "–"


def _format_best(split: Split) -> str:
    means = {
        name: cell.mean
        for name, cell in split.latest.items()
        if name != OWN and cell.mean is not None
    }
    if not means:
        return "not run"
    name = max(means, key=means.__getitem__)
    return f"{name} {format_cell(split.latest[name])}"


def _format(value: float | None, digits: str = ".2f") -> str:
    return "–" if value is None else format(value, digits)


def _to_color(value: float | None) -> float:
    return float("nan") if value is None else value


def _write_rounded(path: Path, rows: Iterable[dict[str, Any]]) -> None:
    """Writes rows as CSV, with six digits, which all machines share."""
    table = [
        {k: float(f"{v:.6g}") if isinstance(v, float) else v for k, v in items}
        for items in (row.items() for row in rows)
    ]
    write_csv(path, table)
