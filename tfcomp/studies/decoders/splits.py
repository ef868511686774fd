"""Splits of sprites by the share of combinations that training determines.

By docs/decoder_evidence/plan.md, fixed before the runs: the number of a decoder
is the mean R² of held-out images, over runs whose ID R² is at least .9. A
decoder solves a split if the lower end of its interval lies above .9 and above
the best reference, a predictor without a network.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tfcomp.studies.decoders.cells import FRESH, Cell, describe_split
from tfcomp.tables.groups import Columns, Group

BOUND = 0.9
RIVALS = {"additive", "cnn", "slots"}  # of decoders_law.flags
# First seeds of the replication rounds of version 2.
ROUNDS = (FRESH, 210, 220)


@dataclass(frozen=True)
class Split:
    """A split, as `montero:range`, with all runs on it.

    Attributes:
        facts: The latest run, which has recorded most.
        rounds: The rounds of each decoder, the latest last.
    """

    name: str
    facts: Group
    rounds: Mapping[str, Sequence[Cell]]

    @property
    def latest(self) -> dict[str, Cell]:
        """The latest round of each decoder, by name."""
        return {name: rounds[-1] for name, rounds in self.rounds.items()}

    def read(self, path: str) -> float | None:
        """Returns a fact about the split; None if no run recorded it."""
        (value,) = self.facts.get(path)
        return None if value != value else float(value)

    @property
    def share(self) -> float:
        """The share determined at order 1; 0 if it is not known."""
        return self.read("certificate/1/certified") or 0.0

    @functools.cached_property
    def references(self) -> dict[str, float]:
        """R² of predictors without a network, from their errors.

        The error and the R² of the run give the error of the mean image.
        """
        error, r2 = self.read("ood/relative_mse"), self.read("r2/ood")
        if error is None or r2 is None:
            return {}
        mean, start = error / (1 - r2), "references/"
        errors = {
            path.removeprefix(start).removesuffix("/ood"): self.read(path)
            for _, path in self.facts.columns
            if path.startswith(start) and path.endswith("/ood")
        }
        errors.pop("mean_image", None)  # of training: it has no number here
        return {n: 1 - e / mean for n, e in errors.items() if e is not None}

    def is_solved(self, cell: Cell) -> str:
        """Returns yes, no or `?` of a decoder; empty if it does not fit."""
        found = cell.estimate
        if found is None or found.low is None or found.high is None:
            return ""
        bound = max(BOUND, *self.references.values(), -1.0)
        if found.low > bound:
            return "yes"
        return "no" if found.high <= bound else "?"


def list_splits(groups: Iterable[Group], data: str) -> list[Split]:
    """Returns the splits of data: the determined ones first, then by size.

    First seeds tell the rounds of a decoder apart.
    """
    found: dict[str, dict[str, list[Group]]] = {}
    for group in groups:
        split = describe_split(group.flags)
        if split.startswith(f"{data} "):
            decoders = found.setdefault(split, {})
            decoders.setdefault(group.flags["model"], []).append(group)
    splits = [_make_split(name, decoders) for name, decoders in found.items()]

    def rank(split: Split) -> tuple[float, float]:
        return -split.share, -(split.read("points/id") or 0)

    return sorted(splits, key=rank)


def _make_split(name: str, decoders: Mapping[str, Sequence[Group]]) -> Split:
    rounds = {}
    for decoder, groups in sorted(decoders.items()):
        *before, last = _list_rounds(_merge(groups))
        # Version 1 had other rules.
        kept = [group for group in before if group.seeds[0] >= FRESH]
        rounds[decoder] = [Cell(name, decoder, g) for g in (*kept, last)]
    # Later versions of the code record more.
    last_rounds = [cells[-1].group for cells in rounds.values()]
    facts = max(last_rounds, key=lambda group: group.seeds[0])
    region, _, images = name.partition(" ")[2].partition("&not:")
    # The images complete the certificate of the region.
    label = region + " completed" * bool(images)
    return Split(label, facts.keep(facts.seeds[:1]), rounds)


def _merge(groups: Sequence[Group]) -> Group:
    """Joins the runs of settings of a decoder, which have rounds of seeds."""
    runs: dict[int, Mapping[str, Any]] = {}
    columns: Columns = {}
    for group in groups:
        runs |= dict(group.runs)
        for key, stages in group.columns.items():
            values = columns.setdefault(key, {})
            for stage, numbers in stages.items():
                values.setdefault(stage, {}).update(numbers)
    kept = dict(sorted(runs.items()))
    return dataclasses.replace(groups[0], runs=kept, columns=columns)


def _list_rounds(group: Group) -> list[Group]:
    """Returns the runs of each round, in the order of seeds."""
    rounds: dict[int, list[int]] = {}
    for seed in group.seeds:
        rounds.setdefault(sum(seed >= f for f in ROUNDS), []).append(seed)
    return [group.keep(seeds) for seeds in rounds.values()]


def list_new(splits: Sequence[Split]) -> list[Split]:
    """Returns the splits that were not used when the hypothesis was stated.

    `RIVALS` have run on them; runs of further decoders do not add splits.
    """
    return [
        split
        for split in splits
        if not RIVALS.isdisjoint(split.rounds)
        and all(c.group.seeds[0] >= FRESH for c in split.latest.values())
    ]


def count_ordered(
    splits: Sequence[Split], decoder: str
) -> tuple[int, int, int]:
    """Counts determined and other splits, and pairs of both that are in order.

    A pair is in order if the R² of the first round is higher on the determined
    split.
    """
    means = [
        (split.share == 1, cell.mean)
        for split in splits
        for cell in split.rounds.get(decoder, ())[:1]
        if cell.mean is not None
    ]
    known = [mean for is_known, mean in means if is_known]
    others = [mean for is_known, mean in means if not is_known]
    ordered = sum(a > b for a in known for b in others)
    return len(known), len(others), ordered
