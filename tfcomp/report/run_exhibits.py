"""Exhibits of a run, and findings in words, which sections share."""

import functools
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from numpy.typing import ArrayLike

from tfcomp.figures.curve_plots import draw_stage_panels, join_curves
from tfcomp.figures.exhibits import Exhibit, Plot
from tfcomp.metrics.run_analysis import RunAnalysis
from tfcomp.models.loading import load_run
from tfcomp.report.page import make_exhibit
from tfcomp.report.verbalize import name_runs, to_file_name

Row = dict[str, Any]

CLOSE = 0.05  # numbers that differ less are "about equal"
WEAK = 0.3  # smaller correlations support no conclusion
# Share of the way from the R² of the true images to 1, from which outputs are
# called superpositions, mostly or in part.
MOSTLY, PARTLY = 0.5, 0.1
MAX_NAMED = 3
UNTRAINED = "before training"  # among rows of superposition scores


def find_analysis(model: Any) -> RunAnalysis:
    """Returns the analysis of a `ModelReport`, or of a run's folder."""
    if isinstance(model, str | Path):
        return RunAnalysis.of_run(load_run(model))
    analysis: RunAnalysis = model.analysis
    return analysis


def group_runs(analyses: Sequence[RunAnalysis]) -> list[list[RunAnalysis]]:
    """Groups runs that have the same factors, region and true images."""
    groups: dict[tuple, list[RunAnalysis]] = {}
    for analysis in analyses:
        data, truth = analysis.dataset, analysis.evaluation.truth
        key = data.space, data.region.spec, hash(truth.tobytes())
        groups.setdefault(key, []).append(analysis)
    return list(groups.values())


def rename_runs(analyses: Sequence[RunAnalysis]) -> list[RunAnalysis]:
    """Names several runs by their settings; models from elsewhere have none."""
    if len(analyses) < 2 or any(a.run.path is None for a in analyses):
        return list(analyses)
    names = name_runs([analysis.run.config for analysis in analyses])
    return [a.rename(*both) for a, both in zip(analyses, names, strict=True)]


def show_run(
    analysis: RunAnalysis,
    kind: str,
    figure: Figure | None = None,
    rows: Sequence[Row] = (),
    *,
    suffix: str = "",
    **values: object,
) -> Exhibit:
    """Makes the exhibit `<run>_<kind><suffix>` of a run."""
    name = f"{to_file_name(analysis.name)}_{kind}{suffix}"
    values = {"run": analysis.name, **values}
    return make_exhibit(kind, figure, rows, name=name, **values)


def to_rows(columns: Mapping[str, ArrayLike]) -> list[Row]:
    """Converts columns of one length to rows of plain Python numbers."""
    rows: list[Any] = pd.DataFrame(dict(columns)).to_dict("records")
    return rows


def list_points(
    analysis: RunAnalysis, columns: Mapping[str, np.ndarray]
) -> list[Row]:
    """Lists factors and split of every grid point beside columns [n]."""
    factors = analysis.dataset.space.name_values(analysis.splits.grid)
    return to_rows({**factors, "is_ood": analysis.splits.is_ood, **columns})


def tabulate_points(analysis: RunAnalysis) -> pd.DataFrame:
    """Returns errors of every grid point, and the hits of a reader."""
    columns = {"mse": analysis.error, "relative_mse": analysis.error_ratio}
    if analysis.ssim_error is not None:
        columns["ssim_error"] = analysis.ssim_error
    if (reader := analysis.run.reader) is not None:
        hits = reader.check(analysis.evaluation.images, analysis.splits.grid)
        names = [f"reads_{name}" for name in analysis.dataset.space.names]
        columns |= dict(zip(names, hits.T, strict=True))
    return pd.DataFrame(list_points(analysis, columns))


def list_stages(
    analyses: Sequence[RunAnalysis], measure: Callable[[RunAnalysis, str], Row]
) -> list[Row]:
    """Returns a row for each stage of each run, with the row of `measure`."""
    return [
        {"run": analysis.name, "stage": stage, **measure(analysis, stage)}
        for analysis in analyses
        for stage in analysis.stages
    ]


def describe_column(exhibits: Sequence[Exhibit], column: str, name: str) -> str:
    """Describes a column over the stages, from the first exhibit with it."""
    tables = (item.rows for item in exhibits if item.rows)
    rows = next((rows for rows in tables if column in rows[0]), [])
    return describe_course(rows, column, name)


def draw_stage_rows(
    rows: Sequence[Row],
    panels: Mapping[str, str],
    ylabel: str,
    limits: tuple[float, float] | None = None,
) -> Plot | None:
    """Draws columns of a table against the stage, a line a run (and curve)."""
    if not panels:
        return None
    table = pd.DataFrame(rows).set_index("stage")
    names = [name for name in ("run", "curve") if name in table]
    lines = table.groupby(table[names].agg(", ".join, axis=1), sort=False)
    curves = {
        (title, str(line)): each[column].to_frame("mean")
        for title, column in panels.items()
        for line, each in lines
    }
    points = join_curves(curves, "stage")
    return draw_stage_panels(points, ylabel=ylabel, limits=limits)


