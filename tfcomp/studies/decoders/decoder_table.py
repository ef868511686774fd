"""Which decoder composes? Runs of decoders on splits, judged by one rule.

A **case** is a decoder on a split: data, region and, of data that compose in a
known way, their composition. docs/decoders.md has the rules: which runs count,
and when a case composes, fails, is undecided or not fitted. R^2 refers to the
mean training image: 1 - MSE / MSE of that image.

Where the composition is known, the decoder that is it (`EXACT`) must compose,
by the theory, and the field expects all others to fail. Nothing is expected of
decoders that have it as a special case and more, of `attention`, nor of
occlusions whose objects never meet in training (`WIDER`, `EXPECTED`).
"""

from __future__ import annotations

import functools
import math
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tfcomp.statistics.limits import AT_MOST_ONE, compute_student
from tfcomp.statistics.setting_table import choose_flags
from tfcomp.storage.files import write_csv
from tfcomp.tables import Results

if TYPE_CHECKING:
    import pandas as pd

FITTED = 0.9
COMPOSES = 0.9
MIN_SEEDS = 3
FRESH = 200  # the first seed of version 2 of the comparison
# First seeds of its looks, each of them the only one.
LOOKS = (FRESH, 210, 220)
MORE_SEEDS = {3: 20}  # of looks, by number, that have more runs than others
# Composition of the data to the decoder that is it.
EXACT = {"sum": "additive", "product": "product", "occlusion": "occlusion"}
# Those that have every other composition as a special case, and attention.
WIDER = (
    *("low_rank_product", "occlusion", "slots", "attention"),
    *("low_rank", "hard_rendering", "acting"),
)
SUPPORTS = ("orthogonal", "diagonal:.4")
# The splits on which something is expected of decoders.
EXPECTED = [
    f"composed {composition} {support}"
    for composition, support in product(EXACT, SUPPORTS)
    if (composition, support) != ("occlusion", "orthogonal")
]
NUMBERS = {
    "id_relative_mse": "id/relative_mse",
    "ood_relative_mse": "ood/relative_mse",
    "ood_position_accuracy": "ood/position_accuracy",
    "additive_predictor": "references/additive/ood",
    "nearest_memory": "references/nearest_id/ood",
    "weights": "train/weights",
    "seconds": "train/seconds",
}


SUBSETS = ("id", "ood", "certified", "others")


@dataclass(frozen=True)
class Case:
    """The runs of a decoder on a split, which differ in their seeds."""

    split: str
    decoder: str
    runs: pd.DataFrame  # as `tabulate_runs` makes it

    @functools.cached_property
    def fitted(self) -> pd.DataFrame:
        """The runs that have a say."""
        return self.runs[self.runs["id_r2"] >= FITTED]

    @property
    def values(self) -> list[float]:
        """OOD R^2 of every fitted seed that has one."""
        return list(self.fitted["ood_r2"].dropna())

    @property
    def data(self) -> str:
        """The data of the split, as `composed` or `gaussian_bumps`."""
        return self.split.split()[0]

    @property
    def interval(self) -> tuple[float, float] | None:
        """The interval of the mean OOD R^2."""
        values = self.values
        if len(values) < max(MIN_SEEDS, len(self.fitted)):
            return None  # a fitted seed lacks a score
        # Seeds that are all alike have no spread.
        return compute_student(values, AT_MOST_ONE) or (values[0], values[0])

    @property
    def verdict(self) -> str:
        """The verdict of docs/decoders.md."""
        if not len(self.fitted):
            return "not fitted"
        ends = self.interval
        if ends is None or ends[0] <= COMPOSES <= ends[1]:
            return "undecided"
        return "composes" if ends[0] > COMPOSES else "fails"

    @property
    def expected(self) -> str | None:
        """Returns `composes` or `fails` where the composition is known."""
        if self.split not in EXPECTED:
            return None
        _, composition, _ = self.split.split()
        if self.decoder == EXACT[composition]:
            return "composes"
        return None if self.decoder in WIDER else "fails"

    def average(self, name: str) -> float | None:
        """Returns the mean of one of `NUMBERS` over fitted seeds, or all."""
        runs = self.fitted if len(self.fitted) else self.runs
        return to_number(runs[NUMBERS[name]].mean())


def to_number(value: Any) -> float | None:
    """Returns a number, or None for NaN."""
    return None if math.isnan(value) else float(value)


