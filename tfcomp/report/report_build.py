"""The whole report: runs in, files out."""

import dataclasses
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from tfcomp import __version__
from tfcomp.config.quiet import show_progress
from tfcomp.evaluation.ahead import computed_ahead
from tfcomp.evaluation.projector import MAX_COMPONENTS, write_projector
from tfcomp.evaluation.run_analysis import RunAnalysis
from tfcomp.figures.draw_process import Drawing, drawn_elsewhere
from tfcomp.report.explorer import explorer_fragment
from tfcomp.report.explorer_data import count_combinations
from tfcomp.report.first_screen import make_answer
from tfcomp.report.page import Section, render_page
from tfcomp.report.run_exhibits import name_values
from tfcomp.report.sections import SECTIONS, find_section, make_own_sections
from tfcomp.storage.files import write_text


def build_report(
    analyses: Sequence[RunAnalysis], folder: Path, names: Sequence[str]
) -> Path:
    """Writes the named sections and a page, and the projector data of runs."""
    for analysis in analyses:
        analysis.is_reported = "tuning" in names or "manifolds" in names
        if "explorer" in names:
            analysis.explored = analysis.for_explorer(
                count_combinations(analyses)
            )
    with computed_ahead(analyses, names) as begin, drawn_elsewhere() as drawing:
        explorer = None
        if "explorer" in names and analyses:
            explorer = begin(lambda: explorer_fragment(analyses))
        page = _build(analyses, folder, names, drawing, explorer)
    write_text(folder / "report.html", page)
    return folder / "report.html"


def _build(
    analyses: Sequence[RunAnalysis],
    folder: Path,
    names: Sequence[str],
    drawing: Drawing,
    explorer: Callable[[], str] | None,
) -> str:
    built_in = [name for name in names if SECTIONS.get(name, [""])[0]]
    made: list[Section] = []
    for name in show_progress(built_in, "report", "section", len(built_in)):
        made.append(find_section(name)(analyses))
        drawing.save(made[-1].exhibits, folder)
    own = make_own_sections(analyses, names)
    for section in own:
        drawing.save(section.exhibits, folder)
    for analysis in analyses:
        if "manifolds" in names and analysis.run.path is not None:
            write_projections(analysis)
    # Last, since it waits for all that is computed meanwhile.
    answer = make_answer(analyses, with_map=explorer is None)
    drawing.save(answer.exhibits, folder)
    fragment = explorer() if explorer else ""
    drawing.wait()
    # Built-in sections do without what the first screen shows.
    shown = {exhibit.name for exhibit in answer.exhibits}
    sections = [
        dataclasses.replace(
            section,
            exhibits=[e for e in section.exhibits if e.name not in shown],
        )
        for section in made
    ]
    notes = [
        f" {analysis.name}: {analysis.dataset.sample_note}."
        for analysis in analyses
        if analysis.dataset.sample_note
    ]
    return render_page(
        "Analysis of " + ", ".join(analysis.name for analysis in analyses),
        f"Made by tfcomp {__version__} from finished runs.{''.join(notes)}",
        answer,
        [*sections, *own],
        folder,
        fragment,
    )


def write_projections(analysis: RunAnalysis) -> None:
    """Puts the stages of a run into TensorBoard's projector."""
    analysis = analysis.for_pairs
    splits, pixels = analysis.splits, analysis.evaluation.images
    upright = analysis.dataset.first_row == "bottom"
    # TensorBoard sorts by name and opens on the first: the last stage within
    # that shows anything, since the code shows what everybody knows.
    found = {s: n.components for s, n in analysis.numbers.items()}
    inner = [s for s in [*found][1:-1] if found[s].explained.any()]
    order = dict.fromkeys([*inner[-1:], *found])
    write_projector(
        analysis.run.path,
        {
            f"{place:02d} {stage}": found[stage].features[:, :MAX_COMPONENTS]
            for place, stage in enumerate(order, 1)
        },
        {
            "split": np.where(splits.is_ood, "OOD", "ID"),
            **name_values(analysis.dataset.space, splits.grid),
        },
        np.clip(pixels if upright else pixels[:, ::-1], 0.0, 1.0),
    )
