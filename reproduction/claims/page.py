"""The page of results and the table of all numbers."""

from __future__ import annotations

import dataclasses
import importlib
import math
import re
from collections.abc import Collection, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

from reproduction.claims.evidence import Evidence
from reproduction.claims.judge import ALL, UNTRAINED, Control, Interval, Row
from tfcomp.statistics.seed_statistics import format_rows
from tfcomp.storage.files import make_folder, write_table, write_text

FOLDER = Path(__file__).parent
TEMPLATE = FOLDER / "results.md"
PAGE = "results.md"
TABLE = "claims.csv"
NO_CONTROL = Control(Interval(), Interval())
HEAD = [
    "claim",
    "quantity",
    "the paper's networks",
    "trained on all",
    "untrained, or without the cure",
    "holds",
    "specific",
]


def list_claims() -> dict[str, ModuleType]:
    """Imports the files of claims, by their names in order, as C6."""
    claims = {}
    for path in sorted(FOLDER.glob("c[0-9][0-9]_*.py")):
        number = int(path.stem[1:3])
        module = importlib.import_module(f"reproduction.claims.{path.stem}")
        claims[f"C{number}"] = module
    return claims


def judge_claims(evidence: Evidence, names: Collection[str] = ()) -> list[Row]:
    """Judges claims; returns their rows in order.

    Args:
        evidence: As read by `read_evidence`.
        names: Of the claims, as C6; by default all.
    """
    rows = []
    for name, claim in list_claims().items():
        if names and name not in names:
            continue
        for row in claim.judge(evidence):
            named = dataclasses.replace(row, claim=name)
            rows.append(named)
    return rows


def write_report(evidence: Evidence, output: str | Path) -> list[Row]:
    """Judges all claims, and writes results.md and claims.csv.

    Args:
        evidence: As read by `read_evidence`.
        output: A folder; made if it does not exist.
    """
    import pandas as pd

    rows = judge_claims(evidence)
    folder = make_folder(Path(output))
    write_text(folder / PAGE, render_page(rows))
    table = pd.DataFrame([list_cells(row) for row in rows])
    write_table(folder / TABLE, table)
    return rows


def render_page(rows: Sequence[Row]) -> str:
    """Returns the page of results in Markdown."""
    lines = [HEAD]
    notes = []
    for name, claim in list_claims().items():
        title, _, text = (claim.__doc__ or "").partition(".\n\n")
        place, _, _ = text.partition(".\n")
        own_rows = [row for row in rows if row.claim == name]

        first = f"**{name}** {title}"
        for row in own_rows:
            if row.shown:
                lines.append([first, *_format_row(row)])
                first = name
        note = getattr(claim, "NOTE", "")
        if note and own_rows:
            place = place[0].lower() + place[1:]
            text = fill_note(note, own_rows)
            notes.append(f"- **{name}** ({place}). {text}")

    table = format_rows(lines).rstrip()
    template = TEMPLATE.read_text("utf-8")
    return template.format(table=table, notes="\n".join(notes))


def fill_note(note: str, rows: Sequence[Row]) -> str:
    """Fills numbers of rows into a text; – for those that are missing.

    Args:
        note: A text with places for `rows`.
        rows: The rows of a claim.
    """
    try:
        text = " ".join(note.split()).format(rows=rows)
        return re.sub(r"[-+]?\bnan%?", "–", text)
    except LookupError:  # a row of a threshold study that is not there
        return ""


def _format_row(row: Row) -> list[str]:
    cells = {name: _format_control(name, row) for name in row.controls}
    trained = cells.pop(ALL, "")
    holds = row.holds
    if row.bound:
        holds = f"{holds} ({row.bound})"
    number = format_interval(row.number)
    if not row.num_tried:
        number = "not run"
    if 0 < row.number.n < row.num_tried:
        number += f" of {row.num_tried}"
    return [
        f"{row.part}: {row.quantity}",
        number,
        trained,
        "; ".join(cells.values()),
        holds,
        row.specific,
    ]


def _format_control(name: str, row: Row) -> str:
    number = row.controls[name].number
    if not number.n:
        return "not measured" if len(row.others[name]) else "no fitted runs"
    text = f"{format_number(number.mean)}, n = {number.n}"
    if name in (ALL, UNTRAINED):
        return text
    return f"{name}: {text}"


def format_interval(number: Interval) -> str:
    """Formats a number, as `0.84 [0.83, 0.85], n = 19`."""
    if not number.n:
        return "not measured"
    text = format_number(number.mean)
    if not math.isnan(number.low):
        low = format_number(number.low)
        high = format_number(number.high)
        text += f" [{low}, {high}]"
    return f"{text}, n = {number.n}"


def format_number(value: float) -> str:
    """Formats a number with three decimals, or four digits if it is large."""
    if abs(value) < 100:
        return f"{value:.3f}"
    return f"{value:.4g}"


def list_cells(row: Row) -> dict[str, Any]:
    """Returns the cells of a row of claims.csv, with all digits."""
    cells: dict[str, Any] = {
        "claim": row.claim,
        "part": row.part,
        "quantity": row.quantity,
        **dataclasses.asdict(row.number),
        "tried": row.num_tried,
        "bound": row.bound,
        "holds": row.holds,
        "specific": row.specific,
    }
    compared = dict(row.controls)
    trained = compared.pop(ALL, NO_CONTROL)
    name, other = next(iter(compared.items()), ("", NO_CONTROL))
    for kind, control in {"trained_on_all": trained, "control": other}.items():
        cells[kind] = control.number.mean
        cells[f"{kind}_n"] = control.number.n
        for end in ("mean", "low", "high"):
            cells[f"less_{kind}_{end}"] = getattr(control.difference, end)
    cells["control_is"] = name
    cells["note"] = row.note
    return cells
