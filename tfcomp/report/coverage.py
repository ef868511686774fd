"""How much coverage is enough? Scores by the share of combinations in training.

Tables of runs as `tfcomp.read_runs` makes them go in. A line is a setting
without its region, and its place is the number `coverage/combinations`.

    enough       the least coverage from which the 95 % interval over seeds lies
                 on the good side of a bound, here and at all larger ones
    determined   the least one from which all held-out combinations follow from
                 training at order 1 (`tfcomp.datasets.solvable`)

The first is enough in fact, the second in principle.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from tfcomp.config.errors import ConfigError
from tfcomp.figures.curve_plots import average_seeds, draw_coverage
from tfcomp.figures.exhibits import Exhibit, Plot, Width, fit_width
from tfcomp.metrics.registry import find_limits, label_number
from tfcomp.report.table_plots import (
    ERRORS,
    average_all,
    select_numbers,
)
from tfcomp.statistics.limits import POSITIVE, SHARE, Limits
from tfcomp.tables.flatten import ALL, END

if TYPE_CHECKING:
    from pandas import DataFrame

COVERAGE = "coverage/combinations"
CERTIFIED = "certificate/1/certified"
# Of embeddings, whose numbers are in no registry.
EMBEDDED = {"composed_ood": POSITIVE, "accuracy_ood": SHARE}
# Bounds by the last word of a score's name.
BOUNDS = {
    "r2": 0.9,
    "relative_mse": 0.1,
    "hit_rate": 0.95,
    "position_accuracy": 0.95,
    "composed_ood": 0.1,
    "accuracy_ood": 0.95,
}
# How names of baselines end, by the score that they belong to.
REFERENCES = {"relative_mse": "", "r2": "_r2", "": ""}
SHOWN = "coverage mean low high n determined additive nearest".split()
RESAMPLES = 1000
MIN_SEEDS = 3  # whose resamples say something
Values = Mapping[Any, float | None]  # of a number, by seed


def coverage_table(
    runs: DataFrame,
    numbers: DataFrame,
    name: str = "ood/r2",
    *,
    by: str = "",
    bound: float | None = None,
) -> DataFrame:
    """Averages a score at every coverage, and finds the least that is enough.

    A coverage is enough if the 95 % interval over seeds lies on the good side
    of the bound, here and at every larger coverage that was tried. A single
    seed has no interval, and is never enough.

    Args:
        runs: Rows of the first table of `read_runs`, which differ in `region`.
        numbers: The second table.
        name: The score, as `ood/relative_mse`.
        by: Flags that tell lines apart, separated by commas; by default those
            that vary, without the region.
        bound: What errors must be below, and scores of at most 1 above; by
            default .9 for R², .1 for relative MSE, .95 for accuracies.

    Returns:
        A row for each line and coverage: `line`, `coverage`, the `mean`, `low`
        and `high` over `n` seeds, the share of held-out combinations that is
        `determined`, and the means of the baselines `additive` and `nearest`
        (NaN where a score has none). In each row of a line stand `enough` (NaN
        if no coverage is), the ends `enough_low` and `enough_high` of its 95 %
        bootstrap interval over seeds (infinite beyond the largest coverage,
        NaN for fewer than three seeds), `all_determined`, the least coverage
        that is enough in principle, and an `answer` in words.

    Raises:
        ConfigError: If the tables have no such score or flag, or no coverage,
            or if there is no bound.
    """
    collected = _collect(
        runs,
        numbers,
        name,
        by,
    )
    limits = EMBEDDED.get(name) or find_limits(name)
    if bound is None:
        bound = BOUNDS.get(name.rpartition("/")[2])
    if bound is None or math.isinf(limits.low) and limits.high != 1:
        rule = f"must be given, of an error or a share, not for {name}"
        raise ConfigError("bound", rule, bound)

    rows = []
    for line, group in collected.groupby("label", sort=False):
        levels, averages = _average_levels(group, limits)
        answers = _find_answers(levels, limits, bound)
        determined = {r["coverage"]: r["determined"] == 1 for r in averages}
        answers["all_determined"] = find_least(determined)
        answers["answer"] = _describe(answers, levels)
        for row in averages:
            rows.append({"line": line, **row, **answers})
    return pd.DataFrame(rows)


def _average_levels(
    group: DataFrame,
    limits: Limits,
) -> tuple[dict[float, Values], list[dict[str, Any]]]:
    """Averages a line at each coverage.

    Args:
        group: A row for each run, with `coverage`, `seed`, `value`, the
            share `determined` and the baselines.
        limits: Range of the score.

    Returns:
        The scores by coverage and seed, and a row of means for each coverage.
    """
    levels: dict[float, Values] = {}
    rows = []
    for coverage, seeds in group.groupby("coverage"):
        by_seed = seeds.groupby("seed")["value"].agg(average_all)
        values = by_seed.to_dict()
        levels[float(str(coverage))] = values
        row = {"coverage": coverage, "n": len(values)}
        row |= average_seeds(values, limits)
        for column in ("determined", "additive", "nearest"):
            row[column] = average_all(seeds[column])
        rows.append(row)
    return levels, rows


def _find_answers(
    levels: Mapping[float, Values],
    limits: Limits,
    bound: float,
) -> dict[str, Any]:
    """Finds the coverage that is enough, and resamples seeds.

    Args:
        levels: Scores by coverage, the least first, and by seed.
        limits: Range of the scores.
        bound: What they are compared with.
    """
    answers: dict[str, Any] = {
        "bound": bound,
        "enough": find_least(_compare(levels, limits, bound)),
        "enough_low": math.nan,
        "enough_high": math.nan,
    }
    seeds = sorted({seed for values in levels.values() for seed in values})
    count = len(seeds)
    if count < MIN_SEEDS:
        return answers
    rng = np.random.default_rng(0)
    draws = rng.integers(
        count,
        size=(RESAMPLES, count),
    )
    # The order of seeds does not matter, so few samples are different.
    samples, repeats = np.unique(
        np.sort(draws, axis=1),
        axis=0,
        return_counts=True,
    )
    results = []
    for sample in samples:
        resampled = {}
        for coverage, values in levels.items():
            taken = [values[seeds[i]] for i in sample if seeds[i] in values]
            resampled[coverage] = dict(enumerate(taken))
        met = _compare(resampled, limits, bound)
        results.append(find_least(met))

    beyond = np.nan_to_num(results, nan=np.inf)
    ends = np.quantile(
        np.repeat(beyond, repeats),
        [0.025, 0.975],
        method="inverted_cdf",
    )
    answers["enough_low"], answers["enough_high"] = ends
    return answers


def find_least(met: Mapping[float, bool]) -> float:
    """Finds the least coverage from which a condition holds; NaN for none.

    Args:
        met: Whether it holds, by coverage, the least first.
    """
    least = math.nan
    for coverage, holds in reversed(list(met.items())):
        if not holds:
            break
        least = coverage
    return least


def _compare(
    levels: Mapping[float, Values],
    limits: Limits,
    bound: float,
) -> dict[float, bool]:
    """Tells at which coverages the interval lies on the good side."""
    met = {}
    for coverage, values in levels.items():
        row = average_seeds(values, limits)
        if limits.high == 1:
            met[coverage] = row["low"] > bound
        else:
            met[coverage] = row["high"] < bound
    return met


def _describe(
    answers: Mapping[str, Any],
    levels: Mapping[float, Values],
) -> str:
    """Describes the answers of a line in words."""
    text = "no coverage is enough"
    if answers["enough"] > 0:
        text = f"enough from {answers['enough']:.3g}"
    if answers["enough_low"] < 1:
        high = "beyond"
        if answers["enough_high"] < 1:
            high = f"{answers['enough_high']:.3g}"
        text += f" [{answers['enough_low']:.3g}, {high}]"
    if answers["all_determined"] > 0:
        text += f", all determined from {answers['all_determined']:.3g}"
    return f"{text}, {min(map(len, levels.values()))} seeds"


def plot_coverage(
    runs: DataFrame,
    numbers: DataFrame,
    name: str = "ood/r2",
    *,
    by: str = "",
    bound: float | None = None,
    width: Width = "",
) -> Plot:
    """Plots a score over the share of combinations in training.

    Seeds are points, means have bands of 95 %. The legend has the least
    coverage that is enough, with its bootstrap interval. The vertical line is
    the least one at which all held-out combinations are determined.

    Args:
        runs: As for `coverage_table`.
        numbers: As for `coverage_table`.
        name: As for `coverage_table`.
        by: As for `coverage_table`.
        bound: As for `coverage_table`.
        width: `column` (3.25 inches), `page` (6.75), or inches.

    Returns:
        A figure, whose `data` is the `coverage_table`.

    Raises:
        ConfigError: As for `coverage_table`.

    Example:
        >>> tables = tfcomp.read_runs("docs/tables/coverage_bumps.csv.xz")
        >>> figure = tfcomp.plot_coverage(*tables, by="model", width="page")
        >>> figure.data["coverage"].unique().round(1).tolist()
        [0.1, 0.2, 0.4, 0.6, 0.8]
    """
    table = coverage_table(
        runs,
        numbers,
        name,
        by=by,
        bound=bound,
    )
    seeds = _collect(
        runs,
        numbers,
        name,
        by,
    )
    with fit_width(width):
        return draw_coverage(
            table,
            seeds,
            ylabel=label_number(name),
            is_log=name.endswith(ERRORS),
        )


def format_tables(tables: Sequence[DataFrame]) -> str:
    """Formats results of `coverage_table` for a command."""
    lines = []
    for table in tables:
        for name, rows in table.groupby("line", sort=False):
            rows_with_values = rows[SHOWN].dropna(axis="columns", how="all")
            text = rows_with_values.to_string(
                index=False,
                float_format="{:.3g}".format,
            )
            lines += [f"{name}: {rows['answer'].iloc[0]}", text]
    return "\n".join(lines)


def make_exhibits(
    runs: DataFrame,
    numbers: DataFrame,
    names: Sequence[str],
    by: str = "",
) -> list[Exhibit]:
    """Makes a figure of each score, with its table.

    Args:
        runs: As for `coverage_table`.
        numbers: As for `coverage_table`.
        names: Scores; those that no run has are left out.
        by: As for `coverage_table`.
    """
    exhibits = []
    for name in names:
        with contextlib.suppress(ConfigError):
            figure = plot_coverage(
                runs,
                numbers,
                name,
                by=by,
            )
            rows: list[Any] = figure.data.to_dict("records")
            exhibit = Exhibit(
                name=f"coverage_{name.replace('/', '_')}",
                title=f"{name} by coverage",
                caption="The share of combinations in training. Points are "
                "seeds, bands 95 % intervals.",
                figure=figure,
                rows=rows,
            )
            exhibits.append(exhibit)
    return exhibits


def _collect(
    runs: DataFrame,
    numbers: DataFrame,
    name: str,
    by: str,
) -> DataFrame:
    """Collects a score with coverage and baselines, a row for each run."""
    subset, _, last = name.partition("/")
    end = f"{subset}{REFERENCES.get(last, '/none')}"
    paths = {
        "coverage": COVERAGE,
        "determined": CERTIFIED,
        "additive": f"references/additive/{end}",
        "nearest": f"references/nearest_id/{end}",
    }
    settings = runs.drop(
        columns="region",
        errors="ignore",
    )
    rows = select_numbers(
        settings,
        numbers,
        name,
        by,
    )
    is_end = (numbers["when"] == END) & (numbers["subset"] == ALL)
    for column, path in paths.items():
        is_number = is_end & (numbers["name"] == path)
        by_run = numbers[is_number].set_index("run")["value"]
        rows[column] = rows["run"].map(by_run).astype(float).round(6)

    rows = rows.dropna(subset="coverage")
    if rows.empty:
        rule = f"must have the number {COVERAGE}, as runs since version 0.3"
        raise ConfigError("runs", rule, f"{len(runs)} without it")
    return rows
