"""The table of all numbers is the declarations.

With `UPDATE_PAGES=1` in the environment, the page is written.
"""

import os

from tests.docs.page_blocks import ROOT
from tfcomp.evaluation.metrics import list_metrics
from tfcomp.statistics.metric import Metric

PAGE = ROOT / "docs" / "outputs.md"
BEGIN = "<!-- made from the declarations by tests/docs -->\n"
HEAD = "| name | what it is | range | unit | better |\n|---|---|---|---|---|\n"
TITLES = {
    ("image",): "Scores of images",
    ("stage", "stages"): "Numbers of stages",
    ("run",): "Numbers of runs",
}


def format_row(measure: Metric) -> str:
    limits = "" if str(measure.limits) == "(-inf, inf)" else measure.limits
    about = measure.about.replace("|", "\\|")
    cells = (
        f"`{measure.name}`",
        f"**{measure.label}**: {about}",
        f"{limits}",
        measure.unit,
        measure.better or "",
    )
    return f"| {' | '.join(cells)} |\n"


def format_tables() -> str:
    tables = [
        f"\n### {title}\n\n{HEAD}"
        + "".join(format_row(m) for m in list_metrics(*of) if not m.is_user)
        for of, title in TITLES.items()
    ]
    return "".join(tables)


def test_the_page_is_what_is_declared() -> None:
    start, _, shown = PAGE.read_text("utf-8").partition(BEGIN)
    if "UPDATE_PAGES" in os.environ:
        PAGE.write_text(f"{start}{BEGIN}{format_tables()}", "utf-8")
    else:
        assert shown == format_tables()
