"""Settings, training coverage and flags of runs."""

from collections.abc import Sequence

from tfcomp.datasets import solvable
from tfcomp.datasets.notes import describe_copies
from tfcomp.evaluation.run_analysis import RunAnalysis
from tfcomp.figures.exhibits import Exhibit
from tfcomp.models.model_rules import POSE_TERMS, describe_pose_terms
from tfcomp.report.page import Section
from tfcomp.report.run_exhibits import Row

# Flags that the table always has, beside flags in which runs differ.
SETTINGS = "dataset encoding model depth width epochs seed".split()


def make_runs(analyses: Sequence[RunAnalysis]) -> Section:
    """Shows settings, coverage and flags."""
    settings, channels = _make_settings(analyses), _make_channels(analyses)
    tables = [settings, _make_coverage(analyses), channels]
    return Section(
        "runs",
        "Runs and flags",
        "Settings, coverage of the training set, and all flags.",
        [table for table in tables if table.rows],
        _describe_settings(settings.rows),
        {analysis.name: analysis.run.description for analysis in analyses},
    )


def _describe_settings(rows: Sequence[dict]) -> str:
    """Describes a run, or the settings in which several differ."""
    first, names = rows[0], list(rows[0])[1:]
    if len(rows) == 1:
        known = [n for n in names if first[n] not in (None, "")]
        text = ", ".join(f"{name} {first[name]}" for name in known)
        return f"{text[:1].upper()}{text[1:]}."
    varied = [n for n in names if any(row[n] != first[n] for row in rows)]
    text = f"differ in {', '.join(varied)}" if varied else "have equal flags"
    return f"The runs {text}."


def _make_settings(analyses: Sequence[RunAnalysis]) -> Exhibit:
    flags = [s.run.config.identity() if s.run.path else {} for s in analyses]
    names = dict.fromkeys(
        name
        for found in flags
        for name, value in found.items()
        if name in SETTINGS or any(f.get(name, value) != value for f in flags)
    )
    return Exhibit(
        "settings",
        "Settings",
        "The main settings, and those in which the runs differ.",
        rows=[
            {"run": analysis.name, "held out": analysis.dataset.region.spec}
            | {name: found.get(name) for name in names}
            for analysis, found in zip(analyses, flags, strict=True)
        ],
    )


def _make_coverage(analyses: Sequence[RunAnalysis]) -> Exhibit:
    rows: list[Row] = [
        {
            "run": analysis.name,
            "region": analysis.dataset.region.spec,
            **solvable.measure_coverage(analysis.dataset),
            **_list_certified(analysis),
            **_list_copies(analysis),
        }
        for analysis in analyses
    ]
    # Runs with more factors have more orders.
    columns = dict.fromkeys(name for row in rows for name in row)
    return Exhibit(
        "coverage",
        "Coverage of training",
        "Shares that occur in training: of the combinations of the factors; "
        "of the values of a factor, averaged over factors; and of the pixels "
        "that vary over all images. A decoder with free parameters for each "
        "pixel cannot learn the other pixels. certified_k: the share of "
        "held-out combinations that training determines at order k, for every "
        "quantity without interactions of more than k factors. missing_k: the "
        "smallest number of further images that determines all. noise_k: the "
        "mean variance of a determined sum, in units of an image's. copies: "
        "held-out images that are equal to a training image, if there are any.",
        rows=[{name: row.get(name) for name in columns} for row in rows],
    )


def _list_certified(analysis: RunAnalysis) -> dict[str, float | None]:
    found = analysis.run.metrics.get("certificate")
    if found is None:
        found = solvable.certify_dataset(analysis.dataset)
        found = solvable.summarize_certificates(analysis.dataset, found)
    names = {
        "certified": "certified",
        "missing_rank": "missing",
        "noise_mean": "noise",  # older runs lack it
    }
    return {
        f"{short}_{order}": numbers.get(name)
        for order, numbers in found.items()
        for name, short in names.items()
    }


def _list_copies(analysis: RunAnalysis) -> dict[str, str]:
    found = describe_copies(analysis.dataset.copies.summary)
    return {"copies": found} if found else {}


def _make_channels(analyses: Sequence[RunAnalysis]) -> Exhibit:
    found = [
        (analysis.name, factor, channels)
        for analysis in analyses
        for factor, channels in analysis.run.metrics.get("channels", {}).items()
    ]
    return Exhibit(
        "channels",
        "Transforms of the factors",
        "In the acting decoder a factor can move, rotate or scale an object, "
        "or change its template or color; training keeps few of these terms. "
        "Numbers are the spread over the values of the factor: of positions in "
        "halves of the shorter side of the image, of angles in radians, of "
        "sizes in logarithms, of templates and colors in logits.",
        rows=[
            {
                "run": name,
                "factor": factor,
                "transform": describe_pose_terms({"": channels}).strip(),
                **{channel: channels.get(channel) for channel in POSE_TERMS},
            }
            for name, factor, channels in found
        ],
    )
