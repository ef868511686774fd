"""Results of runs with planted flags and numbers."""

from collections.abc import Iterable, Mapping
from typing import Any

import pandas as pd

from tfcomp.studies.decoders.cells import read_table
from tfcomp.tables.flatten import describe_run, get_defaults, list_numbers
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


def make_table(runs: Iterable[Run]) -> pd.DataFrame:
    return read_table(make_results(runs))
