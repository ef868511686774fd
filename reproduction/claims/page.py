"""The page of results and the table of all numbers."""

from __future__ import annotations

import csv
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
# Numbers that the evidence lacks, of one published network each.
PUBLISHED = FOLDER / "published.csv"
PAGE = "results.md"
TABLE = "claims.csv"
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
    rows = judge_claims(evidence)
    folder = make_folder(Path(output))
    write_text(folder / PAGE, render_page(rows))
    write_csv(folder / TABLE, [list_cells(row) for row in rows])
    return rows


def render_page(rows: Sequence[Row]) -> str:
    """Returns the page of results in Markdown."""
    rule = ["---"] * len(HEAD)
    lines = [_join(HEAD), _join(rule)]
    notes = []
    for claim in list_claims():
        name = get_name(claim)
        own_rows = [row for row in rows if row.claim == name]
        lines += _list_lines(claim, own_rows)
        notes += _list_notes(claim, own_rows)

    text = TEMPLATE.read_text("utf-8")
    return text.format(
        table="\n".join(lines),
        notes="\n".join(notes),
        published=_format_published(),
    )


def _format_published() -> str:
    """Formats the table of published networks."""
    with open(PUBLISHED, encoding="utf-8", newline="") as file:
        head, *rows = csv.reader(file)
    table = [head, ["---"] * len(head), *rows]
    return "\n".join(_join(row) for row in table)


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
    name = get_name(claim)
    _, place, _ = read_docstring(claim)
    place = place[0].lower() + place[1:]
    text = fill_note(note, rows)
    return [f"- **{name}** ({place}). {text}"]


def fill_note(note: str, rows: Sequence[Row]) -> str:
    """Fills numbers of rows into a text; - for those that are missing.

    Args:
        note: A text with places for `rows`.
        rows: The rows of a claim.
    """
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
    trained_text = ""
    if trained is not None:
        trained_text = _format_control(ALL, trained)
    others = []
    for name, control in controls.items():
        others.append(_format_control(name, control))
    holds = row.holds
    if row.bound:
        holds = f"{holds} ({row.bound})"
    number = format_interval(row.number)
    if number and row.number.n < row.tried:
        number += f" of {row.tried}"
    return [
        f"{row.part}: {row.quantity}",
        number,
        trained_text,
        "; ".join(others),
        holds,
        row.specific,
    ]


def _format_control(name: str, control: Control) -> str:
    if not control.number.n:
        return "no fitted runs"
    text = f"{format_number(control.number.mean)}, n = {control.number.n}"
    if name in (ALL, UNTRAINED):
        return text
    return f"{name}: {text}"


def format_interval(number: Interval) -> str:
    """Formats a number, as `0.84 [0.83, 0.85], n = 19`."""
    if not number.n:
        return ""
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
        "tried": row.tried,
        "bound": row.bound,
        "holds": row.holds,
        "specific": row.specific,
    }
    kinds: dict[str, Control] = {}
    others = []
    for name, control in row.controls.items():
        if name == ALL:
            kinds["trained_on_all"] = control
        else:
            kinds["control"] = control
            others.append(name)
    for kind in ("trained_on_all", "control"):
        control = kinds.get(kind, Control(Interval(), Interval()))
        cells[kind] = control.number.mean
        cells[f"{kind}_n"] = control.number.n
        for end in ("mean", "low", "high"):
            value = getattr(control.difference, end)
            cells[f"less_{kind}_{end}"] = value
    cells["control_is"] = ", ".join(others)
    cells["note"] = row.note
    for name, cell in cells.items():
        if isinstance(cell, float) and math.isnan(cell):
            cells[name] = None
    return cells
