"""Does a decoder solve what training determines? Splits by certificate.

By docs/decoder_evidence/plan.md, fixed before the runs: the number of a decoder
is the mean R^2 of held-out images, about their mean, over the runs whose ID R^2
is at least .9. The hypothesis: it rises with the share of combinations that
training determines at order 1.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from tfcomp.statistics.limits import AT_MOST_ONE, compute_student
from tfcomp.studies.decoders import decoder_table
from tfcomp.studies.decoders.decoder_table import (
    FITTED,
    FRESH,
    MORE_SEEDS,
    to_number,
)

RESAMPLES = 1000
MIN_SPLITS = 5  # for a correlation
DATA = "sprites"
RIVALS = {"additive", "cnn", "slots"}  # of decoders_law.flags
# Predictors without a network, by the name of their reference in a run.
PREDICTORS = {"additive": "additive", "nearest": "nearest_id"}


@dataclass(frozen=True)
class Solved:
    """The runs of one look at a decoder on a split, by seed."""

    runs: pd.DataFrame

    @functools.cached_property
    def fitted(self) -> pd.DataFrame:
        """The runs that fit and have a score."""
        return self.runs[
            (self.runs["r2/id"] >= FITTED) & self.runs["r2/ood"].notna()
        ]

    @property
    def first_seed(self) -> int:
        """The first of its seeds."""
        return int(self.runs["seed"].iloc[0])

    @property
    def mean(self) -> float | None:
        """The mean R^2 of held-out images over fitted runs."""
        return self.average("ood")

    def average(self, subset: str) -> float | None:
        """Returns the mean R^2 of a subset over fitted runs."""
        return to_number(self.fitted[f"r2/{subset}"].mean())

    @property
    def ends(self) -> tuple[float | None, float | None]:
        """The 95 % interval of the mean; None for a single run."""
        values = list(self.fitted["r2/ood"])
        return compute_student(values, AT_MOST_ONE) or (None, None)

    def count(self, gate: float) -> int:
        """Returns how many runs would fit if the gate were another one."""
        return int((self.runs["r2/id"] >= gate).sum())

    def __str__(self) -> str:
        """Formats as `0.94 [0.91, 0.97]`, with `4 of 5` if some do not fit."""
        count = f"{len(self.fitted)} of {len(self.runs)}"
        if self.mean is None:
            return f"not fitted ({count})"
        text, (low, high) = f"{self.mean:.2f}", self.ends
        if low is not None:
            text += f" [{low:.2f}, {high:.2f}]"
        if len(self.fitted) < len(self.runs):
            text += f", {count}"
        return text


@dataclass(frozen=True)
class Split:
    """A split, as `montero:range`, with all that was run on it.

    Attributes:
        num_train: The number of training images.
        certified: The share of held-out combinations that training determines,
            by order; None where it was not computed.
        missing: How many further images at least determine all at order 1.
        lit: Of the pixels that change over the data, the share whose range in
            training is at least half of that.
        predictors: R^2 of predictors without a network.
        decoders: The latest look at each decoder, by name.
        earlier: The looks before it.
    """

    name: str
    num_train: int | None
    certified: Mapping[int, float | None]
    missing: int | None
    lit: float | None
    predictors: Mapping[str, float | None]
    decoders: Mapping[str, Solved]
    earlier: Mapping[str, Sequence[Solved]]

    @property
    def share(self) -> float:
        """The certified share at order 1; 0 if it is not known."""
        return self.certified.get(1) or 0.0

    def get_first(self, decoder: str) -> Solved | None:
        """Returns the first look at a decoder, which is what is correlated."""
        earlier = self.earlier.get(decoder)
        return earlier[0] if earlier else self.decoders.get(decoder)


def list_splits(table: pd.DataFrame) -> list[Split]:
    """Returns the splits of sprites: the certified first, then by size.

    Of the sweeps of a decoder on a split, which their first seeds tell apart
    (`count_looks`), the latest complete one counts: it has as many runs as any,
    or as were planned for it.
    """
    table = table[table["dataset"] == DATA]
    groups = table.groupby("split", sort=False)
    splits = [_make_split(str(name), runs) for name, runs in groups]
    return sorted(splits, key=lambda s: (-s.share, -(s.num_train or 0)))


def _make_split(name: str, runs: pd.DataFrame) -> Split:
    """Returns a split with the looks at its decoders."""
    decoders: dict[str, Solved] = {}
    earlier = {}
    by_decoder: Any = runs.groupby("decoder")
    for model, own in by_decoder:
        looks = dict(
            list(own.groupby(own["seed"].map(decoder_table.count_looks)))
        )
        *before, decoders[model] = map(Solved, _list_complete(looks))
        # Version 1 had other rules.
        fresh = [solved for solved in before if solved.first_seed >= FRESH]
        if fresh:
            earlier[model] = fresh
    # Later versions of the code record more.
    latest = max(decoders.values(), key=lambda s: s.first_seed).runs.iloc[0]
    missing = to_number(latest.get("certificate/1/missing_rank", np.nan))
    num_train = to_number(latest.get("points/id", np.nan))
    return Split(
        decoder_table.shorten_split(name.removeprefix(f"{DATA} ")),
        None if num_train is None else int(num_train),
        {
            order: to_number(
                latest.get(f"certificate/{order}/certified", np.nan)
            )
            for order in (1, 2, 3)
        },
        None if missing is None else int(missing),
        to_number(latest.get("coverage/pixels", np.nan)),
        _get_predictors(latest),
        decoders,
        earlier,
    )


def _get_predictors(run: pd.Series) -> dict[str, float | None]:
    """Returns R^2 of predictors without a network, from their errors.

    The error and the R^2 of the run give the error of the mean image.
    """
    spread = run["ood/relative_mse"] / (1 - run["r2/ood"])
    errors = {
        name: run.get(f"references/{key}/ood", np.nan)
        for name, key in PREDICTORS.items()
    }
    errors["blank"] = 1.0
    return {name: to_number(1 - e / spread) for name, e in errors.items()}


def _list_complete(looks: Mapping[int, pd.DataFrame]) -> list[pd.DataFrame]:
    """Returns the looks that have all of their runs; at least the last one."""
    usual = [len(runs) for n, runs in looks.items() if n not in MORE_SEEDS]
    size = max(usual, default=0)
    complete = [
        looks[number]
        for number in sorted(looks)
        if len(looks[number]) >= MORE_SEEDS.get(number, size)
    ]
    return complete or [looks[max(looks)]]


def list_new(splits: Sequence[Split]) -> list[Split]:
    """Returns the splits that were not used when the hypothesis was stated.

    `RIVALS` have run on them; runs of further decoders do not add splits.
    """
    return [
        split
        for split in splits
        if not RIVALS.isdisjoint(split.decoders)
        and all(s.first_seed >= FRESH for s in split.decoders.values())
    ]


def correlate(
    splits: Sequence[Split], decoder: str
) -> tuple[float, float, float, int] | None:
    """Returns Kendall's tau of R^2 (of the first look) and certified share.

    Its 95 % interval over resampled splits and their number follow. None for
    fewer than five splits, or where all are certified alike.
    """
    pairs = [
        (split.share, solved.mean)
        for split in splits
        if (solved := split.get_first(decoder)) and solved.mean is not None
    ]
    if len(pairs) < MIN_SPLITS or len({share for share, _ in pairs}) < 2:
        return None
    table = np.array(pairs)
    rng = np.random.default_rng(0)
    rows = rng.integers(0, len(table), (RESAMPLES, len(table)))
    taus = _compute_tau(table[rows])
    known = taus[np.isfinite(taus)]
    if not len(known):
        return None  # all R^2 are alike
    low, high = np.percentile(known, [2.5, 97.5])
    return float(_compute_tau(table)), float(low), float(high), len(table)


def _compute_tau(pairs: np.ndarray) -> np.ndarray:
    """Returns Kendall's tau-b of pairs [..., n, 2]; NaN for a constant."""
    signs = np.sign(pairs[..., :, None, :] - pairs[..., None, :, :])
    agreeing = signs.prod(axis=-1).sum(axis=(-1, -2))
    untied = np.abs(signs).sum(axis=(-2, -3)).prod(axis=-1)
    with np.errstate(invalid="ignore"):
        return agreeing / np.sqrt(untied)
