"""Does a decoder solve what training determines? Splits by certificate.

By docs/decoders_plan.md, fixed before the runs: the number of a decoder is the
mean R^2 of held-out images, about their mean, over the runs whose ID R^2 is at
least .9. The law: it rises with the share of combinations that are certified at
order 1.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

import numpy as np

from tfcomp.statistics.limits import AT_MOST_ONE, compute_student
from tfcomp.studies.claims.evidence import Run
from tfcomp.studies.decoders import decoder_table, split_facts
from tfcomp.studies.decoders.decoder_table import FITTED, FRESH, MORE_SEEDS
from tfcomp.studies.decoders.split_facts import SplitFacts, get_r2

RESAMPLES = 1000
MIN_SPLITS = 5  # for a law
DATA = "sprites"
RIVALS = {"additive", "cnn", "slots"}  # of decoders_law.flags


@dataclass(frozen=True)
class Solved:
    """The runs of a decoder on a split that fit, of all."""

    runs: tuple[Run, ...]  # all, in the order of their seeds
    values: Mapping[int, float]  # R^2 of held-out images by seed, if it fits

    @classmethod
    def make(cls, runs: Sequence[Run]) -> Solved:
        """Judges the gate run by run."""
        ordered = sorted(runs, key=lambda run: run.seed)
        fitted = [run for run in ordered if (get_r2(run, "id") or 0) >= FITTED]
        values = {run.seed: get_r2(run, "ood") for run in fitted}
        known = {seed: v for seed, v in values.items() if v is not None}
        return cls(tuple(ordered), known)

    @property
    def mean(self) -> float | None:
        """Of the fitted runs."""
        return fmean(self.values.values()) if self.values else None

    def average(self, subset: str) -> float | None:
        """Mean R^2 over fitted runs of `certified` or `others`."""
        chosen = [run for run in self.runs if run.seed in self.values]
        found = [v for r in chosen if (v := get_r2(r, subset)) is not None]
        return fmean(found) if found else None

    @property
    def ends(self) -> tuple[float | None, float | None]:
        """The 95 % interval of the mean; None of a single run."""
        values = list(self.values.values())
        return compute_student(values, AT_MOST_ONE) or (None, None)

    def count(self, gate: float) -> int:
        """How many runs would fit if the gate were another one."""
        return sum((get_r2(run, "id") or 0) >= gate for run in self.runs)

    def __str__(self) -> str:
        """As `0.94 [0.91, 0.97]`, with `4 of 5` if some do not fit."""
        count = f"{len(self.values)} of {len(self.runs)}"
        if self.mean is None:
            return f"not fitted ({count})"
        text, (low, high) = f"{self.mean:.2f}", self.ends
        if low is not None:
            text += f" [{low:.2f}, {high:.2f}]"
        if len(self.values) < len(self.runs):
            text += f", {count}"
        return text


@dataclass(frozen=True)
class Split:
    """A split, as `montero:range`, with all that was run on it."""

    name: str
    facts: SplitFacts
    predictors: Mapping[str, float | None]  # R^2 of those without a network
    decoders: Mapping[str, Solved]  # by name, the latest look at each
    earlier: Mapping[str, Sequence[Solved]]  # and those before, if there were

    @property
    def certified(self) -> float:
        """The share at order 1; 0 if it is not known."""
        return self.facts.certified.get(1) or 0.0

    def get_first(self, decoder: str) -> Solved | None:
        """The first look at a decoder, which laws are judged by."""
        earlier = self.earlier.get(decoder)
        return earlier[0] if earlier else self.decoders.get(decoder)


def list_splits(runs: Sequence[Run]) -> list[Split]:
    """The splits of sprites: the certified first, then the larger ones.

    Of the sweeps of a decoder on a split, which their first seeds tell apart
    (`count_looks`), the latest counts that is complete: it has as many runs as
    any, or as were planned for it. Splits whose data are not here are left out.
    """
    found: dict[str, dict[str, dict[int, list[Run]]]] = {}
    for run in runs:
        if run.flags["dataset"] == DATA:
            decoders = found.setdefault(decoder_table.describe_split(run), {})
            looks = decoders.setdefault(run.flags["model"], {})
            looks.setdefault(decoder_table.count_looks(run), []).append(run)
    made = [_make_split(name, decoders) for name, decoders in found.items()]
    splits = [split for split in made if split is not None]
    return sorted(splits, key=lambda s: (-s.certified, -s.facts.num_train))


def _make_split(
    name: str, decoders: Mapping[str, Mapping[int, list[Run]]]
) -> Split | None:
    """A split of the looks at its decoders; None if its data are not here."""
    chosen, earlier = {}, {}
    for model, looks in sorted(decoders.items()):
        *before, chosen[model] = _list_complete(looks)
        # Version 1 had other rules.
        fresh = [runs for runs in before if runs[0].seed >= FRESH]
        if fresh:
            earlier[model] = [Solved.make(runs) for runs in fresh]
    # Those that were scored at all points know the spread best.
    first = max((r[0] for r in chosen.values()), key=lambda r: r.seed)
    facts = split_facts.find_facts(first)
    if facts is None:
        return None
    solved = {model: Solved.make(r) for model, r in chosen.items()}
    short = decoder_table.shorten_split(name.removeprefix(f"{DATA} "))
    return Split(
        short, facts, split_facts.get_predictors(first), solved, earlier
    )


def _list_complete(looks: Mapping[int, list[Run]]) -> list[list[Run]]:
    """The looks that have all of their runs; at least the last one."""
    usual = [len(runs) for n, runs in looks.items() if n not in MORE_SEEDS]
    size = max(usual, default=0)
    complete = [
        looks[number]
        for number in sorted(looks)
        if len(looks[number]) >= MORE_SEEDS.get(number, size)
    ]
    return complete or [looks[max(looks)]]


def list_new(splits: Sequence[Split]) -> list[Split]:
    """The splits of the law: nobody had run them, now `RIVALS` have.

    What further decoders run on later does not make them more.
    """
    return [
        split
        for split in splits
        if not RIVALS.isdisjoint(split.decoders)
        and all(s.runs[0].seed >= FRESH for s in split.decoders.values())
    ]


def correlate(
    splits: Sequence[Split], decoder: str
) -> tuple[float, float, float, int] | None:
    """Kendall's tau of R^2 (of the first look) and certified share.

    Then its 95 % interval over splits that are drawn again, and how many there
    are; None of fewer than five, or where all are certified alike.
    """
    pairs = [
        (split.certified, solved.mean)
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
    """Kendall's tau-b of pairs [..., n, 2]; NaN where one side is constant."""
    signs = np.sign(pairs[..., :, None, :] - pairs[..., None, :, :])
    agreeing = signs.prod(axis=-1).sum(axis=(-1, -2))
    untied = np.abs(signs).sum(axis=(-2, -3)).prod(axis=-1)
    with np.errstate(invalid="ignore"):
        return agreeing / np.sqrt(untied)
