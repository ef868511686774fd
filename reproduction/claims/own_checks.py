"""Checks of claims whose rules depend on other numbers: C10 and C16."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from statistics import fmean
from typing import TYPE_CHECKING, Any

from reproduction.claims import cases, claim
from reproduction.claims.claim import Case, Gate, Number, OwnCheck
from reproduction.claims.evidence import (
    TOTAL,
    Evidence,
    ThresholdStudy,
    read_study_flags,
)
from reproduction.claims.parts import Part, measure
from reproduction.groups import Group
from reproduction.selection import list_differences
from reproduction.verdicts import MIN_SEEDS, Rule, Verdict, above, below
from tfcomp.statistics.estimates import Estimate
from tfcomp.tables.flatten import END

if TYPE_CHECKING:
    from pandas import DataFrame

# Log-volumes that differ by less are the same for our purpose: 10 % of the
# volume.
VOLUME_MARGIN = 0.1
DIFFERS = Rule(-VOLUME_MARGIN, VOLUME_MARGIN, outside=True)
# Slopes this close to a whole number are called near it.
SLOPE_MARGIN = 0.5
SLOPES = {"bumps": 3.0, "stripes_and_bumps": 1.0}
RULES = {
    kind: Rule(slope - SLOPE_MARGIN, slope + SLOPE_MARGIN)
    for kind, slope in SLOPES.items()
}
# The paper counts examples by position.
CRITERION = "position_accuracy"
# Flags of a search that say how much is run, not what.
EXTENT = ("seeds", "first_seed")
# The paper leaves open with which network it searched.
NETWORKS = {
    "small CNN": {"polarity": "bright", "depth": 2, "learning_rate": 2e-3},
    "the donut's CNN": {"polarity": "dark", "depth": 4, "learning_rate": 1e-3},
}
MIN_SIZES, MIN_RATIO = 4, 1.8


def judge_signs(evidence: Evidence) -> list[Part]:
    """Judges C10: the MLP beyond a margin of the other sign than the CNN's."""
    parts = []
    for words, gates, must in (  # the first decides
        ("", [claim.FITTED], {"epochs": cases.is_full_length}),
        (", 1,260 steps", [], cases.AUTHORS_LENGTH),
    ):
        for code in cases.MAIN_CODES:
            cnns = cases.make_cnn(code).require(**must).find(evidence.groups)
            mlps = cases.make_mlp(code).require(**must).find(evidence.groups)
            case = Case(f"CNN, {code}{words}", [cnns])
            cnn = _measure_shift(case, DIFFERS, gates)
            is_known = cnn.verdict is Verdict.REPRODUCED
            problem = "" if is_known else "the sign for the CNN is not known"
            rule = below(-VOLUME_MARGIN)
            if cnn.estimate is not None and cnn.estimate.mean < 0:
                rule = above(VOLUME_MARGIN)
            case = Case(f"MLP, {code}{words}", [mlps], problem)
            mlp = _measure_shift(case, rule, gates if is_known else [])
            # The sign for the CNN alone says nothing of the claim.
            parts += [
                replace(part, of=f"{code}{words}", decides=not words)
                for part in (cnn, mlp)
            ]
    return parts


def _measure_shift(case: Case, rule: Rule, gates: Sequence[Gate]) -> Part:
    """Judges how far networks expand (> 0) or compress the region."""
    words = "median log-volume, OOD less ID, less that of the code, mean over"
    number = Number(f"{words} stages", read_shift, rule, over=fmean)
    (part,) = measure(case, [number], gates)
    return part


def read_deviation(group: Group, when: str = END) -> DataFrame:
    """Returns medians of |log-volume - its median over ID|, OOD less ID."""
    return _compare_sides(group, "log_volume_median_deviation", when)


def read_shift(group: Group, when: str = END) -> DataFrame:
    """Returns median log-volume, OOD less ID, less the same of the code."""
    # The edge of the grid cuts bumps of the code, the same for every seed.
    stages = _compare_sides(group, "log_volume_median", when)
    if claim.CODE not in stages:
        return stages
    return stages.sub(stages[claim.CODE], axis=0)


def _compare_sides(group: Group, name: str, when: str) -> DataFrame:
    outside = group.get_stages(f"{name}_ood", when)
    return outside - group.get_stages(f"{name}_id", when)


def judge_data_needed(evidence: Evidence) -> list[Part]:
    """Judges C16: how the number of examples grows with the image."""
    parts = []
    for name, flags in NETWORKS.items():
        every = evidence.studies
        studies = [s for s in every if flags.items() <= s.flags.items()]
        parts += [
            replace(part, label=f"{name}: {part.label}", of=name)
            for kind in SLOPES
            for part in _judge_kind(studies, kind)
        ]
    return parts


