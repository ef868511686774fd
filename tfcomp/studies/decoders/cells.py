"""Runs of decoders on splits, judged as claims are.

A **cell** is a decoder on a split: data, region and, of data that compose in a
known way, their composition. docs/decoders.md has the rules: which runs count,
and when a decoder composes, fails, is undecided or not fitted. R² is about the
mean of the images that are scored.

Where the composition is known, the decoder that is it (`EXACT`) must compose,
by the theory, and the field expects all others to fail. Nothing is expected of
decoders that have it as a special case and more, of `attention`, nor of
occlusions whose objects never meet in training (`WIDER`, `EXPECTED`).
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from statistics import median
from typing import Any

from tfcomp.statistics.estimates import Estimate
from tfcomp.statistics.limits import AT_MOST_ONE
from tfcomp.statistics.setting_table import choose_flags
from tfcomp.statistics.verdicts import Rule, Verdict, above, combine
from tfcomp.studies.claims.claim import Case, Gate, Number
from tfcomp.studies.claims.parts import Part, measure
from tfcomp.tables.flatten import END
from tfcomp.tables.groups import Group

FITTED = Gate("r2/id", Rule(low=0.9))
R2 = Number("R² of held-out images", "r2/ood", above(0.9), limits=AT_MOST_ONE)
FRESH = 200  # the first seed of version 2 of the comparison
SHAPES = "square,ellipse,heart"  # of sprites, before there were others
# Composition of the data to the decoder that is it.
EXACT = {"sum": "additive", "product": "product", "occlusion": "occlusion"}
# Those that have every other composition as a special case, and attention.
WIDER = (
    "low_rank_product occlusion slots attention low_rank hard_rendering acting"
).split()
SUPPORTS = ("orthogonal", "diagonal:.4")
# The splits on which something is expected of decoders.
EXPECTED = [
    f"composed {composition} {support}"
    for composition, support in product(EXACT, SUPPORTS)
    if (composition, support) != ("occlusion", "orthogonal")
]
VERDICTS = {Verdict.REPRODUCED: "composes", Verdict.REFUTED: "fails"}


@dataclass(frozen=True, eq=False)
class Cell:
    """The runs of a decoder on a split, which differ in their seeds."""

    split: str
    decoder: str
    group: Group

    @functools.cached_property
    def part(self) -> Part:
        """The judged R² of fitted runs."""
        (part,) = measure(Case(self.split, [self.group]), [R2], [FITTED])
        return part

    @property
    def fitted(self) -> Group:
        """The runs that count."""
        return self.part.groups[0]

    @property
    def estimate(self) -> Estimate | None:
        """The mean R²; None if a fitted run lacks it."""
        return self.part.estimate

    @property
    def mean(self) -> float | None:
        """The mean R², if it is known."""
        return self.estimate.mean if self.estimate else None

    @property
    def data(self) -> str:
        """The data of the split, as `composed` or `gaussian_bumps`."""
        return self.split.split()[0]

    @property
    def verdict(self) -> str:
        """The verdict of docs/decoders.md."""
        if not len(self.fitted):
            return "not fitted"
        return VERDICTS.get(self.part.verdict, "undecided")

    @property
    def expected(self) -> str | None:
        """Returns `composes` or `fails` where the composition is known."""
        if self.split not in EXPECTED:
            return None
        if self.decoder == EXACT[self.split.split()[1]]:
            return "composes"
        return None if self.decoder in WIDER else "fails"

    def average(self, path: str) -> float | None:
        """Returns the mean of a number over fitted seeds, or all."""
        return average(self.fitted if len(self.fitted) else self.group, path)


def average(group: Group, path: str) -> float | None:
    """Returns the mean of a number over runs that have it."""
    mean = group.get(path).mean()
    return None if mean != mean else float(mean)


def list_cells(groups: Iterable[Group]) -> list[Cell]:
    """Returns the cells of the first seeds, by names of splits and decoders.

    Where runs of a split differ in more flags than the seed, its name says in
    which, as ` (grid_size 64)`.
    """
    groups = list(groups)
    old = [g.keep([s for s in g.seeds if s < FRESH]) for g in groups]
    cells: dict[tuple[str, str], list[Group]] = {}
    for group in filter(len, old if any(map(len, old)) else groups):
        key = describe_split(group.flags), group.flags["model"]
        cells.setdefault(key, []).append(group)
    found = []
    for (split, decoder), alike in sorted(cells.items()):
        names = choose_flags([group.flags for group in alike])
        for group in alike:
            words = ", ".join(f"{n} {group.flags[n]}" for n in names)
            label = f"{split} ({words})" if words else split
            found.append(Cell(label, decoder, group))
    return found


def describe_split(flags: Mapping[str, Any]) -> str:
    """Returns data and region, as `sprites montero:range`.

    Sprites of other shapes than the first are `sprites:heart,triangle,l`.
    """
    data, region = flags["dataset"], flags["region"]
    shapes = flags.get("sprite_shapes", SHAPES)
    if data == "sprites" and shapes != SHAPES:
        data += f":{shapes}"
    if data != "composed":
        return f"{data} {region}"
    _, _, kind = region.partition("wiedemer:")
    return f"{data} {flags['composition']} {kind.partition(':x_')[0]}"


def add_r2(groups: Iterable[Group]) -> list[Group]:
    """Adds R² to runs that lack it.

    It follows from their error and from the error of the mean of the scored
    images, which other runs on the same images have recorded.
    """
    groups, means = list(groups), dict[tuple[Any, ...], list[float]]()
    for group in groups:
        for subset in ("id", "ood"):
            error = group.get(f"{subset}/relative_mse")
            mean = error / (1 - group.get(f"r2/{subset}"))
            known = means.setdefault((*_get_images(group), subset), [])
            known += mean.dropna().tolist()
    completed = []
    for group in groups:
        columns = dict(group.columns)
        for subset in ("id", "ood"):
            r2 = group.get(f"r2/{subset}")
            if known := means[(*_get_images(group), subset)]:
                error = group.get(f"{subset}/relative_mse")
                r2 = r2.fillna(1 - error / median(known))
            known_r2 = {int(str(s)): float(v) for s, v in r2.dropna().items()}
            columns[END, f"r2/{subset}"] = {"": known_r2}
        completed.append(dataclasses.replace(group, columns=columns))
    return completed


def _get_images(group: Group) -> tuple[Any, ...]:
    names = ("grid_size", "num_positions")
    return describe_split(group.flags), *map(group.flags.get, names)


def judge_expectations(cells: Sequence[Cell]) -> list[list[str]]:
    """Judges both statements on every split, and on all in the last row.

    They are: the decoder that is the composition composes; all others that
    must fail do.
    """
    rows = []
    for split in EXPECTED:
        row = [split]
        for expected in VERDICTS.values():
            verdicts = [
                _compare(cell)
                for cell in cells
                if cell.split == split and cell.expected == expected
                # A decoder that does not fit does not count as a failure.
                if expected == "composes" or len(cell.fitted)
            ]
            row.append(combine(verdicts)[0])
        rows.append(row)
    _, *columns = zip(*rows, strict=True)
    every = [combine([Verdict(v) for v in c])[0] for c in columns]
    return [*rows, ["all", *every]]


def _compare(cell: Cell) -> Verdict:
    if cell.verdict not in VERDICTS.values():
        return Verdict.UNDECIDED
    is_right = cell.verdict == cell.expected
    return Verdict.REPRODUCED if is_right else Verdict.REFUTED
