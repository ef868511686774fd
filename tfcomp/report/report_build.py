"""The whole report: runs in, files out."""

import dataclasses
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from tfcomp import __version__
from tfcomp.config.quiet import show_progress
from tfcomp.evaluation.ahead import computed_ahead
from tfcomp.evaluation.projector import MAX_COMPONENTS, write_projector
from tfcomp.evaluation.study import Study
from tfcomp.figures.draw_process import Drawing, drawn_elsewhere
from tfcomp.report.explorer import explorer_fragment
from tfcomp.report.explorer_data import count_combinations
from tfcomp.report.first_screen import make_answer
from tfcomp.report.page import Section, render_page
from tfcomp.report.run_exhibits import name_values
from tfcomp.report.sections import SECTIONS, find_section, make_own_sections
from tfcomp.storage.files import write_text


def build_report(
    studies: Sequence[Study], folder: Path, names: Sequence[str]
) -> Path:
    """Writes the named sections and a page, and the projector data of runs."""
    for study in studies:
        study.is_reported = "tuning" in names or "manifolds" in names
        if "explorer" in names:
            study.explored = study.explore(count_combinations(studies))
    with computed_ahead(studies, names) as begin, drawn_elsewhere() as drawing:
        explorer = None
        if "explorer" in names and studies:
            explorer = begin(lambda: explorer_fragment(studies))
        page = _build(studies, folder, names, drawing, explorer)
    write_text(folder / "report.html", page)
    return folder / "report.html"


def _build(
    studies: Sequence[Study],
    folder: Path,
    names: Sequence[str],
    drawing: Drawing,
    explorer: Callable[[], str] | None,
) -> str:
    built_in = [name for name in names if SECTIONS.get(name, [""])[0]]
    made: list[Section] = []
    for name in show_progress(built_in, "report", "section", len(built_in)):
        made.append(find_section(name)(studies))
        drawing.save(made[-1].exhibits, folder)
    own = make_own_sections(studies, names)
    for section in own:
        drawing.save(section.exhibits, folder)
    for study in studies:
        if "manifolds" in names and study.run.path is not None:
            write_projections(study)
    # Last, since it waits for all that is computed meanwhile.
    answer = make_answer(studies, with_map=explorer is None)
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
        f" {study.name}: {study.dataset.sample_note}."
        for study in studies
        if study.dataset.sample_note
    ]
    return render_page(
        "Analysis of " + ", ".join(study.name for study in studies),
        f"Made by tfcomp {__version__} from finished runs.{''.join(notes)}",
        answer,
        [*sections, *own],
        folder,
        fragment,
    )


def write_projections(study: Study) -> None:
    """Puts the stages of a run into TensorBoard's projector."""
    study = study.few
    splits, pixels = study.splits, study.evaluation.images
    upright = study.dataset.first_row == "bottom"
    # TensorBoard sorts by name and opens on the first: the last stage within
    # that shows anything, since the code shows what everybody knows.
    found = {s: n.components for s, n in study.numbers.items()}
    inner = [s for s in [*found][1:-1] if found[s].explained.any()]
    order = dict.fromkeys([*inner[-1:], *found])
    write_projector(
        study.run.path,
        {
            f"{place:02d} {stage}": found[stage].features[:, :MAX_COMPONENTS]
            for place, stage in enumerate(order, 1)
        },
        {
            "split": np.where(splits.is_ood, "OOD", "ID"),
            **name_values(study.dataset.space, splits.grid),
        },
        np.clip(pixels if upright else pixels[:, ::-1], 0.0, 1.0),
    )