def choose_study(
    studies: Sequence[ThresholdStudy], kind: str
) -> ThresholdStudy | None:
    """Returns the study that judges one kind of training set."""

    # The most sizes with enough seeds, then the nearest to the published one.
    def rank(study: ThresholdStudy) -> tuple:
        seeds = _count_seeds(study, kind).values()
        enough = sum(count >= MIN_SEEDS for count in seeds)
        return -enough, len(_describe_study(study)), str(study.path)

    having = [s for s in studies if (s.slopes["kind"] == kind).any()]
    return min(having, key=rank, default=None)


def _count_seeds(
    study: ThresholdStudy, kind: str, criterion: str = CRITERION
) -> dict[float, int]:
    """Returns the fewest seeds of any region at each size."""
    table = study.thresholds
    table = table[(table["kind"] == kind) & (table["criterion"] == criterion)]
    seeds = table.groupby(["grid_size", "region"])["seed"].nunique()
    counts = seeds.groupby("grid_size").min()
    return dict(zip(counts.index.tolist(), counts.tolist(), strict=True))


def _describe_study(study: ThresholdStudy) -> list[str]:
    """Returns flags that are not as published."""
    published = read_study_flags("threshold.flags")
    return list_differences(study.flags, published, EXTENT)


def _judge_kind(studies: Sequence[ThresholdStudy], kind: str) -> list[Part]:
    """Judges the slopes of one kind of training set, the deciding one first."""
    study, parts = choose_study(studies, kind), []
    if study is not None:
        notes = [*_describe_study(study), f"study {study.path.name}"]
        notes += [
            f"not used: {other.path.name}"
            for other in studies
            if other is not study and (other.slopes["kind"] == kind).any()
        ]
        table = study.slopes[study.slopes["kind"] == kind].astype(object)
        rows: list[Any] = table.where(table.notna(), None).to_dict("records")
        parts = [_judge_slope(study, row, notes) for row in rows]
    if not any(part.decides for part in parts):
        words = "slope of the number of examples"
        parts.append(Part(kind.replace("_", " "), words, None, RULES[kind]))
    return sorted(parts, key=lambda part: not part.decides)


def _judge_slope(
    study: ThresholdStudy, row: Mapping[str, Any], notes: Sequence[str]
) -> Part:
    """Judges one row of a table of slopes."""
    words = [row["kind"], row["region"], f"by {row['criterion']}"]
    quantity = str(row["quantity"]).removeprefix("num_")
    seeds = _count_seeds(study, row["kind"], row["criterion"])
    slope, low, high, count = row["slope"], row["low"], row["high"], len(seeds)

    def test(bound: float) -> float:
        from scipy import stats

        if low is None or count < MIN_SEEDS:
            return 1.0
        error = (high - low) / 2 / stats.t.ppf(0.975, count - 2)
        return float(2 * stats.t.sf(abs(slope - bound) / error, count - 2))

    estimate = None
    if slope is not None:
        estimate = Estimate(slope, low, high, count, {}, "sizes", test)
    return Part(
        ", ".join(str(word).replace("_", " ") for word in words),
        f"slope of the number of {quantity} over the size, log-log",
        estimate,
        RULES[row["kind"]],
        num_runs=min(seeds.values(), default=0),
        note=", ".join([*filter(None, [row["note"]]), *notes]),
        problem=_find_gap(row, seeds, _count_seeds(study, row["kind"])),
        decides=row["criterion"] == CRITERION and row["quantity"] == TOTAL,
    )


def _find_gap(
    row: Mapping[str, Any], seeds: Mapping[float, int], sizes: Collection[float]
) -> str:
    """Returns why a slope proves nothing; empty if it is valid."""
    if row["slope"] is None:
        return row["note"] or "no slope could be fitted"
    for size, count in seeds.items():
        if count < MIN_SEEDS:
            return f"{count} of at least {MIN_SEEDS} seeds at size {size:g}"
    if missed := row["not_reached"] or 0:
        return f"{missed:g} searches did not reach the target"
    if len(sizes) < MIN_SIZES:
        return f"{len(sizes)} of at least {MIN_SIZES} sizes"
    if max(sizes) < MIN_RATIO * min(sizes):
        return f"the largest size must be {MIN_RATIO} times the smallest"
    return ""


OWN_CHECKS: dict[str, OwnCheck] = {
    "signs": judge_signs,
    "data needed": judge_data_needed,
}
