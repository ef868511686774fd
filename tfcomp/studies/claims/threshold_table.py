"""The table of a threshold study: examples needed at every size, and the slope.

A row is a kind of training set with the region that it holds out. A number is
the geometric mean of the least numbers of examples that reached the target,
stripes included, with the lowest and the highest seed.
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import geometric_mean
from typing import TYPE_CHECKING

from tfcomp.statistics.setting_table import format_rows
from tfcomp.studies.claims.result_text import format_number
from tfcomp.studies.claims.score_table import format_spread
from tfcomp.studies.claims.threshold_studies import TOTAL, ThresholdStudy

if TYPE_CHECKING:
    from pandas import DataFrame

ROW = ["kind", "region", "criterion"]


def make_threshold_tables(studies: Sequence[ThresholdStudy]) -> dict[str, str]:
    """A table in Markdown for each study, by the name of its folder."""
    return {study.path.name: format_study(study) for study in studies}


def format_study(study: ThresholdStudy) -> str:
    """The table of one study, a row a kind of training set and criterion."""
    found = study.thresholds
    sizes = sorted(found["grid_size"].unique())
    heads = [f"N = {size:g}" for size in sizes]
    rows = [["training set", "held out", "criterion", *heads, "slope"]]
    for row, searches in found.groupby(ROW, sort=False):
        sized = [searches[searches["grid_size"] == size] for size in sizes]
        words = [str(word).replace("_", " ") for word in row]
        counts = map(format_searches, sized)
        rows.append([*words, *counts, find_slope(study, row)])
    return format_rows(rows)


def format_searches(searches: DataFrame) -> str:
    """As `74.1 (64 to 98)`; searches that failed are counted beside."""
    reached = searches[searches["reached"].astype(bool)]
    counts = reached[TOTAL].tolist()
    missed = len(searches) - len(counts)
    text = format_spread(geometric_mean(counts), counts) if counts else "–"
    return text + (f", {missed} not reached" if missed else "")


def find_slope(study: ThresholdStudy, row: tuple) -> str:
    """The slope of all examples over the size, with its 95 % interval."""
    table = study.slopes[study.slopes["quantity"] == TOTAL]
    found = table[(table[ROW] == list(row)).all(axis=1)]
    numbers = found[["slope", "low", "high"]].stack().dropna()
    slope, *interval = [format_number(n) for n in numbers] or ["–"]
    return f"{slope} [{', '.join(interval)}]" if interval else slope
