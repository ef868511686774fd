"""Sections of tables: representations, readings, settings and coverage."""

from collections.abc import Sequence

from tfcomp.datasets import solvable
from tfcomp.datasets.notes import describe_copies
from tfcomp.evaluation.run_analysis import RunAnalysis
from tfcomp.figures.exhibits import Exhibit
from tfcomp.models.acting_starts import POSE_TERMS
from tfcomp.models.decoders.acting import describe_pose_terms
from tfcomp.report.page import Section, make_exhibit, make_section
from tfcomp.report.run_exhibits import Row, draw_stage_rows
from tfcomp.report.run_names import describe_common

PANELS = {
    "R² of a sum of parts": "additive_r2",
    "whitened": "additive_r2_whitened",
    "in the span of probes": "additive_r2_probes",
    "accuracy of probes, OOD": "accuracy_ood",
}
# Flags that the table always has, beside flags in which runs differ.
SETTINGS = "dataset encoding model depth width epochs seed".split()


def make_representations(analyses: Sequence[RunAnalysis]) -> Section:
    """Shows how far layers are sums of parts, and their disentanglement."""
    names = ("layers", "parts", "pairs", "codes")
    tables = [_show_table(analyses, name) for name in names]
    said = " ".join(map(describe_layers, analyses)).strip()
    return make_section("representations", tables, said)


def make_readings(analyses: Sequence[RunAnalysis]) -> Section:
    """Shows the accuracy of readers on outputs, beside their ceiling."""
    said = [
        f"{analysis.name}: all factors are read right in "
        f"{row['accuracy']:.1%} of {row['subset'].upper()} (true images "
        f"{row['ceiling']:.1%})."
        for analysis in analyses
        for row in analysis.run.tables.get("readings", ())
        if row["level"] == "any" and row["factor"] == "all"
    ]
    table = _show_table(analyses, "readings")
    return make_section("readings", [table], " ".join(said))


def describe_layers(analysis: RunAnalysis) -> str:
    """Describes the latents, or the last layer, as sums of parts."""
    rows = analysis.run.tables.get("layers", [])
    names = [row["layer"] for row in rows]
    name = "latents" if "latents" in names else ["", *names][-1]
    row, chance = rows[names.index(name) :][:2] if rows else ({}, {})
    if row.get("additive_r2") is None:
        return ""
    text = (
        f"{analysis.name}: a sum of parts explains {row['additive_r2']:.1%} of "
        f"the variance in {name} ({chance['additive_r2']:.1%} with permuted "
        "classes)"
    )
    if row["composed_ood"] is None:
        return f"{text}."
    return (
        f"{text}; held-out embeddings composed of parts have "
        f"{row['composed_ood']:.1%} of the error of the mean (the nearest ID "
        f"embedding {row['nearest_ood']:.1%})."
    )


def _show_table(analyses: Sequence[RunAnalysis], name: str) -> Exhibit:
    rows: list[Row] = [
        {"run": analysis.name, **row}
        for analysis in analyses
        for row in analysis.run.tables.get(name, ())
    ]
    figure = None
    if rows and name == "layers":
        drawn = [
            row | {"stage": row["layer"], "curve": row["classes"]}
            for row in rows
        ]
        figure = draw_stage_rows(drawn, PANELS, "share")
    return make_exhibit(f"table_{name}", figure, rows)


def make_runs(analyses: Sequence[RunAnalysis]) -> Section:
    """Shows settings, coverage and flags."""
    settings = _list_settings(analyses)
    tables = [
        make_exhibit("settings", rows=settings),
        make_exhibit("coverage", rows=_list_coverage(analyses)),
        make_exhibit("channels", rows=_list_channels(analyses)),
    ]
    return make_section(
        "runs",
        tables,
        describe_common(settings),
        {analysis.name: analysis.run.description for analysis in analyses},
    )


def _list_settings(analyses: Sequence[RunAnalysis]) -> list[Row]:
    flags = [s.run.config.identity() if s.run.path else {} for s in analyses]
    names = dict.fromkeys(
        name
        for settings in flags
        for name, value in settings.items()
        if name in SETTINGS or any(f.get(name, value) != value for f in flags)
    )
    return [
        {"run": analysis.name, "held out": analysis.dataset.region.spec}
        | {name: settings.get(name) for name in names}
        for analysis, settings in zip(analyses, flags, strict=True)
    ]


def _list_coverage(analyses: Sequence[RunAnalysis]) -> list[Row]:
    rows: list[Row] = []
    for analysis in analyses:
        data = analysis.dataset
        row: Row = {"run": analysis.name, "region": data.region.spec}
        row |= solvable.measure_coverage(data) | _list_certified(analysis)
        if copies := describe_copies(data.copies.summary):
            row["copies"] = copies
        rows.append(row)
    # Runs with more factors have more orders.
    columns = dict.fromkeys(name for row in rows for name in row)
    return [{name: row.get(name) for name in columns} for row in rows]


def _list_certified(analysis: RunAnalysis) -> dict[str, float | None]:
    orders = analysis.run.metrics.get("certificate")
    if orders is None:
        certificates = solvable.certify_dataset(analysis.dataset)
        orders = solvable.summarize_certificates(analysis.dataset, certificates)
    names = {
        "certified": "certified",
        "missing": "missing_rank",
        "noise": "noise_mean",  # older runs lack it
    }
    return {
        f"{short}_{order}": numbers.get(name)
        for order, numbers in orders.items()
        for short, name in names.items()
    }


def _list_channels(analyses: Sequence[RunAnalysis]) -> list[Row]:
    return [
        {
            "run": analysis.name,
            "factor": factor,
            "transform": describe_pose_terms({"": channels}).strip(),
            **{channel: channels.get(channel) for channel in POSE_TERMS},
        }
        for analysis in analyses
        for factor, channels in analysis.run.metrics.get("channels", {}).items()
    ]
