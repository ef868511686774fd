"""Exhibits: a figure, the numbers behind it, and a caption."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

from tfcomp.figures.render import figure_to_pdf, figure_to_png
from tfcomp.storage.files import write_bytes, write_csv


@dataclass(frozen=True)
class Exhibit:
    """One result to show.

    Attributes:
        name: File name without ending.
        caption: What is plotted, in which units, for which points.
        figure: The picture; None for a table alone.
        rows: The numbers, one dictionary a row, all with the same keys.
    """

    name: str
    title: str
    caption: str
    figure: Figure | None = None
    rows: Sequence[dict[str, Any]] = field(default_factory=list)


def save_exhibit(exhibit: Exhibit, folder: Path) -> None:
    """Writes `<name>.png` and `.pdf` of the figure and `.csv` of the rows.

    What the exhibit lacks is left out; the folder is made if need be.
    """
    folder.mkdir(parents=True, exist_ok=True)
    name, figure = exhibit.name, exhibit.figure
    if figure is not None:
        write_bytes(folder / f"{name}.png", figure_to_png(figure))
        write_bytes(folder / f"{name}.pdf", figure_to_pdf(figure))
    if exhibit.rows:
        write_csv(folder / f"{name}.csv", exhibit.rows)
