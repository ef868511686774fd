"""Planted networks: outcomes with a part that no hyperparameter knows."""

import itertools
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from tfcomp.studies.prediction.early_numbers import Networks


def make_table(grid: Mapping[str, Sequence[Any]], seeds: int) -> pd.DataFrame:
    """Returns the settings of networks, all seeds of a setting together."""
    points = list(itertools.product(["explore"], *grid.values(), range(seeds)))
    return pd.DataFrame(points, columns=["half", *grid, "seed"]).astype(str)


def make_networks(
    table: pd.DataFrame, outcome: np.ndarray, numbers: Mapping[str, np.ndarray]
) -> Networks:
    """Returns networks with these decimal logarithms of the OOD error."""
    known = {"reached": True, "is_fresh": False, "id_relative_mse": 0.05}
    known |= {"ood_relative_mse": 10.0**outcome}
    return Networks(table.assign(**{**known, **numbers}))
