"""Planted worlds: tables of runs whose numbers are known."""

from collections.abc import Mapping, Sequence
from typing import Any

from pandas import DataFrame

from reproduction.claims import Evidence, Row
from reproduction.claims.evidence import SEARCH_COLUMNS
from tfcomp.tables import flatten
from tfcomp.tables.read import Results

FITTED = {"id/relative_mse": 0.01, "id/position_accuracy": 1.0}
STAGES = ("code", "stage_0", "stage_1", "stage_2", "image")


def start(numbers: Mapping[str, Any]) -> dict[str, Any]:
    """The same numbers, of the untrained network."""
    return {f"start/{name}": value for name, value in numbers.items()}


def find(claim: Any, evidence: Evidence, part: str, words: str = "") -> Row:
    """The first row of a part whose quantity begins with some words."""
    for row in claim.judge(evidence):
        if row.part == part and row.quantity.startswith(words):
            return row
    raise LookupError(part, words)


def plant_run(
    flags: Mapping[str, Any], seed: int, numbers: Mapping[str, Any]
) -> flatten.Run:
    """Makes a run; a list has a number for each of `STAGES`.

    A number whose name begins with `start/` is of the untrained network.
    """
    every = {**flatten.get_defaults(), **flags, "seed": seed}
    rows = []
    for path, value in (FITTED | dict(numbers)).items():
        when = "start" if path.startswith("start/") else "end"
        name = path.removeprefix("start/")
        subset = "all"
        if name.partition("/")[0] in ("id", "ood", "ood_plus"):
            subset, _, name = name.partition("/")
        by_stage = {"": value}
        if isinstance(value, list):
            by_stage = dict(zip(STAGES, value, strict=True))
        for stage, number in by_stage.items():
            rows.append((when, subset, stage, name, float(number)))
    return flatten.Run(flatten.describe_run(every), rows)


def plant(
    *groups: tuple[Mapping[str, Any], range, Mapping[str, Any]],
) -> Evidence:
    """Makes evidence of settings, their seeds, and numbers of each run.

    Numbers differ a little between seeds, as those of networks do.
    """
    runs = []
    for flags, seeds, numbers in groups:
        for place, seed in enumerate(seeds):
            factor = 1 + 1e-3 * (place % 3)
            varied = {}
            for name, value in numbers.items():
                varied[name] = _scale(value, factor)
            runs.append(plant_run(flags, seed, varied))
    return Evidence(Results(runs))


def plant_searches(
    sizes: Sequence[int], power: int, spread: float = 0.01
) -> DataFrame:
    """Searches of five seeds with thresholds of a power over a floor."""
    searches = []
    for size in sizes:
        for seed in range(5):
            factor = 1 + spread * (seed - 2) / 2
            count = factor * (300 + 300 * (size / 24) ** power)
            row = ("bumps", "position_accuracy", size, seed)
            searches.append((*row, count, True, 0.95))
    return DataFrame(searches, columns=SEARCH_COLUMNS)


def _scale(value: Any, factor: float) -> Any:
    if isinstance(value, list):
        return [_scale(number, factor) for number in value]
    return min(value * factor, 1.0) if 0 < value <= 1 else value * factor