def tabulate_runs(results: Results) -> pd.DataFrame:
    """Returns a row for each run, in the order of seeds.

    Its columns are `split`, `decoder`, `dataset`, `seed`, `setting`, the
    numbers of the run by their paths, and R^2 about the mean training image,
    `id_r2` and `ood_r2`.
    """
    runs = results.runs.set_index("run")
    rows: list[Any] = runs.to_dict("records")
    columns = ["dataset", "seed", "setting"]
    table = runs[columns].assign(
        split=[describe_split(row) for row in rows],
        decoder=runs["model"],
    )
    paths = {*NUMBERS.values(), *(f"r2/{subset}" for subset in SUBSETS)}
    paths |= {f"references/mean_image/{s}" for s in SUBSETS[:2]}
    scores = results.scores
    scores = scores.reindex(columns=sorted(paths | set(scores)))
    for subset in SUBSETS[:2]:
        mean = scores[f"references/mean_image/{subset}"]
        error = scores[f"{subset}/relative_mse"]
        table[f"{subset}_r2"] = 1 - error / mean.where(mean > 0)
    return table.join(scores).sort_values("seed", kind="stable")


def list_cases(
    table: pd.DataFrame, flags: Mapping[str, Mapping[str, Any]]
) -> list[Case]:
    """Returns the cases of runs, by the names of splits and decoders.

    Runs of a case differ in their seeds alone. Where runs of a split differ in
    more flags, its name says in which, as ` (grid_size 64)`.
    """
    cases = []
    pairs: Any = table.groupby(["split", "decoder"])
    for (split, decoder), runs in pairs:
        groups = {str(k): g for k, g in runs.groupby("setting", sort=False)}
        every = {name: None for key in groups for name in flags[key]}
        settings = {key: every | dict(flags[key]) for key in groups}
        names = choose_flags(list(settings.values()))
        for key, group in groups.items():
            words = ", ".join(f"{n} {settings[key][n]}" for n in names)
            name = f"{split} ({words})" if words else split
            cases.append(Case(name, decoder, group))
    return cases


def describe_split(flags: Mapping[str, Any]) -> str:
    """Returns data and region, as `sprites montero:range`."""
    data, region = flags["dataset"], flags["region"]
    if data != "composed":
        return f"{data} {region}"
    _, _, kind = region.partition("wiedemer:")
    return f"{data} {flags['composition']} {kind.partition(':x_')[0]}"


def shorten_split(split: str) -> str:
    """Shortens the images that complete the certificate of a region."""
    region, _, images = split.partition("&not:")
    return f"{region} completed" if images else region


def count_looks(seed: int) -> int:
    """Returns the look of a run: 0 for version 1, then 1 to 3."""
    return sum(seed >= first for first in LOOKS)


def judge_truth(cases: Iterable[Case]) -> list[dict[str, str]]:
    """Judges both statements on every split, and on all in the last row.

    `matching` (the decoder that is the composition composes) and `others`
    (those that must fail do) are "reproduced", "refuted", "undecided" or "not
    run".
    """
    rows, cases = [], list(cases)
    for split in EXPECTED:
        here = [(c.expected, c.verdict) for c in cases if c.split == split]
        exact = [
            verdict for expected, verdict in here if expected == "composes"
        ]
        others = [verdict for expected, verdict in here if expected == "fails"]
        fitted = [verdict for verdict in others if verdict != "not fitted"]
        row = _combine(exact, "composes"), _combine(fitted, "fails")
        rows.append({"split": split, "matching": row[0], "others": row[1]})
    names = "matching", "others"
    every = {n: _combine([row[n] for row in rows], "reproduced") for n in names}
    return [*rows, {"split": "all", **every}]


def _combine(verdicts: Collection[str], wanted: str) -> str:
    """Judges if all are as wanted; one that is decided otherwise refutes."""
    known = set(verdicts) - {"not run"}
    if not known:
        return "not run"
    if known - {wanted, "undecided", "not fitted"}:
        return "refuted"
    return "reproduced" if set(verdicts) == {wanted} else "undecided"


def write_rounded(path: Path, rows: Iterable[dict[str, Any]]) -> None:
    """Writes rows as CSV, with six digits, which all machines share."""
    table = [
        {k: float(f"{v:.6g}") if isinstance(v, float) else v for k, v in items}
        for items in (row.items() for row in rows)
    ]
    write_csv(path, table)
