"""The controls of the tests of claims: planted evidence."""

import enum
import functools
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from reproduction.claims import evidence
from reproduction.claims.evidence import FIRST_SEED, Evidence, ThresholdStudy
from reproduction.groups import Record, group_records
from reproduction.selection import read_setting
from reproduction.verdicts import Verdict

NUM_PLANTED = 10


class Kind(enum.StrEnum):
    """Kinds of controls: only a positive one must be reproduced."""

    POSITIVE = "positive"
    NEGATIVE = "negative"
    UNTRAINED = "untrained"
    TRAINED = "trained on all combinations"


@dataclass(frozen=True)
class Control:
    """Planted evidence on a claim: numbers of runs, as in `claims.toml`."""

    name: str
    kind: Kind
    planted: Mapping[str, Any]

    def plant(self) -> Evidence:
        records, studies = self.list_planted()
        return Evidence(tuple(group_records(records)), tuple(studies))

    def list_planted(self) -> tuple[list[Record], list[ThresholdStudy]]:
        """Returns the planted runs and threshold studies."""
        records: list[Record] = []
        studies: list[ThresholdStudy] = []
        planted = dict(self.planted)
        spread = planted.pop("spread", 0.01)
        for name, numbers in planted.items():
            for line in read_declarations()["settings"].get(name, [name]):
                if name == "searches":  # the setting of threshold studies
                    studies.append(plant_study(line, numbers))
                    continue
                for place in range(NUM_PLANTED):
                    factor = 1 + spread * (place - NUM_PLANTED / 2)
                    records.append(plant_run(line, place, numbers, factor))
        return records, studies


@dataclass(frozen=True)
class ControlOutcome:
    """The verdict of a test on a control."""

    name: str
    kind: Kind
    verdict: Verdict

    @property
    def is_right(self) -> bool:
        """True if the test passed a positive control, or stopped another."""
        is_passed = self.verdict is Verdict.REPRODUCED
        return is_passed == (self.kind is Kind.POSITIVE)


@functools.cache
def read_declarations() -> dict[str, Any]:
    """Returns the content of `claims.toml`."""
    path = Path(__file__).with_name("claims.toml")
    return tomllib.loads(path.read_text("utf-8"))


def plant_run(
    line: str, place: int, numbers: Mapping[str, Any], factor: float
) -> Record:
    """Returns a run of a published setting; a factor multiplies its numbers."""
    metrics: dict = {"id": {"relative_mse": 1e-3, "position_accuracy": 1.0}}
    measures: dict = {"version": "planted"}
    for name, value in numbers.items():
        if isinstance(value, Mapping):
            value = value["seeds"][place % len(value["seeds"])]
        if isinstance(value, Sequence):
            hidden = [f"stage_{n}" for n in range(len(value) - 2)]
            measures["stages"] = ["code", *hidden, "image"]
            value = [number * factor for number in value]
        else:
            value = value * factor
        split, _, last = name.rpartition("/")
        target = measures if split in ("", "start") else metrics
        (target.setdefault(split, {}) if split else target)[last] = value
    flags = read_setting(line) | {"seed": FIRST_SEED + place}
    return Record(flags, metrics, measures)


def plant_study(
    line: str,
    exponents: Mapping[str, float],
    num_seeds: int = 3,
    sizes: Sequence[int] = (16, 20, 24, 28, 32),
) -> ThresholdStudy:
    """Returns a study with slopes by kind of training set, found to a fifth."""
    import pandas

    shared = {"region": "corner", "criterion": "position_accuracy"}
    searches = [
        (kind, float(n), FIRST_SEED + seed, n**slope * (1 + 0.1 * seed))
        for kind, slope in exponents.items()
        for n in sizes
        for seed in range(num_seeds)
    ]
    names = ["kind", "grid_size", "seed", evidence.TOTAL]
    thresholds = pandas.DataFrame(searches, columns=names)
    slopes = [(kind, s, s - 0.2, s + 0.2) for kind, s in exponents.items()]
    laws = pandas.DataFrame(slopes, columns=["kind", "slope", "low", "high"])
    return ThresholdStudy(
        Path(f"/planted/{line}"),
        thresholds.assign(**shared, reached=True, target=0.95, num_bumps=1),
        laws.assign(
            **shared, quantity=evidence.TOTAL, not_reached=0.0, note=None
        ),
        evidence.read_study_flags(line),
    )