def drop_name(text: str, name: str) -> str:
    """Leaves out the name before a finding, for a page of one run."""
    text = text.removeprefix(f"{name}: ")
    return f"{text[:1].upper()}{text[1:]}"


def has_numbers(rows: Sequence[Row], name: str) -> bool:
    """Returns True if a column of a table is not empty."""
    return any(row[name] is not None for row in rows)


def tell_runs(say: Callable[..., str]) -> Callable[..., str]:
    """Makes one line that names runs from a function of the rows of one."""

    @functools.wraps(say)
    def describe(rows: Sequence[Row], *words: str) -> str:
        runs: dict[str, list[Row]] = {}
        for row in rows:
            runs.setdefault(row["run"], []).append(row)
        said = {name: say(own, *words) for name, own in runs.items()}
        named = [f"{name}: {text}" for name, text in said.items() if text]
        rest = len(named) - MAX_NAMED
        more = f"; and {rest} more" if rest > 0 else ""
        return f"{'; '.join(named[:MAX_NAMED])}{more}." if named else ""

    return describe


@tell_runs
def describe_course(rows: Sequence[Row], column: str, name: str) -> str:
    """Describes how a number changes from the first stage to the last."""
    shown = [(row.get(column), row["stage"]) for row in rows]
    # As they are printed, without the sign of 0.
    known = [(round(v, 2) + 0.0, s) for v, s in shown if v is not None]
    if len(known) < 2:
        return ""
    (start, first), (end, last) = known[0], known[-1]
    least, place = min(known, key=lambda pair: pair[0])
    if abs(end - start) <= CLOSE * max(abs(start), abs(end)):
        course = f"is about {end:.2f} in {first} and {last}"
    else:
        verb = "rises" if end > start else "falls"
        course = f"{verb} from {start:.2f} ({first}) to {end:.2f} ({last})"
    if least < min(start, end) - CLOSE * abs(min(start, end)):
        course += f", and is least in {place} ({least:.2f})"
    return f"{name} {course}"


@tell_runs
def describe_superposition(rows: Sequence[Row]) -> str:
    """Describes if outputs are sums of memories, at far points if known."""
    r2s: dict[str, float | None] = {}
    for points in ("far", "all"):
        r2s = {
            row["OOD outputs"]: row["superposition"]
            for row in rows
            if row["points"] == points
        }
        model, truth = r2s.get("model"), r2s.get("truth")
        if model is not None and truth is not None:
            break
    else:
        return "no held-out output is bright enough to be scored"
    share = (model - truth) / max(1 - truth, 1e-9)
    before = r2s.get(UNTRAINED)
    r2 = f"R² {model:.2f}; truth {truth:.2f}"
    r2 += "" if before is None else f"; before training {before:.2f}"
    if not share >= PARTLY:
        what = "are no more superpositions than the true images are"
        return f"held-out outputs {what} ({r2})"
    part = "mostly" if share >= MOSTLY else "in part"
    said = f"held-out outputs can {part} be written as sums of training outputs"
    said += f" that share a factor value ({r2})"
    # Before training, R² can be as high (claim C4).
    if before is None:
        said += "; the R² of an untrained network can be as high, so this alone"
        return f"{said} shows no memorization"
    is_as_high = before > model - CLOSE
    return said + "; this alone shows no memorization" * is_as_high


@tell_runs
def describe_kernels(rows: Sequence[Row]) -> str:
    """Describes which of the two ideal kernels the outputs resemble."""
    row = next((r for r in rows if r["similarity"] == "cosine"), {})
    sum_, joint = row.get("factorized"), row.get("conjunctive")
    if sum_ is None or joint is None:
        return ""
    if max(sum_, joint) < CLOSE:
        which = "neither ideal kernel"
    elif abs(sum_ - joint) < CLOSE:
        which = "both ideal kernels alike"
    else:
        name = "factorized" if sum_ > joint else "conjunctive"
        which = f"the {name} kernel more"
    numbers = f"(alignment {sum_:.2f} factorized, {joint:.2f} conjunctive)"
    return f"the outputs resemble {which} {numbers}"


@tell_runs
def describe_border(rows: Sequence[Row]) -> str:
    """Describes if the OOD error rises with the distance to ID."""
    rho = rows[0]["border_rank_correlation"]
    if rho is None:
        return ""
    how = "rises with" if rho > 0 else "falls with"
    how = "hardly depends on" if abs(rho) < WEAK else how
    rank = f"(rank correlation {rho:.2f})"
    return f"the OOD error {how} the distance to ID {rank}"
