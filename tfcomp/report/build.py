"""The whole report: runs in, files out."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from tfcomp import __version__
from tfcomp.exhibits import save_exhibit
from tfcomp.files import write_text
from tfcomp.loading import LoadedRun
from tfcomp.report.embeddings import make_embeddings
from tfcomp.report.kernels import make_kernels
from tfcomp.report.layers import make_layers
from tfcomp.report.overview import make_overview
from tfcomp.report.page import render_page
from tfcomp.report.study import Study
from tfcomp.report.superposition import make_superposition
from tfcomp.run_folder import FLAGS_FILE

SECTIONS = (
    make_overview,
    make_superposition,
    make_kernels,
    make_layers,
    make_embeddings,
)


def build_report(runs: Sequence[LoadedRun], folder: Path) -> Path:
    """Writes every exhibit and the page that shows them.

    Args:
        runs: Finished runs with different names.
        folder: Where to write.

    Returns:
        The path of the page.
    """
    studies = [Study(run) for run in runs]
    sections = []
    for make_section in SECTIONS:
        section = make_section(studies)
        for exhibit in section.exhibits:
            save_exhibit(exhibit, folder)
        sections.append(section)
    page = render_page(
        "Analysis of " + ", ".join(study.name for study in studies),
        f"Made by tfcomp {__version__} from finished runs.",
        sections,
        {run.name: (run.path / FLAGS_FILE).read_text() for run in runs},
    )
    path = folder / "report.html"
    write_text(path, page)
    return path
