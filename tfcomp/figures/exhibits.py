"""Exhibits: a figure, the numbers behind it, and a caption."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from dataclasses import field
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

from tfcomp.figures import figure_to_pdf
from tfcomp.figures import figure_to_png
from tfcomp.storage.files import write_csv


@dataclass(frozen=True)
class Exhibit:
    """One result to show.

    Attributes:
        name: File name without ending.
        title: A heading.
        caption: What is plotted, in which units, for which points.
        figure: The picture; None for a table alone.
        rows: The numbers, one dictionary a row, all with the same keys.
    """

    name: str
    title: str
    caption: str
    figure: Figure | None = None
    rows: Sequence[dict[str, Any]] = field(default_factory=list)


def save_exhibit(exhibit: Exhibit, folder: Path) -> list[Path]:
    """Writes `<name>.png` and `.pdf` of the figure and `.csv` of the rows.

    Args:
        exhibit: What to write; what it lacks is left out.
        folder: Where to write; it is made if it does not exist.

    Returns:
        The files that were written.
    """
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    if exhibit.figure is not None:
        image = folder / f"{exhibit.name}.png"
        image.write_bytes(figure_to_png(exhibit.figure))
        vector = folder / f"{exhibit.name}.pdf"
        vector.write_bytes(figure_to_pdf(exhibit.figure))
        written += [image, vector]
    if exhibit.rows:
        table = folder / f"{exhibit.name}.csv"
        write_csv(table, exhibit.rows)
        written.append(table)
    return written
