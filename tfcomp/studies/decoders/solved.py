"""Splits by the share of combinations that training determines at order 1.

By docs/decoder_evidence/plan.md, fixed before the runs: the number of a decoder
is the mean R^2 of held-out images, about their mean, over runs whose ID R^2 is
at least .9. The hypothesis: it rises with the share that training determines.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from tfcomp.studies.decoders.cells import FRESH, Cell, read_number

RESAMPLES = 1000
MIN_SPLITS = 5  # for a correlation
DATA = "sprites"
RIVALS = {"additive", "cnn", "slots"}  # of decoders_law.flags
# Predictors without a network, by the name of their reference in a run.
PREDICTORS = {"additive": "additive", "nearest": "nearest_id"}
# First seeds of the replication rounds of version 2.
ROUNDS = (FRESH, 210, 220)
MORE_SEEDS = {3: 20}  # of rounds, by number, that have more runs than others


@dataclass(frozen=True)
class Split:
    """A split, as `montero:range`, with all runs on it.

    Attributes:
        facts: Numbers of the latest run, by their paths.
        rounds: The complete rounds of each decoder, the latest last.
    """

    name: str
    facts: Mapping[Any, Any]
    rounds: Mapping[str, Sequence[Cell]]

    @property
    def latest(self) -> dict[str, Cell]:
        """The latest round of each decoder, by name."""
        return {name: rounds[-1] for name, rounds in self.rounds.items()}

    def read(self, path: str) -> float | None:
        """Returns a fact about the split; None if no run recorded it."""
        return read_number(self.facts, path)

    @property
    def share(self) -> float:
        """The share determined at order 1; 0 if it is not known."""
        return self.read("certificate/1/certified") or 0.0

    @functools.cached_property
    def predictors(self) -> dict[str, float | None]:
        """R^2 of predictors without a network, from their errors.

        The error and the R^2 of the run give the error of the mean image.
        """
        error, r2 = self.read("ood/relative_mse"), self.read("r2/ood")
        errors = {
            name: self.read(f"references/{key}/ood")
            for name, key in PREDICTORS.items()
        }
        errors["blank"] = 1.0
        return {
            name: None
            if other is None or error is None or r2 is None
            else 1 - other / (error / (1 - r2))
            for name, other in errors.items()
        }


def list_splits(table: pd.DataFrame) -> list[Split]:
    """Returns the splits of sprites: the determined ones first, then by size.

    Of the rounds of a decoder on a split, which their first seeds tell apart,
    complete ones count: they have as many runs as any, or as were planned.
    """
    table = table[table["dataset"] == DATA]
    columns = {f"{s}_r2": table.get(f"r2/{s}", np.nan) for s in ("id", "ood")}
    groups = table.assign(**columns).groupby("split", sort=False)
    splits = [_make_split(str(name), runs) for name, runs in groups]

    def rank(split: Split) -> tuple[float, float]:
        return -split.share, -(split.read("points/id") or 0)

    return sorted(splits, key=rank)


def _make_split(name: str, runs: pd.DataFrame) -> Split:
    rounds = {}
    for decoder, own in runs.groupby("decoder"):
        numbers = own["seed"].map(lambda s: sum(s >= f for f in ROUNDS))
        found = {int(str(n)): group for n, group in own.groupby(numbers)}
        *before, last = _list_complete(found)
        # Version 1 had other rules.
        kept = [group for group in before if group["seed"].min() >= FRESH]
        rounds[str(decoder)] = [
            Cell(name, str(decoder), group) for group in (*kept, last)
        ]
    # Later versions of the code record more.
    last_runs = [cells[-1].runs.iloc[0] for cells in rounds.values()]
    facts: Any = max(last_runs, key=lambda run: run["seed"])
    region, _, images = name.removeprefix(f"{DATA} ").partition("&not:")
    # The images complete the certificate of the region.
    return Split(region + " completed" * bool(images), facts, rounds)


def _list_complete(rounds: Mapping[int, pd.DataFrame]) -> list[pd.DataFrame]:
    """Returns the rounds that have all of their runs; at least the last one."""
    usual = [len(runs) for n, runs in rounds.items() if n not in MORE_SEEDS]
    size = max(usual, default=0)
    complete = [
        rounds[number]
        for number in sorted(rounds)
        if len(rounds[number]) >= MORE_SEEDS.get(number, size)
    ]
    return complete or [rounds[max(rounds)]]


def list_new(splits: Sequence[Split]) -> list[Split]:
    """Returns the splits that were not used when the hypothesis was stated.

    `RIVALS` have run on them; runs of further decoders do not add splits.
    """
    return [
        split
        for split in splits
        if not RIVALS.isdisjoint(split.rounds)
        and all(c.runs["seed"].min() >= FRESH for c in split.latest.values())
    ]


def correlate(
    splits: Sequence[Split], decoder: str
) -> tuple[float, float, float, int] | None:
    """Returns Kendall's tau of R^2 (of the first round) and determined share.

    Its 95 % interval over resampled splits and their number follow. None for
    fewer than five splits, or where all shares or all R^2 are alike.
    """
    from scipy import stats

    pairs = [
        (split.share, cell.mean)
        for split in splits
        for cell in split.rounds.get(decoder, ())[:1]
        if cell.mean is not None
    ]
    if len(pairs) < MIN_SPLITS:
        return None
    table = np.array(pairs)
    rng = np.random.default_rng(0)
    rows = rng.integers(0, len(table), (RESAMPLES, len(table)))
    tau, *taus = (
        stats.kendalltau(*sample.T).statistic
        for sample in (table, *table[rows])
    )
    if np.isnan(tau):
        return None
    low, high = np.nanpercentile(taus, [2.5, 97.5])
    return float(tau), float(low), float(high), len(table)
