"""Planted networks: outcomes with a part that no hyperparameter knows."""

import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from tfcomp.studies.prediction.networks import Networks

# The hidden part of an outcome to a number that is read off early.
Plant = Callable[[np.ndarray, np.random.Generator], np.ndarray]
TIMES = (0, 0.05, 0.1, 0.25, 1)


def make_table(grid: Mapping[str, Sequence[Any]], seeds: int) -> pd.DataFrame:
    """Returns the settings of networks, all seeds of a setting together."""
    points = list(itertools.product(["explore"], *grid.values(), range(seeds)))
    return pd.DataFrame(points, columns=["half", *grid, "seed"]).astype(str)


def make_networks(
    table: pd.DataFrame,
    outcome: np.ndarray,
    numbers: Mapping[str, np.ndarray],
    **columns: Any,
) -> Networks:
    """Returns networks with these decimal logarithms of the OOD error."""
    known = {"reached": True, "is_fresh": False, "id_relative_mse": 0.05}
    known |= {"ood_relative_mse": 10.0**outcome}
    return Networks(table.assign(**{**known, **numbers, **columns}))


def read_well(hidden: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    return hidden + 0.3 * rng.normal(size=len(hidden))


def read_nothing(hidden: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    return rng.normal(size=len(hidden))


def plant(
    read: Plant,
    rates: Sequence[float] = (1e-3, 3e-3, 1e-2),
    seeds: int = 3,
    salt: int = 0,
    **columns: Any,
) -> Networks:
    """Returns networks of two decoders and regions."""
    rng = np.random.default_rng(salt)
    grid = {"model": ("cnn", "mlp"), "region": ("square:1-2", "corner:3")}
    table = make_table({**grid, "depth": (2, 3, 4), "rate": rates}, seeds)
    table["half"] = table["seed"].map({"0": "confirm"}).fillna("explore")
    count = len(table)
    hidden = rng.normal(size=count)
    outcome = 0.3 * table["depth"].astype(float).to_numpy() + hidden
    outcome += table["region"] == "corner:3"
    numbers = {}
    for time in TIMES:
        numbers[f"{time}|id.noise"] = rng.normal(size=count)
        numbers[f"{time}|id_relative_mse"] = rng.normal(size=count)
        numbers[f"{time}|all.peeks"] = np.asarray(outcome)
        numbers[f"{time}|share"] = np.full(count, time * (time > 0.05))
    numbers["0.1|id.planted"] = read(hidden, rng)
    errors = 0.05 + 0.01 * rng.random(count)
    columns = {"id_relative_mse": errors} | columns
    return make_networks(table, np.asarray(outcome), numbers, **columns)
