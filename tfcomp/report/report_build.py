"""Builds a report: the first screen, the sections, and the page."""

import dataclasses
import itertools
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tfcomp import __version__
from tfcomp.config.errors import ConfigError
from tfcomp.config.process import show_progress
from tfcomp.datasets import Dataset, solvable
from tfcomp.datasets.notes import (
    describe_copies,
    list_factors,
)
from tfcomp.figures import pictures
from tfcomp.figures.exhibits import Exhibit, save_exhibit, use_own_style
from tfcomp.figures.projector import write_projections
from tfcomp.metrics.registry import SUBSET_WORDS, list_metrics
from tfcomp.metrics.run_analysis import RunAnalysis
from tfcomp.report import (
    output_section,
    score_table,
    stage_section,
    verbalize,
)
from tfcomp.report.explorer import explorer_fragment
from tfcomp.report.page import (
    Answer,
    Row,
    Section,
    choose_sections,
    describe_runs,
    describe_vector_scores,
    list_points,
    make_exhibit,
    make_section,
    make_user_sections,
    render_page,
)
from tfcomp.storage.files import check_folder, make_folder, write_text

PIXEL_COVERAGE = (
    "; and of the pixels that vary over all images, since a decoder with free "
    "parameters for each pixel cannot learn the other pixels"
)
NUM_HELD_OUT = 5  # of the points on the first screen
MAX_TITLE = 3  # settings
# Flags that the table always has, beside flags in which runs differ.
SETTINGS = "dataset encoding model depth width epochs seed".split()
# Names in the table of coverage, and in the certificates of `metrics.json`.
CERTIFICATE = {
    "certified": "certified",
    "missing": "missing_rank",
    "noise": "noise_mean",  # older runs lack it
}


@use_own_style()
def build_report(
    analyses: Sequence[RunAnalysis],
    folder: Path,
    sections: str | Sequence[str] = (),
) -> list[Path]:
    """Writes a report and projector data.

    Args:
        analyses: The runs and models to compare.
        folder: The folder of the page, its pictures and tables.
        sections: Names of sections; by default the usual ones.

    Returns:
        All files, the page first.

    Raises:
        ConfigError: If there is no such section, the folder cannot be written,
            or names of runs are missing or not unique.
    """
    check_folder("output", str(folder))
    names = choose_sections(sections)
    analyses = _name_runs(analyses)
    make_folder(folder)

    parts = _make_sections(analyses, names)
    explorer = ""
    if "explorer" in names:
        explorer = explorer_fragment(analyses)
    scored = score_table.score_runs(analyses, folder)
    answer = make_answer(analyses, scored)
    if "manifolds" in names:
        for analysis in analyses:
            write_projections(analysis)

    exhibits = list(answer.exhibits)
    for section in parts:
        exhibits += section.exhibits
    files = []
    for exhibit in show_progress(exhibits, "drawing", "exhibit", len(exhibits)):
        files += save_exhibit(exhibit, folder)

    page = folder / "report.html"
    text = render_page(
        title=f"Analysis of {_describe_settings(analyses)}",
        subtitle=_describe_data(analyses),
        answer=answer,
        sections=parts,
        folder=folder,
        explorer=explorer,
    )
    write_text(page, text)
    return [page, *files]


def _name_runs(analyses: Sequence[RunAnalysis]) -> list[RunAnalysis]:
    """Names runs for a report; ConfigError unless their files would differ."""
    analyses = verbalize.rename_runs(analyses)
    names = [analysis.name for analysis in analyses]
    files = set(map(verbalize.to_file_name, names))
    if not names or len(files) < len(names):
        rule = "must be at least one, with names of different letters"
        raise ConfigError("models", rule, names)
    return analyses


def _make_sections(
    analyses: Sequence[RunAnalysis],
    names: Sequence[str],
) -> list[Section]:
    built_in = [name for name in names if name in MAKERS]
    progress = show_progress(built_in, "report", "section", len(built_in))
    sections = [MAKERS[name](analyses) for name in progress]
    sections += make_user_sections(analyses, names)
    if len(analyses) == 1:
        name = analyses[0].name
        return [_drop_name(section, name) for section in sections]
    return sections


