"""Results of runs with planted flags and numbers."""

from collections.abc import Iterable, Mapping
from typing import Any

from tfcomp.studies.decoders.cells import Cell, add_r2, list_cells
from tfcomp.tables.flatten import describe_run, get_defaults, list_numbers
from tfcomp.tables.groups import Group
from tfcomp.tables.read import Results

# Flags, and the content of `metrics.json`.
Run = tuple[Mapping[str, Any], Mapping[str, Any]]


def make_results(runs: Iterable[Run]) -> Results:
    rows, numbers = [], []
    for flags, metrics in runs:
        every = {**get_defaults(), **flags}
        rows.append(describe_run("", "planted", every, {}, ""))
        numbers.append(list(list_numbers(metrics, {})))
    return Results(rows, numbers)


def make_groups(runs: Iterable[Run]) -> list[Group]:
    return add_r2(make_results(runs).groups)


def make_cells(runs: Iterable[Run]) -> list[Cell]:
    return list_cells(make_groups(runs))
