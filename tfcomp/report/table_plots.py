"""Figures of many runs, as functions of the tables of `tfcomp.read_runs`."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pandas as pd

from tfcomp.config.errors import ConfigError, suggest
from tfcomp.config.settings import split_names
from tfcomp.figures.curve_plots import (
    average_seeds,
    draw_curve_panels,
    draw_forest,
    draw_stage_panels,
    list_marks,
    merge_stages,
)
from tfcomp.figures.exhibits import Plot, Width, fit_width
from tfcomp.metrics.registry import find_limits, label_number
from tfcomp.statistics.seed_statistics import (
    choose_flags,
    estimate_geometric,
    estimate_mean,
    make_label,
)
from tfcomp.tables.flatten import ALL, END, NO_FLAGS

if TYPE_CHECKING:
    from pandas import DataFrame, Series

ERRORS = ("mse", "loss")  # how names end that have logarithmic axes
EPOCH = "epoch "
NUMBER = re.compile(r"(\d+(?:\.\d+)?(?:e[-+]?\d+)?)")


def plot_scores(
    runs: DataFrame,
    numbers: DataFrame,
    names: str | Sequence[str] = "ood/relative_mse",
    *,
    by: str = "",
    width: Width = "",
) -> Plot:
    """Plots scores of settings: seeds, means, and 95 % intervals over seeds.

    Args:
        runs: Rows of the first table of `read_runs`, all or some.
        numbers: The second table.
        names: Scores, as `ood/mse`, a panel each. Errors have logarithmic axes
            and geometric means.
        by: Flags that tell settings apart, separated by commas; by default
            those that vary.
        width: `column` (3.25 inches), `page` (6.75), or inches.

    Returns:
        A figure, whose `data` has a row for each mark.

    Raises:
        ConfigError: If the tables have no such score or flag.

    Example:
        >>> path = "reproduction/evidence/depth_fresh.csv.xz"
        >>> tables = tfcomp.read_runs(path)
        >>> figure = tfcomp.plot_scores(*tables, by="depth", width="column")
        >>> figure.data["row"].unique().tolist()
        ['depth 2', 'depth 6']
    """
    if isinstance(names, str):
        names = [names]
    panels: dict[str, dict[str, Series]] = {}
    for name in names:
        rows = select_numbers(
            runs,
            numbers,
            name,
            by,
        )
        panels[name] = {}
        for label, group in rows.groupby("label", sort=False):
            by_seed = group.groupby("seed")["value"]
            panels[name][str(label)] = by_seed.agg(average_all)
    with fit_width(width):
        return draw_score_panels(panels)


def draw_score_panels(panels: Mapping[str, Mapping[str, Series]]) -> Plot:
    """Draws scores by seed: a panel for each score, a row for each setting."""
    log = [name for name in panels if name.endswith(ERRORS)]
    marks = []
    for name, settings in panels.items():
        limits = find_limits(name)
        estimate = estimate_geometric if name in log else estimate_mean
        for label, values in settings.items():
            seeds = values.dropna().tolist()
            if not seeds:
                continue
            # Seeds stay where one lacks the score, so that there is no mean.
            mean = average_seeds(values.to_dict(), limits, estimate)
            marks += list_marks(
                name,
                label,
                seeds,
                **mean,
            )
    kind = "mean"
    if len(log) == len(panels):
        kind = "geometric mean"
    return draw_forest(marks, log, kind)


def plot_curves(
    runs: DataFrame,
    numbers: DataFrame,
    name: str = "cosine_factorization",
    *,
    over: str = "stage",
    by: str = "",
    width: Width = "",
) -> Plot:
    """Plots a number over stages or epochs: seeds, means, 95 % intervals.

    Seeds are thin lines. Wide intervals are cut at the axis.

    Args:
        runs: As for `plot_scores`.
        numbers: As for `plot_scores`.
        name: One number.
        over: `stage`, or `epoch`, which needs run folders.
        by: As for `plot_scores`.
        width: As for `plot_scores`.

    Returns:
        A figure, whose `data` has a row for each point.

    Raises:
        ConfigError: If the tables have no such number or flag.

    Example:
        >>> path = "reproduction/evidence/depth_fresh.csv.xz"
        >>> tables = tfcomp.read_runs(path)
        >>> figure = tfcomp.plot_curves(*tables, "probe_r2_ood", by="depth")
        >>> figure.data.query("line == 'depth 2'")["stage"].tolist()
        ['code', 'stage_0', 'stage_1', 'stage_2', 'image']
    """
    if over not in ("stage", "epoch"):
        raise ConfigError("over", "must be among stage, epoch", over)
    rows = select_numbers(
        runs,
        numbers,
        name,
        by,
        over,
    )
    tables = _arrange_seeds(rows, over)
    limits = find_limits(name)
    with fit_width(width):
        if over == "stage":
            return draw_stage_panels(
                {("", label): table for label, table in tables.items()},
                ylabel=label_number(name),
                limits=limits,
            )
        return draw_curve_panels(
            {(name, label): table for label, table in tables.items()},
            xlabel="epoch",
            limits=limits,
            log=[name] if name.endswith(ERRORS) else [],
        )


def _arrange_seeds(rows: DataFrame, over: str) -> dict[str, DataFrame]:
    """Arranges values by label: a row for each seed, a column for each place.

    Args:
        rows: A row for each run and place.
        over: The column of the places, `stage` or `epoch`.
    """
    tables = {}
    for label, group in rows.groupby("label", sort=False):
        table = group.pivot_table(
            "value",
            "seed",
            over,
            average_all,
            dropna=False,
            sort=False,
        )
        if over == "stage":
            # Networks of one label may have several depths.
            stages = group.groupby("run")["stage"].agg(list)
            table = table[merge_stages(stages)]
        tables[str(label)] = table
    return tables


def average_all(values: Series) -> float:
    """Returns the mean; NaN if one value is, since the rest could flatter."""
    return float(values.mean(skipna=False))


def _label_runs(runs: DataFrame, by: str) -> Series:
    """Returns the name of each run's setting, by the flags that vary."""
    flags = split_names(by)
    for flag in flags:
        if flag not in runs:
            hint = suggest(flag, map(str, runs))
            rule = f"must be flags of the runs{hint}"
            raise ConfigError("by", rule, flag)
    if not flags:
        settings: list[Any] = runs.drop(
            columns=list(NO_FLAGS),
            errors="ignore",
        ).to_dict("records")
        flags = choose_flags(settings)
    rows: list[Any] = runs.to_dict("records")
    labels = [make_label(row, flags) for row in rows]
    return pd.Series(labels, index=runs.index)