def _drop_name(section: Section, name: str) -> Section:
    """Leaves out the name before a finding, for a page of one run."""
    finding = section.finding.removeprefix(f"{name}: ")
    finding = finding[:1].upper() + finding[1:]
    return dataclasses.replace(section, finding=finding)


def _describe_settings(analyses: Sequence[RunAnalysis]) -> str:
    settings = list(dict.fromkeys(run.setting for run in analyses))
    named = settings[:MAX_TITLE]
    if len(settings) > MAX_TITLE:
        named.append(f"{len(settings) - MAX_TITLE} more")
    text = "; ".join(named)
    if len(settings) < len(analyses):
        text += f" ({len(analyses)} runs)"
    return text


def _describe_data(analyses: Sequence[RunAnalysis]) -> str:
    flags = []
    regions: dict[str, None] = {}
    for analysis in analyses:
        regions[analysis.dataset.region.spec] = None
        if analysis.run.path is not None:
            flags.append(analysis.run.config.identity())
    text = f"Held out {'; '.join(regions)}."
    if len(flags) == len(analyses):
        text = verbalize.describe_common(flags)
    text += f" Made by tfcomp {__version__}."
    for analysis in analyses:
        for note in analysis.dataset.list_notes():
            text += f" {analysis.name}: {note}."
    return text.strip()


def make_answer(
    analyses: Sequence[RunAnalysis], scored: Sequence[score_table.ScoredRun]
) -> Answer:
    """Makes the first screen.

    Args:
        analyses: The runs.
        scored: Their errors, in the same order.
    """
    layers = stage_section.list_table(analyses, "layers")
    sentences = [describe_runs(layers, stage_section.describe_sums)]
    if len(analyses) > 1:
        table = score_table.make_table(scored)
        sentences.append(score_table.describe_fits(scored))
        configs = [a.run.config for a in analyses if a.run.path is not None]
        sentences.append(verbalize.describe_confounds(configs))
    else:
        (analysis,) = analyses
        table = _make_scores(analysis)
        if analysis.dataset.is_pixels:
            sentences.append(_describe_images(analysis))
    exhibits = [table]
    for group in group_runs(analyses):
        exhibits.append(make_samples(group))
    return Answer(list(filter(None, sentences)), exhibits)


def group_runs(analyses: Sequence[RunAnalysis]) -> list[list[RunAnalysis]]:
    """Groups runs that have the same factors, region and true images."""
    groups: dict[tuple, list[RunAnalysis]] = {}
    for analysis in analyses:
        data = analysis.dataset
        truth = hash(analysis.evaluation.truth.tobytes())
        key = (data.space, data.region.spec, truth)
        groups.setdefault(key, []).append(analysis)
    return list(groups.values())


def _describe_images(analysis: RunAnalysis) -> str:
    """Describes the scores of one run in a sentence."""
    data = analysis.dataset
    points = {name: int(rows.sum()) for name, rows in data.subsets.items()}
    metrics = {  # as in a `metrics.json`
        **analysis.evaluation.scores,
        "points": points,
        "coverage": solvable.measure_coverage(data),
        "copies": data.copies.summary,
        "reference": data.reference_label,
    }
    return verbalize.describe_scores(metrics)


def _make_scores(analysis: RunAnalysis) -> Exhibit:
    """Makes the table of one run: its errors beside other predictors'."""
    data = analysis.dataset
    scores = analysis.evaluation.scores
    errors: dict[str, Any] = {
        analysis.name: {s: scores[s]["relative_mse"] for s in scores},
        data.reference_name: dict.fromkeys(scores, 1.0),
    }
    example = "image" if data.is_pixels else "embedding"
    predictors = verbalize.list_references(
        analysis.references,
        example=example,
    )
    for name, text in predictors.items():
        errors[text] = analysis.references[name]
    rows = []
    for name, numbers in errors.items():
        row = {"predictor": name}
        for subset, words in SUBSET_WORDS.items():
            row[words] = numbers.get(subset)
        rows.append(row)
    return make_exhibit(
        "scores",
        rows=rows,
        vectors="" if data.is_pixels else _explain_vectors(data),
        reference=data.reference_name,
    )


