"""C16: how the number of examples that are needed grows with the image."""

from __future__ import annotations

from collections.abc import Sequence

from tfcomp.claims.curve_pictures import draw_thresholds
from tfcomp.claims.evidence import Evidence
from tfcomp.claims.flag_text import Flags
from tfcomp.claims.flag_text import parse_run_flags
from tfcomp.claims.parts import Claim
from tfcomp.claims.parts import Part
from tfcomp.claims.parts import beside
from tfcomp.claims.parts import make_part
from tfcomp.claims.selection import list_differences
from tfcomp.claims.threshold_studies import Row
from tfcomp.claims.threshold_studies import ThresholdStudy
from tfcomp.claims.verdict import MIN_SEEDS
from tfcomp.claims.verdict import Estimate
from tfcomp.claims.verdict import near
from tfcomp.config.flagfiles import expand_flagfiles

# Slopes this close to a whole number are called near it.
SLOPE_MARGIN = 0.5
SLOPES = {"bumps": 3.0, "stripes_and_bumps": 1.0}
CRITERION = "position_accuracy"
TOTAL = "num_examples"
# Flags of a search that say how much is run, not what.
EXTENT = ("seeds", "first_seed")


def choose_study(
    studies: Sequence[ThresholdStudy], kind: str
) -> ThresholdStudy | None:
    """The study that speaks for one kind of training set.

    The one with the most sizes that have enough seeds, then the nearest to
    the published setting, then the first by name. Whether a search reached
    its target is not looked at.
    """

    def rank(study: ThresholdStudy) -> tuple:
        seeds = count_seeds(study, kind).values()
        enough = sum(count >= MIN_SEEDS for count in seeds)
        distance = len(describe_study(study))
        return -enough, not study.flags, distance, str(study.path)

    having = [s for s in studies if any(r["kind"] == kind for r in s.slopes)]
    return min(having, key=rank, default=None)


def count_seeds(
    study: ThresholdStudy, kind: str, criterion: str = CRITERION
) -> dict[float, int]:
    """Seeds at each size; the fewest of all regions."""
    seeds: dict[tuple, set] = {}
    for row in study.thresholds:
        if (row["kind"], row["criterion"]) == (kind, criterion):
            place = row["grid_size"], row["region"]
            seeds.setdefault(place, set()).add(row["seed"])
    return {
        size: min(len(found) for (s, _), found in seeds.items() if s == size)
        for size in sorted({size for size, _ in seeds})
    }


def describe_study(study: ThresholdStudy) -> list[str]:
    """Flags that are not as published."""
    if not study.flags:
        return ["settings unknown"]
    return list_differences(study.flags, _make_reference(), EXTENT)


def judge_c16(evidence: Evidence) -> list[Part]:
    """Exponents of the data that are needed."""
    parts = []
    for kind, slope in SLOPES.items():
        study = choose_study(evidence.studies, kind)
        rows = [r for r in study.slopes if r["kind"] == kind] if study else []
        rows.sort(key=lambda row: not _is_theirs(row))
        notes = _list_notes(evidence, study, kind) if study else []
        for row in rows:
            part = judge_slope(study, row, slope, notes)
            parts.append(part if _is_theirs(row) else beside(part))
        if not any(_is_theirs(row) for row in rows):
            name = kind.replace("_", " ")
            quantity = "slope of the number of examples"
            rule = near(slope, SLOPE_MARGIN)
            parts.append(make_part(name, quantity, None, rule))
    return parts


def judge_slope(
    study: ThresholdStudy, row: Row, slope: float, notes: Sequence[str] = ()
) -> Part:
    """One row of a table of slopes against its whole number."""
    words = [row["kind"], row["region"], f"by {row['criterion']}"]
    quantity = str(row["quantity"]).removeprefix("num_")
    label = ", ".join(str(w).replace("_", " ") for w in words)
    found = None
    if row["slope"] is not None:
        sizes = len(count_seeds(study, row["kind"], row["criterion"]))
        ends = row["low"], row["high"]
        found = Estimate(row["slope"], *ends, sizes, {}, unit="sizes")
    return make_part(
        label,
        f"slope of the number of {quantity} over the size, log-log",
        found,
        near(slope, SLOPE_MARGIN),
        is_run=True,
        note=", ".join([*filter(None, [row.get("note")]), *notes]),
        problem=find_gap(study, row),
    )


def find_gap(study: ThresholdStudy, row: Row) -> str:
    """Why a slope proves nothing; empty if it does."""
    if row["slope"] is None:
        return row.get("note") or "no slope could be fitted"
    seeds = count_seeds(study, row["kind"], row["criterion"])
    for size, count in seeds.items():
        if count < MIN_SEEDS:
            return f"{count} of at least {MIN_SEEDS} seeds at size {size:g}"
    missed = row.get("not_reached") or 0
    return f"{missed:g} searches did not reach the target" if missed else ""


def _is_theirs(row: Row) -> bool:
    """Whether a row is what the paper counts: examples, by position."""
    return row["criterion"] == CRITERION and row["quantity"] == TOTAL


def _list_notes(
    evidence: Evidence, study: ThresholdStudy, kind: str
) -> list[str]:
    others = [
        f"not used: {other.name}"
        for other in evidence.studies
        if other is not study and any(r["kind"] == kind for r in other.slopes)
    ]
    return [*describe_study(study), f"study {study.name}", *others]


def _make_reference() -> Flags:
    lines = expand_flagfiles(["--flagfile=threshold.flags"])
    return parse_run_flags("\n".join(lines))[0]


def draw_c16(evidence: Evidence, parts: Sequence[Part]) -> dict:
    """Thresholds against the size of the grid, of the studies that decide."""
    rows = [
        row
        for kind in SLOPES
        for study in [choose_study(evidence.studies, kind)]
        for row in (study.thresholds if study else ())
        if row["kind"] == kind
    ]
    return draw_thresholds(rows, CRITERION, TOTAL)


CLAIMS = (
    Claim(
        "C16",
        "Data needed: cubic for bumps, linear with stripes",
        "The least number of examples for a right position grows as the cube "
        "of the image size from bumps alone, and linearly with stripes.",
        "figure 4c",
        "slope within 0.5 of 3, and within 0.5 of 1",
        "Threshold search over the size; slope in log-log scale, its interval "
        "over sizes (at least three, each with at least three seeds). The "
        "number of all examples by position accuracy decides, as in the "
        "paper; the other rows stand beside it. Searches that failed would "
        "bias a slope: with any of them it stays undecided.",
        judge_c16,
        draw_c16,
    ),
)
