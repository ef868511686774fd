"""Results of runs with planted flags and numbers."""

from collections.abc import Iterable, Mapping
from typing import Any

import pandas as pd

from reproduction.decoders.cells import read_table
from tfcomp.tables import flatten
from tfcomp.tables.read import Results

# Flags, and the content of `metrics.json`.
Run = tuple[Mapping[str, Any], Mapping[str, Any]]


def make_table(runs: Iterable[Run]) -> pd.DataFrame:
    loaded = []
    for flags, metrics in runs:
        row = flatten.describe_run({**flatten.get_defaults(), **flags})
        numbers = list(flatten.list_numbers(metrics, {}))
        loaded.append(flatten.Run(row, numbers))
    return read_table(Results(loaded))