def _explain_vectors(data: Dataset) -> str:
    """Explains what pictures show of embeddings, or of images."""
    if data.is_pixels:
        return "Pixels are shown from 0 to 1."
    return (
        "Pictures are embeddings, shown by the nearest item's picture, else in "
        "shades of gray; outputs are sums of parts that are fitted to ID."
    )


def make_samples(analyses: Sequence[RunAnalysis]) -> Exhibit:
    """Shows eight points, five held out, of the first run of each setting."""
    by_setting: dict[str, RunAnalysis] = {}
    for analysis in analyses:
        by_setting.setdefault(analysis.setting, analysis)
    splits = analyses[0].splits
    ood_rows = np.flatnonzero(splits.is_ood)
    ood_rows = pictures.choose_spread(ood_rows, NUM_HELD_OUT)
    num_id = pictures.SHOWN_SAMPLES - len(ood_rows)
    id_rows = np.flatnonzero(splits.is_id)
    id_rows = pictures.choose_spread(id_rows, num_id)
    return make_output_rows(
        list(by_setting.values()),
        rows=np.concatenate([id_rows, ood_rows]),
        name="samples",
        title="Samples",
    )


def make_output_rows(
    analyses: Sequence[RunAnalysis],
    labels: Sequence[str] = (),
    *,
    rows: np.ndarray | None = None,
    name: str = "held_out_rows",
    title: str = "Held-out positions",
) -> Exhibit:
    """Shows the truth, then a row for each run, with scores of each truth.

    Args:
        analyses: Runs on the same data.
        labels: Labels of the runs, by default their names.
        rows: The points that are shown, by default a spread of held-out ones.
        name: How the name of the files begins.
        title: The heading, before the region.
    """
    first = analyses[0]
    data = first.dataset
    if rows is None:
        rows = np.flatnonzero(first.splits.is_ood)
        rows = pictures.choose_spread(rows)
    labels = labels or [analysis.name for analysis in analyses]
    labeled = {}
    for label, analysis in zip(labels, analyses, strict=True):
        labeled[label] = analysis.evaluation
    return make_exhibit(
        "samples",
        pictures.picture_rows(data, labeled, rows, with_split=True),
        _list_scores(analyses),
        name=f"{name}_{verbalize.to_file_name(first.name)}",
        heading=title,
        region=data.region.spec,
        vectors=_explain_vectors(data),
    )


def _list_scores(analyses: Sequence[RunAnalysis]) -> list[Row]:
    rows = []
    for analysis in analyses:
        for subset, scores in analysis.evaluation.scores.items():
            row = {"run": analysis.name, "subset": subset}
            rows.append(row | scores)
    return rows


def make_errors(analyses: Sequence[RunAnalysis]) -> Section:
    """Shows errors by combination, and all scores."""
    definitions = []
    for metric in list_metrics("image"):
        text = f"{metric.name}: {metric.about}"
        if metric.unit:
            text += f", in {metric.unit}"
        definitions.append(f"{text}.")
    scores = " ".join(definitions)
    if not any(analysis.dataset.is_pixels for analysis in analyses):
        scores = describe_vector_scores()
    untrained = []
    for analysis in analyses:
        errors = analysis.run.metrics.get("untrained")
        if errors:
            untrained.append({"run": analysis.name, **errors})
    exhibits = [
        *make_landscapes(analyses),
        make_exhibit(
            "all_scores",
            rows=_list_scores(analyses),
            scores=scores,
        ),
        make_exhibit("untrained", rows=untrained),
    ]
    return make_section("errors", exhibits)


