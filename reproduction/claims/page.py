"""The page of results and the table of all numbers."""

from __future__ import annotations

import dataclasses
import importlib
import math
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

from reproduction.claims.evidence import Evidence
from reproduction.claims.judge import ALL, UNTRAINED, Control, Interval, Row
from tfcomp.storage.files import make_folder, write_csv, write_text

FOLDER = Path(__file__).parent
TEMPLATE = FOLDER / "results.md"
PAGE, TABLE = "results.md", "claims.csv"
HEAD = (
    "claim",
    "quantity",
    "the paper's networks",
    "trained on all",
    "untrained, or without the cure",
    "holds",
    "specific",
)


def list_claims() -> Iterator[ModuleType]:
    """Imports the files of claims, in the order of their numbers."""
    for path in sorted(FOLDER.glob("c[0-9][0-9]_*.py")):
        yield importlib.import_module(f"reproduction.claims.{path.stem}")


def get_name(claim: ModuleType) -> str:
    """Returns the name of a claim, as C6."""
    stem = claim.__name__.rpartition(".")[2]
    return f"C{int(stem[1:3])}"


def read_docstring(claim: ModuleType) -> tuple[str, str, str]:
    """Returns title, place and quoted sentence of a claim."""
    title, _, text = (claim.__doc__ or "").strip().partition("\n\n")
    place, _, quote = text.partition('"')
    quote = " ".join(quote.rstrip('"\n ').split())
    return title.rstrip("."), " ".join(place.split()).rstrip("."), quote


def judge_claims(evidence: Evidence) -> list[Row]:
    """Judges all claims; returns their rows in order."""
    rows = []
    for claim in list_claims():
        name = get_name(claim)
        rows += [
            dataclasses.replace(row, claim=name)
            for row in claim.judge(evidence)
        ]
    return rows


def write_report(evidence: Evidence, output: str | Path) -> list[Row]:
    """Judges all claims, and writes results.md and claims.csv.

    Args:
        evidence: As read by `read_evidence`.
        output: A folder; made if it does not exist.
    """
    rows = judge_claims(evidence)
    folder = make_folder(Path(output))
    write_text(folder / PAGE, render_page(rows))
    write_csv(folder / TABLE, [list_cells(row) for row in rows])
    return rows


def render_page(rows: Sequence[Row]) -> str:
    """Returns the page of results in Markdown."""
    lines = [_join(HEAD), _join(["---"] * len(HEAD))]
    notes = []
    for claim in list_claims():
        own_rows = [row for row in rows if row.claim == get_name(claim)]
        lines += _list_lines(claim, own_rows)
        notes += _list_notes(claim, own_rows)

    text = TEMPLATE.read_text("utf-8")
    return text.format(table="\n".join(lines), notes="\n\n".join(notes))


def _list_lines(claim: ModuleType, rows: Sequence[Row]) -> list[str]:
    """Formats the rows that the page shows; the first one has the title."""
    name = get_name(claim)
    title = read_docstring(claim)[0]
    head = f"**{name}** {title}"

    lines = []
    for row in rows:
        if row.shown:
            lines.append(_join([head, *_format_row(row)]))
            head = name
    return lines


def _list_notes(claim: ModuleType, rows: Sequence[Row]) -> list[str]:
    """Formats what a claim says below the table, if it says anything."""
    note = getattr(claim, "NOTE", "")
    if not note or not rows:
        return []
    place = read_docstring(claim)[1]
    place = place[0].lower() + place[1:]
    return [f"**{get_name(claim)}** ({place}). {fill_note(note, rows)}"]


def fill_note(note: str, rows: Sequence[Row]) -> str:
    """Fills numbers of rows into a text; - for those that are missing."""
    try:
        text = " ".join(note.split()).format(rows=rows)
        return re.sub(r"[-+]?\bnan%?", "–", text)
    except LookupError:  # a row of a threshold study that is not there
        return ""


def _join(cells: Sequence[str]) -> str:
    escaped = [cell.replace("|", "\\|") for cell in cells]
    return f"| {' | '.join(escaped)} |"


def _format_row(row: Row) -> list[str]:
    controls = dict(row.controls)
    trained = controls.pop(ALL, None)
    others = [
        _format_control(name, control) for name, control in controls.items()
    ]
    number = format_interval(row.number)
    if number and row.number.n < row.tried:
        number += f" of {row.tried}"
    return [
        f"{row.part}: {row.quantity}",
        number,
        "" if trained is None else _format_control(ALL, trained),
        "; ".join(others),
        f"{row.holds} ({row.bound})" if row.bound else row.holds,
        row.specific,
    ]


def _format_control(name: str, control: Control) -> str:
    if not control.number.n:
        return "no fitted runs"
    text = f"{format_number(control.number.mean)}, n = {control.number.n}"
    return text if name in (ALL, UNTRAINED) else f"{name}: {text}"


def format_interval(number: Interval) -> str:
    """Formats a number, as `0.84 [0.83, 0.85], n = 19`."""
    if not number.n:
        return ""
    text = format_number(number.mean)
    if not math.isnan(number.low):
        ends = map(format_number, (number.low, number.high))
        text += f" [{', '.join(ends)}]"
    return f"{text}, n = {number.n}"


def format_number(value: float) -> str:
    """Formats a number with three decimals, or four digits if it is large."""
    return f"{value:.3f}" if abs(value) < 100 else f"{value:.4g}"


def list_cells(row: Row) -> dict[str, Any]:
    """Returns the cells of a row of claims.csv, with all digits."""
    cells: dict[str, Any] = {
        "claim": row.claim,
        "part": row.part,
        "quantity": row.quantity,
        **dataclasses.asdict(row.number),
        "tried": row.tried,
        "bound": row.bound,
        "holds": row.holds,
        "specific": row.specific,
    }
    kinds: dict[str, Control] = {}
    for name, control in row.controls.items():
        kinds["trained_on_all" if name == ALL else "control"] = control
    for kind in ("trained_on_all", "control"):
        control = kinds.get(kind, Control(Interval(), Interval()))
        cells[kind] = control.number.mean
        cells[f"{kind}_n"] = control.number.n
        for end in ("mean", "low", "high"):
            value = getattr(control.difference, end)
            cells[f"less_{kind}_{end}"] = value
    others = [name for name in row.controls if name != ALL]
    cells["control_is"] = ", ".join(others)
    cells["note"] = row.note
    return {
        name: None if isinstance(cell, float) and math.isnan(cell) else cell
        for name, cell in cells.items()
    }
