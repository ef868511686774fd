"""Which decoder composes? Runs of decoders on splits, judged by one rule.

A **case** is a decoder on a split: data, region and, of data that compose in a
known way, their composition. R^2 refers to the mean training image: 1 - MSE /
MSE of that image. Over the seeds of a case,

    not fitted   a seed has an ID R^2 below `FITTED`: nothing follows
    composes     the 95 % interval of the mean OOD R^2 lies above `COMPOSES`
    fails        it lies below
    undecided    it has both sides, or there are too few seeds

A truth table compares this with what the data need. Of data that compose as
`EXACT` says, this decoder must compose and others must fail; of those that
contain the composition and more (`WIDER`), nothing is expected, since their
freedom need not be settled by what they saw. Occlusion is left out where the
objects never meet in training: which one is in front cannot be known there.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from tfcomp.claims.evidence import Run
from tfcomp.statistics.limits import Limits, compute_student

FITTED = 0.9
COMPOSES = 0.9
MIN_SEEDS = 3
R2 = Limits(high=1.0)
# Composition of the data to the decoder that is it, and to those that have it
# as a special case: a constant mask makes a sum of objects, and so on.
EXACT = {"sum": "additive", "product": "product", "occlusion": "occlusion"}
WIDER = {
    "sum": ("low_rank_product", "occlusion", "slots"),
    "product": ("low_rank_product",),
    "occlusion": ("slots",),
}
NUMBERS = {
    "id_relative_mse": "id/relative_mse",
    "ood_relative_mse": "ood/relative_mse",
    "ood_position_accuracy": "ood/position_accuracy",
    "additive_predictor": "additive_relative_mse_ood",
    "nearest_memory": "nearest_id_relative_mse_ood",
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
        """R^2 of every seed on `id` or `ood` points; none without measures."""
        found = []
        for run in self.runs:
            error = run.get(f"{subset}/relative_mse")
            mean = run.get(f"mean_image_relative_mse_{subset}")
            if error is not None and mean:
                found.append(1 - error / mean)
        return found

    @property
    def interval(self) -> tuple[float, float] | None:
        """Of the mean OOD R^2."""
        values = self.compute_r2("ood")
        if len(values) < MIN_SEEDS:
            return None
        # Seeds that are all alike have no spread to speak of.
        return compute_student(values, R2) or (values[0], values[0])

    @property
    def verdict(self) -> str:
        """See above."""
        if any(value < FITTED for value in self.compute_r2("id")):
            return "not fitted"
        ends = self.interval
        if ends is None or ends[0] <= COMPOSES <= ends[1]:
            return "undecided"
        return "composes" if ends[0] > COMPOSES else "fails"

    @property
    def expected(self) -> str | None:
        """`composes` or `fails` of a truth table; else None."""
        data, composition, region = (*self.split.split(), "", "")[:3]
        if data != "composed" or self.decoder in WIDER[composition]:
            return None
        if composition == "occlusion" and "orthogonal" in region:
            return None
        is_exact = self.decoder == EXACT[composition]
        return "composes" if is_exact else "fails"

    def average(self, name: str) -> float | None:
        """Mean over seeds of one of `NUMBERS`."""
        found = [run.get(NUMBERS[name]) for run in self.runs]
        known = [value for value in found if value is not None]
        return sum(known) / len(known) if known else None


def list_cases(runs: Sequence[Run]) -> list[Case]:
    """The cases of runs, splits and decoders in the order of their names."""
    groups: dict[tuple[str, str], list[Run]] = {}
    for run in runs:
        key = describe_split(run), run.flags["model"]
        groups.setdefault(key, []).append(run)
    return [
        Case(*key, tuple(sorted(group, key=lambda run: run.seed)))
        for key, group in sorted(groups.items())
    ]


def describe_split(run: Run) -> str:
    """Data and region: `sprites montero:range`, `composed sum orthogonal`."""
    data, region = run.flags["dataset"], run.flags["region"]
    if data != "composed":
        return f"{data} {region}"
    _, _, kind = region.partition("wiedemer:")
    return f"{data} {run.flags['composition']} {kind.partition(':x_')[0]}"


def judge_truth(cases: Sequence[Case]) -> str:
    """Does a decoder compose just where it contains the data's composition?

    `reproduced` if every fitted case is as expected, `refuted` if one is
    decided otherwise, else `undecided`.
    """
    judged = [(case.expected, case.verdict) for case in cases if case.expected]
    fitted = [pair for pair in judged if pair[1] != "not fitted"]
    # A composition that no matching decoder fits says nothing.
    has_match = any(expected == "composes" for expected, _ in fitted)
    if not has_match or any(found == "undecided" for _, found in fitted):
        return "undecided"
    is_expected = all(expected == found for expected, found in fitted)
    return "reproduced" if is_expected else "refuted"
