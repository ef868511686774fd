"""Declarations of claims in `claims.toml`, and the controls of their tests."""

import enum
import functools
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tfcomp.studies.claims.evidence import Evidence, Run
from tfcomp.studies.claims.packed_evidence import (
    TOTAL,
    ThresholdStudy,
    read_flagfile,
)
from tfcomp.studies.claims.selection import read_setting
from tfcomp.studies.claims.verdict import Verdict

DECLARATIONS = Path(__file__).with_name("claims.toml")
FIRST_SEED = 100  # of version 2
NEXT_SEED = 200  # of version 3
NUM_PLANTED = 10
SEARCHES = "searches"  # the setting that is a threshold study


class Kind(enum.StrEnum):
    """What a control is: only a positive one must be reproduced."""

    POSITIVE = "positive"
    NEGATIVE = "negative"
    UNTRAINED = "untrained"


@dataclass(frozen=True)
class Control:
    """Planted evidence on a claim: numbers of runs, as in `claims.toml`."""

    name: str
    kind: Kind
    planted: Mapping[str, Any]

    def plant(self) -> Evidence:
        """Makes the evidence."""
        runs, studies = [], []
        planted = dict(self.planted)
        spread = planted.pop("spread", 0.01)
        for name, numbers in planted.items():
            for line in read_declarations()["settings"].get(name, [name]):
                if name == SEARCHES:
                    studies.append(plant_study(line, numbers, FIRST_SEED))
                    continue
                for place in range(NUM_PLANTED):
                    factor = 1 + spread * (place - NUM_PLANTED / 2)
                    runs.append(plant_run(line, place, numbers, factor))
        return Evidence(tuple(runs), tuple(studies))


@dataclass(frozen=True)
class ControlOutcome:
    """What a test said of a control."""

    name: str
    kind: Kind
    verdict: Verdict

    @property
    def is_right(self) -> bool:
        """Whether the test passed what it must, or stopped what it must."""
        is_passed = self.verdict is Verdict.REPRODUCED
        return is_passed == (self.kind is Kind.POSITIVE)


@functools.cache
def read_declarations() -> dict[str, Any]:
    """The content of `claims.toml`."""
    return tomllib.loads(DECLARATIONS.read_text("utf-8"))


def describe_claim(name: str) -> dict[str, Any]:
    """What is declared of a claim, as arguments of `Claim`."""
    declared = read_declarations()[name]
    words = {k: _join(v) for k, v in declared.items() if k not in set(Kind)}
    controls = [
        Control(title, kind, planted)
        for kind in Kind  # the positive ones first
        for title, planted in declared.get(kind, {}).items()
    ]
    return {"name": name, **words, "controls": controls}


def _join(value: Any) -> Any:
    """Text without its line breaks, at any depth."""
    if isinstance(value, dict):
        return {k: _join(v) for k, v in value.items()}
    if isinstance(value, list):
        return list(map(_join, value))
    return " ".join(value.split()) if isinstance(value, str) else value


def plant_run(
    line: str, place: int, numbers: Mapping[str, Any], factor: float
) -> Run:
    """A run of a published setting, a flagfile and flags that follow it.

    Its seed has a place from `FIRST_SEED` on. Numbers, by the names that claims
    read, as in `claims.toml`, are multiplied by a factor.
    """
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
    return Run(Path(f"/planted/{line}/{place}"), flags, metrics, measures)


def plant_study(
    line: str,
    exponents: Mapping[str, float],
    first_seed: int = 0,
    num_seeds: int = 3,
    sizes: Sequence[int] = (16, 20, 24, 28, 32),
) -> ThresholdStudy:
    """A study whose slopes, by kind of training set, are found to a fifth."""
    import pandas

    shared = {"region": "corner", "criterion": "position_accuracy"}
    searches = [
        (kind, float(n), first_seed + seed, n**slope * (1 + 0.1 * seed))
        for kind, slope in exponents.items()
        for n in sizes
        for seed in range(num_seeds)
    ]
    names = ["kind", "grid_size", "seed", TOTAL]
    thresholds = pandas.DataFrame(searches, columns=names)
    slopes = [(kind, s, s - 0.2, s + 0.2) for kind, s in exponents.items()]
    laws = pandas.DataFrame(slopes, columns=["kind", "slope", "low", "high"])
    return ThresholdStudy(
        Path(f"/planted/{line}"),
        thresholds.assign(**shared, reached=True),
        laws.assign(**shared, quantity=TOTAL, not_reached=0.0, note=None),
        read_flagfile(line),
    )
