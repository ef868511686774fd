"""Runs of decoders on splits, judged by one rule.

A **cell** is a decoder on a split: data, region and, of data that compose in a
known way, their composition. docs/decoders.md has the rules: which runs count,
and when a decoder composes, fails, is undecided or not fitted. R^2 refers to
the mean training image: 1 - MSE / MSE of that image.

Where the composition is known, the decoder that is it (`EXACT`) must compose,
by the theory, and the field expects all others to fail. Nothing is expected of
decoders that have it as a special case and more, of `attention`, nor of
occlusions whose objects never meet in training (`WIDER`, `EXPECTED`).
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tfcomp.statistics.estimates import Estimate, estimate_mean
from tfcomp.statistics.limits import AT_MOST_ONE
from tfcomp.statistics.setting_table import choose_flags
from tfcomp.statistics.verdicts import Verdict, above, below, combine, judge
from tfcomp.storage.files import write_csv
from tfcomp.tables import Results

if TYPE_CHECKING:
    import pandas as pd

FITTED = 0.9
COMPOSES = 0.9
FRESH = 200  # the first seed of version 2 of the comparison
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
RULES = {"composes": above(COMPOSES), "fails": below(COMPOSES)}


@dataclass(frozen=True)
class Cell:
    """The runs of a decoder on a split, which differ in their seeds."""

    split: str
    decoder: str
    runs: pd.DataFrame  # as `tabulate_runs` makes it

    @functools.cached_property
    def fitted(self) -> pd.DataFrame:
        """The runs that count."""
        return self.runs[self.runs["id_r2"] >= FITTED]

    @functools.cached_property
    def estimate(self) -> Estimate | None:
        """The mean OOD R^2; None if a fitted run lacks it."""
        return estimate_mean(list_values(self.fitted, "ood_r2"), AT_MOST_ONE)

    @property
    def mean(self) -> float | None:
        """The mean OOD R^2, if it is known."""
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
        for verdict, rule in RULES.items():
            if judge(self.estimate, rule)[0] is Verdict.REPRODUCED:
                return verdict
        return "undecided"

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
        runs = self.fitted if len(self.fitted) else self.runs
        return average(runs, path)


def list_values(runs: pd.DataFrame, path: str) -> dict[int, float | None]:
    """Returns a number of each run by seed; None where it is missing."""
    pairs = zip(runs["seed"], runs[path], strict=True)
    return {seed: None if value != value else value for seed, value in pairs}


def read_number(numbers: Any, path: str) -> float | None:
    """Returns a number of a run, or None if it is missing."""
    value = numbers.get(path)
    return None if value is None or value != value else float(value)


def average(runs: pd.DataFrame, path: str) -> float | None:
    """Returns the mean of a number over runs that have it."""
    return read_number(runs.reindex(columns=[path]).mean(), path)


def tabulate_runs(results: Results) -> pd.DataFrame:
    """Returns a row for each run, in the order of seeds.

    Its columns are `split`, `decoder`, `dataset`, `seed`, `setting`, the
    numbers of the run by their paths, and R^2 about the mean training image,
    `id_r2` and `ood_r2`.
    """
    runs = results.runs.set_index("run")
    rows: list[Any] = runs.to_dict("records")
    table = runs[["dataset", "seed", "setting"]].assign(
        split=[describe_split(row) for row in rows], decoder=runs["model"]
    )
    table = table.join(results.scores)
    for subset in ("id", "ood"):
        paths = [f"references/mean_image/{subset}", f"{subset}/relative_mse"]
        numbers = table.reindex(columns=paths)
        mean, error = numbers[paths[0]], numbers[paths[1]]
        table[f"{subset}_r2"] = 1 - error / mean.where(mean > 0)
    return table.sort_values("seed", kind="stable")


def list_cells(
    table: pd.DataFrame, flags: Mapping[str, Mapping[str, Any]]
) -> list[Cell]:
    """Returns the cells of runs, by the names of splits and decoders.

    Runs of a cell differ in their seeds alone. Where runs of a split differ in
    more flags, its name says in which, as ` (grid_size 64)`.
    """
    cells = []
    pairs: Any = table.groupby(["split", "decoder"])
    for (split, decoder), runs in pairs:
        groups = {str(k): g for k, g in runs.groupby("setting", sort=False)}
        every = {name: None for key in groups for name in flags[key]}
        settings = {key: every | dict(flags[key]) for key in groups}
        names = choose_flags(list(settings.values()))
        for key, group in groups.items():
            words = ", ".join(f"{n} {settings[key][n]}" for n in names)
            name = f"{split} ({words})" if words else split
            cells.append(Cell(name, decoder, group))
    return cells


def describe_split(flags: Mapping[str, Any]) -> str:
    """Returns data and region, as `sprites montero:range`."""
    data, region = flags["dataset"], flags["region"]
    if data != "composed":
        return f"{data} {region}"
    _, _, kind = region.partition("wiedemer:")
    return f"{data} {flags['composition']} {kind.partition(':x_')[0]}"


def judge_expectations(cells: Iterable[Cell]) -> list[list[str]]:
    """Judges both statements on every split, and on all in the last row.

    They are: the decoder that is the composition composes; all others that
    must fail do.
    """
    cells, rows = list(cells), []
    for split in EXPECTED:
        verdicts: dict[str, list[Verdict]] = {name: [] for name in RULES}
        for cell in cells:
            expected = cell.expected if cell.split == split else None
            if expected == "composes" or (expected and len(cell.fitted)):
                found = judge(cell.estimate, RULES[expected])[0]
                is_open = found is Verdict.NOT_RUN  # not fitted, or no score
                verdicts[expected].append(
                    Verdict.UNDECIDED if is_open else found
                )
        rows.append([split, *(combine(v)[0] for v in verdicts.values())])
    _, *columns = zip(*rows, strict=True)
    return [*rows, ["all", *(combine(column)[0] for column in columns)]]


def write_rounded(path: Path, rows: Iterable[dict[str, Any]]) -> None:
    """Writes rows as CSV, with six digits, which all machines share."""
    table = [
        {k: float(f"{v:.6g}") if isinstance(v, float) else v for k, v in items}
        for items in (row.items() for row in rows)
    ]
    write_csv(path, table)
