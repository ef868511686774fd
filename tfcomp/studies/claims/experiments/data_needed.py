"""C16: how the number of examples that are needed grows with the image."""

from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Any

from tfcomp.statistics.estimates import Estimate
from tfcomp.statistics.verdicts import MIN_SEEDS, near
from tfcomp.studies.claims.claim import Declaration
from tfcomp.studies.claims.evidence import Evidence
from tfcomp.studies.claims.parts import Part
from tfcomp.studies.claims.searches import (
    TOTAL,
    ThresholdStudy,
    read_flagfile,
)
from tfcomp.tables.selection import list_differences

# Slopes this close to a whole number are called near it.
SLOPE_MARGIN = 0.5
SLOPES = {"bumps": 3.0, "stripes_and_bumps": 1.0}
RULES = {kind: near(slope, SLOPE_MARGIN) for kind, slope in SLOPES.items()}
# The paper counts examples by position.
CRITERION = "position_accuracy"
# Flags of a search that say how much is run, not what.
EXTENT = ("seeds", "first_seed")
# The paper leaves open with which network it searched.
SETTINGS = {
    "small CNN": {"polarity": "bright", "depth": 2, "learning_rate": 2e-3},
    "the donut's CNN": {"polarity": "dark", "depth": 4, "learning_rate": 1e-3},
}
MIN_SIZES, MIN_RATIO = 4, 1.8


def choose_study(
    studies: Sequence[ThresholdStudy], kind: str
) -> ThresholdStudy | None:
    """Returns the study that judges one kind of training set.

    It has the most sizes with enough seeds, then is nearest to the published
    setting, then the first by name. Results play no role.
    """

    def rank(study: ThresholdStudy) -> tuple:
        seeds = count_seeds(study, kind).values()
        enough = sum(count >= MIN_SEEDS for count in seeds)
        distance = len(describe_study(study))
        return -enough, not study.flags, distance, str(study.path)

    having = [s for s in studies if (s.slopes["kind"] == kind).any()]
    return min(having, key=rank, default=None)


def count_seeds(
    study: ThresholdStudy, kind: str, criterion: str = CRITERION
) -> dict[float, int]:
    """Returns the fewest seeds of any region at each size."""
    table = study.thresholds
    table = table[(table["kind"] == kind) & (table["criterion"] == criterion)]
    seeds = table.groupby(["grid_size", "region"])["seed"].nunique()
    counts = seeds.groupby("grid_size").min()
    return dict(zip(counts.index.tolist(), counts.tolist(), strict=True))


def describe_study(study: ThresholdStudy) -> list[str]:
    """Returns flags that are not as published."""
    if not study.flags:
        return ["settings unknown"]
    published = read_flagfile("threshold.flags")
    return list_differences(study.flags, published, EXTENT)


def judge_settings(evidence: Evidence) -> list[Part]:
    """Judges both settings of C16."""
    parts = []
    for name, flags in SETTINGS.items():
        studies = [
            study
            for study in evidence.studies
            if flags.items() <= study.flags.items()
        ]
        parts += [
            replace(part, label=f"{name}: {part.label}", of=name)
            for kind in SLOPES
            for part in judge_kind(studies, kind)
        ]
    return parts


def judge_kind(studies: Sequence[ThresholdStudy], kind: str) -> list[Part]:
    """Judges the slopes of one kind of training set, the deciding one first.

    One study judges it; the others are named.
    """
    study, parts = choose_study(studies, kind), []
    if study is not None:
        others = [
            f"not used: {other.name}"
            for other in studies
            if other is not study and (other.slopes["kind"] == kind).any()
        ]
        notes = [*describe_study(study), f"study {study.name}", *others]
        sizes = count_seeds(study, kind)
        table = study.slopes[study.slopes["kind"] == kind].astype(object)
        rows: list[Any] = table.where(table.notna(), None).to_dict("records")
        for row in rows:
            seeds = count_seeds(study, kind, row["criterion"])
            problem = find_gap(row, seeds, sizes)
            parts.append(judge_slope(row, seeds, notes, problem))
    if not any(part.decides for part in parts):
        words = "slope of the number of examples"
        parts.append(Part(kind.replace("_", " "), words, None, RULES[kind]))
    return sorted(parts, key=lambda part: not part.decides)


def judge_slope(
    row: dict[str, Any],
    seeds: dict[float, int],
    notes: Sequence[str],
    problem: str,
) -> Part:
    """Judges one row of a table of slopes; `seeds` counts them by size."""
    words = [row["kind"], row["region"], f"by {row['criterion']}"]
    quantity = str(row["quantity"]).removeprefix("num_")
    slope, low, high, count = row["slope"], row["low"], row["high"], len(seeds)

    def test(bound: float) -> float:
        from scipy import stats

        if low is None or count < MIN_SEEDS:
            return 1.0
        error = (high - low) / 2 / stats.t.ppf(0.975, count - 2)
        return float(2 * stats.t.sf(abs(slope - bound) / error, count - 2))

    found = None
    if slope is not None:
        found = Estimate(slope, low, high, count, {}, unit="sizes", test=test)
    return Part(
        ", ".join(str(word).replace("_", " ") for word in words),
        f"slope of the number of {quantity} over the size, log-log",
        found,
        RULES[row["kind"]],
        is_run=True,
        num_runs=min(seeds.values(), default=0),
        note=", ".join([*filter(None, [row["note"]]), *notes]),
        problem=problem,
        decides=row["criterion"] == CRITERION and row["quantity"] == TOTAL,
    )


def find_gap(
    row: dict[str, Any], seeds: dict[float, int], sizes: Collection[float]
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


CLAIMS = {"C16": Declaration([judge_settings])}