def make_landscapes(analyses: Sequence[RunAnalysis]) -> list[Exhibit]:
    """Maps errors: an exhibit for runs with the same factors and region."""
    mapped = [analysis for analysis in analyses if analysis.has_map]
    exhibits = []
    for group in group_runs(mapped):
        errors = {}
        for analysis in group:
            errors[analysis.name] = analysis.for_maps.error_ratio
        first = group[0].for_maps
        data = first.dataset
        figure = pictures.picture_errors(data, errors)
        exhibit = make_exhibit(
            "landscape",
            figure,
            list_points(first, errors),
            name=f"landscape_{verbalize.to_file_name(first.name)}",
            reference=data.reference_name,
            planes=pictures.describe_planes(data),
        )
        exhibits.append(exhibit)
    return exhibits


def make_runs(analyses: Sequence[RunAnalysis]) -> Section:
    """Shows settings, coverage and flags."""
    settings = _list_settings(analyses)
    coverage = []
    texts = {}
    for analysis in analyses:
        coverage.append(_measure_coverage(analysis))
        texts[analysis.name] = analysis.run.description
    pixels = ""
    if any(analysis.dataset.is_pixels for analysis in analyses):
        pixels = PIXEL_COVERAGE
    tables = [
        make_exhibit("settings", rows=settings),
        make_exhibit("factors", rows=_list_factors(analyses)),
        make_exhibit("coverage", rows=coverage, pixels=pixels),
    ]
    finding = verbalize.describe_common(settings)
    return make_section("runs", tables, finding, texts)


def _list_factors(analyses: Sequence[RunAnalysis]) -> list[Row]:
    """Lists factors, of runs on the same ones once."""
    rows: list[Row] = []
    spaces = []
    for analysis in analyses:
        space = analysis.dataset.space
        if space in spaces:
            continue
        spaces.append(space)
        for row in list_factors(analysis.dataset):
            rows.append({"run": analysis.name, **row})
    return rows


def _list_settings(analyses: Sequence[RunAnalysis]) -> list[Row]:
    """Lists the main settings, and those in which runs differ."""
    flags: list[dict[str, Any]] = []
    for analysis in analyses:
        flags.append({})
        if analysis.run.path is not None:
            flags[-1] = analysis.run.config.identity()
    names = []
    for name in dict.fromkeys(itertools.chain.from_iterable(flags)):
        values = {str(run_flags.get(name)) for run_flags in flags}
        if name in SETTINGS or len(values) > 1:
            names.append(name)

    rows = []
    for analysis, run_flags in zip(analyses, flags, strict=True):
        row = {"run": analysis.name, "held out": analysis.dataset.region.spec}
        for name in names:
            row[name] = run_flags.get(name)
        rows.append(row)
    return rows


def _measure_coverage(analysis: RunAnalysis) -> Row:
    """Measures what the training region has, and what it determines."""
    data = analysis.dataset
    row: Row = {"run": analysis.name, "region": data.region.spec}
    row |= solvable.measure_coverage(data)
    if not data.is_pixels:
        row.pop("pixels", None)
    orders = analysis.run.metrics.get("certificate")
    if orders is None:
        certificates = solvable.certify_dataset(data)
        orders = solvable.summarize_certificates(data, certificates)
    for order, numbers in orders.items():
        for name, key in CERTIFICATE.items():
            row[f"{name}_{order}"] = numbers.get(key)
    copies = describe_copies(data.copies.summary)
    if copies:
        row["copies"] = copies
    return row


# Functions from analyses to a section, by its name in `page.SECTIONS`. They
# leave out runs that a section does not apply to.
MAKERS: dict[str, Callable[[Sequence[RunAnalysis]], Section]] = {
    "representations": stage_section.make_representations,
    "readings": stage_section.make_readings,
    "errors": make_errors,
    "gaps": output_section.make_gaps,
    "superposition": output_section.make_superposition,
    "kernels": output_section.make_kernels,
    "inversion": output_section.make_inversion,
    "layers": stage_section.make_layers,
    "interactions": stage_section.make_interactions,
    "tuning": stage_section.make_tuning,
    "manifolds": stage_section.make_manifolds,
    "umap": stage_section.make_umap,
    "embeddings": stage_section.make_embeddings,
    "runs": make_runs,
}
