"""Tables and pictures of decoders on splits."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from reproduction.decoders.cells import Row, judge_expectations
from reproduction.decoders.score_plot import draw_score_table
from reproduction.decoders.splits import list_pairs
from tfcomp.figures.exhibits import figure_to_png, use_own_style
from tfcomp.statistics.seed_statistics import format_rows
from tfcomp.storage.files import write_bytes, write_csv, write_text

EXPECTED = ["data and split", "the matching decoder composes", "others fail"]
SIGNS = {"composes": "yes", "fails": "no", "undecided": "?", "not fitted": "–"}
COSTS = {"weights": "weights", "seconds": "s of training"}
OWN = "acting"
PAIRS = ["decoder", "splits", "not determined", "pairs in order"]


@use_own_style()
def write_cells(cells: Sequence[Row], output: Path) -> str:
    """Writes decoders.csv, decoders.md and decoders.png; returns Markdown."""
    _write_rounded(output / "decoders.csv", cells)
    table = pd.DataFrame(cells)
    table["data"] = table["split"].str.split().str[0]
    table["sign"] = table.apply(_format_sign, axis=1)
    texts = [
        _format_table(_pivot_signs(here).fillna(""))
        for _, here in table.groupby("data")
    ]
    texts.append(format_rows([EXPECTED, *judge_expectations(cells)]))
    text = "\n".join([*texts, _format_costs(table)])
    write_text(output / "decoders.md", text)
    signs = _pivot_signs(table)
    places: Any = table.set_index(["decoder", "split"])
    figure = draw_score_table(
        places["ood_r2"].astype(float).to_dict(),
        places["sign"].to_dict(),
        list(signs.index),
        list(map(str, signs)),
        label="OOD R² (below 0 as 0)",
        title="Which decoder composes? Mean over seeds; gray: not fitted, "
        "white: not in this comparison",
    )
    picture = figure_to_png(figure, num_colors=256, dpi=150)
    write_bytes(output / "decoders.png", picture)
    return text


def _format_sign(cell: pd.Series) -> str:
    text, mean = SIGNS[cell["verdict"]], cell["ood_r2"]
    text += "" if pd.isna(mean) else f" {mean:.2f}"
    count = f"({cell['fitted']} of {cell['seeds']})"
    return text if cell["fitted"] == cell["seeds"] else f"{text} {count}"


def _pivot_signs(table: pd.DataFrame) -> pd.DataFrame:
    """Returns signs by decoder and split; decoders that compose come first."""
    composes = (table["verdict"] == "composes").groupby(table["decoder"])
    ranks = 1000 * composes.sum() + composes.size()
    order = ranks.sort_values(ascending=False, kind="stable").index
    signs = table.pivot(index="decoder", columns="split", values="sign")
    return signs.loc[order]


def _format_costs(table: pd.DataFrame) -> str:
    """Returns mean weights and seconds of training, by kind of data."""
    means = table.groupby(["decoder", "data"])[list(COSTS)].mean().unstack()
    columns = {
        f"{data}: {words}": means[name, data]
        for data in sorted(set(table["data"]))
        for name, words in COSTS.items()
    }
    texts = pd.DataFrame(columns).map("{:,.0f}".format, "ignore").fillna("")
    return _format_table(texts)


def _format_table(table: pd.DataFrame) -> str:
    """Formats a table in Markdown, with its index as the first column."""
    head = [table.index.name, *table]
    return format_rows([head, *table.itertuples(name=None)])


def write_splits(rows: Sequence[Row], output: Path, name: str) -> str:
    """Writes a CSV, a Markdown and a PNG file; returns the Markdown."""
    if not rows:
        return ""
    _write_rounded(output / f"{name}.csv", rows)
    solved = pd.DataFrame(rows)
    splits = solved.groupby("split", sort=False)
    table = pd.DataFrame([_format_split(str(n), here) for n, here in splits])
    text = f"{_format_table(table.set_index('held out'))}\n"
    if pairs := list_pairs(solved):
        text += format_rows([PAIRS, *pairs])
    write_text(output / f"{name}.md", text)
    write_bytes(output / f"{name}.png", _draw_splits(solved))
    return f"\n{text}"


def _format_split(name: str, rows: pd.DataFrame) -> dict[str, str]:
    """Returns a row of solved.md."""
    facts, is_reference = rows.iloc[0], rows["decoder"].str.startswith("(")
    own = rows[rows["decoder"] == OWN]
    others = rows[~is_reference & (rows["decoder"] != OWN)]
    others = others.drop_duplicates("decoder").dropna(subset="r2")
    rounds, kinds, solves, best, other = "not run", "–", "", "–", "not run"
    if len(own):
        last, *before = [format_cell(row) for _, row in own.iterrows()]
        pairs = zip(("first", "second"), before, strict=False)
        looks = [f"{number} look {text}" for number, text in pairs]
        rounds, solves = "; ".join([last, *looks]), own.iloc[0]["solves"]
        r2 = own.iloc[0][["r2_certified", "r2_others"]]
        kinds = ", ".join(map(_format, r2)) if r2.fillna(0).any() else "–"
    if is_reference.any():
        found = rows.iloc[rows["r2"].where(is_reference).argmax()]
        best = f"{found['decoder'].strip('()')} {_format(found['r2'])}"
    if len(others):
        row = others.iloc[others["r2"].argmax()]
        other = f"{row['decoder']} {format_cell(row)}"
    return {
        "held out": f"`{name}`",
        "determined": f"{np.nan_to_num(facts['certified_1']):.0%}",
        "training images": _format(facts["training_images"], ",.0f"),
        "images missing": _format(facts["missing_images"], ",.0f"),
        "pixels lit": _format(facts["lit_pixels"], ".0%"),
        "best reference": best,
        OWN: rounds,
        f"{OWN} solves it": solves,
        "of determined, others": kinds,
        "best of the others": other,
    }


def format_cell(row: pd.Series) -> str:
    """Formats as `0.94 [0.91, 0.97]`, with `4 of 5` if some do not fit."""
    count = f"{row['fitted']:.0f} of {row['runs']:.0f}"
    if pd.isna(row["r2"]):
        return f"not fitted ({count})"
    text = f"{row['r2']:.2f}"
    if not pd.isna(row["r2_low"]):
        text += f" [{row['r2_low']:.2f}, {row['r2_high']:.2f}]"
    return text if row["fitted"] == row["runs"] else f"{text}, {count}"


@use_own_style()
def _draw_splits(solved: pd.DataFrame) -> bytes:
    """Returns a PNG file of all decoders and predictors on all splits."""
    shares = solved["certified_1"].fillna(0.0).map("{:.0%}".format)
    names = solved["split"].str.replace(",", ", ") + " " + shares
    latest = solved.assign(column=names).drop_duplicates(["column", "decoder"])
    r2: Any = latest.set_index(["decoder", "column"])["r2"].astype(float)
    order = sorted(
        set(latest["decoder"]),
        key=lambda row: (row.startswith("("), row != OWN, row),
    )
    figure = draw_score_table(
        r2.to_dict(),
        r2.map(_format).to_dict(),
        order,
        list(names.unique()),
        label="R² of held-out images (below 0 as 0)",
        title="Held-out combinations by the share that training determines; "
        "gray: does not fit, white: not run, in parentheses: no network",
    )
    return figure_to_png(figure, num_colors=256, dpi=110)


def _format(value: float, digits: str = ".2f") -> str:
    return "–" if value != value else format(value, digits)


def _write_rounded(path: Path, rows: Sequence[Row]) -> None:
    """Writes rows as CSV, with six digits, which all machines share."""

    def round_value(value: Any) -> Any:
        value = "" if value != value else value
        return float(f"{value:.6g}") if isinstance(value, float) else value

    write_csv(path, [{k: round_value(v) for k, v in r.items()} for r in rows])
