"""How an evaluated model shows itself: a table, pictures, a line of text."""

import html
from collections.abc import Mapping

import pandas as pd
from matplotlib.figure import Figure

from tfcomp.config.errors import ConfigError
from tfcomp.evaluation.pictures import (
    picture_error_curve,
    picture_landscape,
    picture_samples,
)
from tfcomp.evaluation.study import Study
from tfcomp.figures.exhibits import figure_to_png
from tfcomp.report.layer_section import make_charts
from tfcomp.report.page import encode_png
from tfcomp.report.run_exhibits import name_values

Scores = Mapping[str, Mapping[str, float | None]]


def format_summary(study: Study, scores: Scores) -> str:
    """Name, data and scores as text."""
    table = pd.DataFrame(scores)
    text = table.to_string(float_format="{:.4g}".format, na_rep="-")
    return f"{_describe(study)}\n{text}"


def format_html(study: Study, scores: Scores) -> str:
    """Name, data, scores and samples, as notebooks show them."""
    numbers = pd.DataFrame(scores)
    table = numbers.to_html(float_format="{:.4g}".format, na_rep="–")
    picture = encode_png(figure_to_png(plot_samples(study)))
    text = html.escape(_describe(study))
    return (
        f"<p>{text}</p>{table}"
        '<img alt="samples: truth above output" style="max-width: 100%" '
        f'src="data:image/png;base64,{picture}">'
    )


def _describe(study: Study) -> str:
    data, splits = study.run.config.data, study.splits
    factors = ", ".join(f"{f.name} ({f.size})" for f in study.dataset.space)
    counted = f"{len(splits.all):,} combinations"
    held_out = int(splits.all.is_ood.sum())
    return (
        f"{study.name}: {data.dataset} of {factors}; {counted}, {held_out:,} "
        f"held out ({study.dataset.region.spec})"
    )


def make_frame(study: Study) -> pd.DataFrame:
    """A row for each combination that is scored."""
    splits = study.splits
    return pd.DataFrame(
        {
            **name_values(study.dataset.space, splits.grid),
            "is_ood": splits.is_ood,
            "mse": study.error,
            "relative_mse": study.error_ratio,
        }
    )


def plot_samples(study: Study, subset: str = "") -> Figure:
    """True images above outputs.

    Raises:
        ConfigError: If there is no such subset.
    """
    known = ["id", "ood"] if study.splits.is_ood.any() else ["id"]
    subset = subset or known[-1]
    if subset not in known:
        raise ConfigError("subset", f"must be among {', '.join(known)}", subset)
    words = {"id": "in distribution", "ood": "held out"}[subset]
    title = f"{study.name}: {words}"
    return picture_samples(study.dataset, study.evaluation, subset, title)


def plot_error(study: Study) -> Figure:
    """A map of errors over two ordered factors, or a curve over one.

    Raises:
        ConfigError: If no factor is ordered.
    """
    if study.has_map:
        mapped = study.mapped
        return picture_landscape(mapped.dataset, mapped.evaluation)
    if not study.curves:
        rule = "must have an ordered factor and all combinations to be plotted"
        raise ConfigError("data", rule, ", ".join(study.dataset.space.names))
    return picture_error_curve(study.dataset, study.evaluation)


def plot_layers(study: Study) -> Figure:
    """Geometry and probes, stage by stage.

    Raises:
        ConfigError: If no factor is ordered, so that there is no geometry.
    """
    if not study.dataset.space.ordered:
        rule = "must have an ordered factor to have a geometry"
        raise ConfigError("data", rule, ", ".join(study.dataset.space.names))
    charts = make_charts([study], "layers")
    return next(chart.figure for chart in charts if chart.figure)