def select_numbers(
    runs: DataFrame,
    numbers: DataFrame,
    name: str,
    by: str,
    over: str = "",
) -> DataFrame:
    """Selects the rows of one number, and adds `label` and `seed` of runs.

    Without `over`, numbers at the end of runs; else numbers of each `stage`, or
    of each `epoch`, which gets a column.
    """
    subset, _, rest = name.partition("/")
    if subset not in set(numbers["subset"]):
        subset = ALL
        rest = name
    when = EPOCH if over == "epoch" else END
    settings = runs[["run", "seed"]].assign(label=_label_runs(runs, by))
    rows = numbers[
        (numbers["name"] == rest)
        & (numbers["subset"] == subset)
        & numbers["when"].str.startswith(when)
        & ((numbers["stage"] != "") == (over == "stage"))
    ].merge(settings, on="run")
    if rows["value"].isna().all():
        names = set(numbers.dropna(subset="value")["name"])
        hint = suggest(rest, sorted(names))
        rule = f"must be a number of the runs{hint}"
        raise ConfigError("name", rule, name)
    order = _order_labels(rows["label"])
    rows = rows.loc[order.sort_values(kind="stable").index]
    if over == "epoch":
        epochs = rows["when"].str.removeprefix(EPOCH).astype(int)
        rows = rows.assign(epoch=epochs)
    return rows


def _order_labels(labels: Series) -> Series:
    """Makes keys that sort `depth 2` before `depth 10`, in any order of runs.

    Labels that differ in words stay in the order of their runs, as layers do.
    """
    words = labels.str.replace(NUMBER, "#", regex=True)
    places, _ = pd.factorize(words)  # in the order of their runs
    keys = []
    for label, place in zip(labels, places, strict=True):
        numbers = map(float, NUMBER.findall(label))
        keys.append((place, *numbers))
    return pd.Series(keys, index=labels.index)
