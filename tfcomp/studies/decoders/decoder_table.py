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

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

from tfcomp.statistics.limits import AT_MOST_ONE, compute_student
from tfcomp.statistics.setting_table import choose_flags
from tfcomp.storage.files import write_csv
from tfcomp.studies.claims.evidence import Run
from tfcomp.studies.claims.selection import list_groups

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


@dataclass(frozen=True)
class Case:
    """The runs of a decoder on a split, which differ in their seeds."""

    split: str
    decoder: str
    runs: tuple[Run, ...]

    def compute_r2(self, subset: str) -> list[float]:
        """R^2 of every fitted seed on `id` or `ood` points, as far as known."""
        found = [_compute_r2(run, subset) for run in self.fitted]
        return [value for value in found if value is not None]

    @property
    def fitted(self) -> list[Run]:
        """The runs that have a say."""
        return [r for r in self.runs if (_compute_r2(r, "id") or 0) >= FITTED]

    @property
    def data(self) -> str:
        """What the split is one of: `composed`, `gaussian_bumps` and so on."""
        return self.split.split()[0]

    @property
    def interval(self) -> tuple[float, float] | None:
        """Of the mean OOD R^2."""
        values = self.compute_r2("ood")
        if len(values) < max(MIN_SEEDS, len(self.fitted)):
            return None  # a fitted seed lacks a score
        # Seeds that are all alike have no spread to speak of.
        return compute_student(values, AT_MOST_ONE) or (values[0], values[0])

    @property
    def verdict(self) -> str:
        """See above."""
        if not self.fitted:
            return "not fitted"
        ends = self.interval
        if ends is None or ends[0] <= COMPOSES <= ends[1]:
            return "undecided"
        return "composes" if ends[0] > COMPOSES else "fails"

    @property
    def expected(self) -> str | None:
        """`composes` or `fails` of a truth table; else None."""
        if self.split not in EXPECTED:
            return None
        _, composition, _ = self.split.split()
        if self.decoder == EXACT[composition]:
            return "composes"
        return None if self.decoder in WIDER else "fails"

    def average(self, name: str) -> float | None:
        """Mean of one of `NUMBERS` over fitted seeds, or all if none fits."""
        found = [run.get(NUMBERS[name]) for run in self.fitted or self.runs]
        known = [value for value in found if value is not None]
        return sum(known) / len(known) if known else None


def _compute_r2(run: Run, subset: str) -> float | None:
    error = run.get(f"{subset}/relative_mse")
    mean = run.get(f"references/mean_image/{subset}")
    return None if error is None or not mean else 1 - error / mean


def list_cases(runs: Sequence[Run]) -> list[Case]:
    """The cases of runs, splits and decoders in the order of their names.

    Runs of a case differ in their seeds alone. Where those of a split differ
    in more, its name says in what, as ` (grid_size 64)`.
    """
    found: dict[tuple[str, str], list[Run]] = {}
    for run in sorted(runs, key=lambda run: run.seed):
        key = describe_split(run), run.flags["model"]
        found.setdefault(key, []).append(run)
    cases = []
    for (split, decoder), chosen in sorted(found.items()):
        groups = list_groups(chosen)
        names = choose_flags([group[0].setting for group in groups])
        for group in groups:
            words = ", ".join(f"{n} {group[0].flags[n]}" for n in names)
            name = f"{split} ({words})" if words else split
            cases.append(Case(name, decoder, tuple(group)))
    return cases


def describe_split(run: Run) -> str:
    """Data and region: `sprites montero:range`, `composed sum orthogonal`."""
    data, region = run.flags["dataset"], run.flags["region"]
    if data != "composed":
        return f"{data} {region}"
    _, _, kind = region.partition("wiedemer:")
    return f"{data} {run.flags['composition']} {kind.partition(':x_')[0]}"


def shorten_split(split: str) -> str:
    """Leaves out what would complete the certificate of its region."""
    region, _, images = split.partition("&not:")
    return f"{region} completed" if images else region


def count_looks(run: Run) -> int:
    """Of which look a run is, by its seed: 0 for version 1, then 1 to 3."""
    return sum(run.seed >= first for first in LOOKS)


def judge_truth(cases: Sequence[Case]) -> list[dict[str, str]]:
    """Both statements on every split, and on all, which is the last row.

    `matching` (the decoder that is the composition composes) and `others`
    (those that must fail do) are "reproduced", "refuted", "undecided" or "not
    run".
    """
    rows = []
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
    """Whether all are as wanted: one that is decided otherwise refutes it."""
    known = set(verdicts) - {"not run"}
    if not known:
        return "not run"
    if known - {wanted, "undecided", "not fitted"}:
        return "refuted"
    return "reproduced" if set(verdicts) == {wanted} else "undecided"


def write_rounded(path: Path, rows: Iterable[dict[str, Any]]) -> None:
    """Writes six digits of numbers: what all machines share, as CSV."""
    table = [
        {k: float(f"{v:.6g}") if isinstance(v, float) else v for k, v in items}
        for items in (row.items() for row in rows)
    ]
    write_csv(path, table)
