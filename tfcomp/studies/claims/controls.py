"""Declarations of claims in `claims.toml`, and the controls of their tests.

A control is planted evidence that passes through the same tests as the runs.
A positive one must be reproduced; a negative one must not be.
"""

import enum
import functools
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tfcomp.config.run_flags import expand_flagfiles, parse_config
from tfcomp.studies.claims.evidence import Evidence, Run
from tfcomp.studies.claims.packed_evidence import (
    ThresholdStudy,
    parse_run_flags,
)
from tfcomp.studies.claims.verdict import Verdict

DECLARATIONS = Path(__file__).with_name("claims.toml")
FIRST_SEED = 100  # of version 2
NEXT_SEED = 200  # of version 3
NUM_PLANTED = 10
SEARCHES = "searches"  # the setting that is a threshold study


class Kind(enum.StrEnum):
    """What a control is, and so what its verdict must be."""

    POSITIVE = "positive"
    NEGATIVE = "negative"
    UNTRAINED = "untrained"


@dataclass(frozen=True)
class Control:
    """Planted evidence on a claim, at fresh seeds.

    Attributes:
        kind: Whether the claim is true of it.
        planted: The numbers of runs, as in `claims.toml`.
    """

    name: str
    kind: Kind
    planted: Mapping[str, Any]

    def plant(self) -> Evidence:
        """Makes the evidence."""
        runs, studies = [], []
        for name, numbers in self.planted.items():
            if name == "spread":
                continue
            for line in read_declarations()["settings"].get(name, [name]):
                if name == SEARCHES:
                    studies.append(plant_study(line, numbers, FIRST_SEED))
                    continue
                for place in range(NUM_PLANTED):
                    spread = self.planted.get("spread", 0.01)
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
    """What is declared of a claim but its controls, as arguments of `Claim`."""
    declared = read_declarations()[name]
    kept = {k: v for k, v in declared.items() if k not in set(Kind)}
    words = {k: _join(v) if isinstance(v, str) else v for k, v in kept.items()}
    words["means"] = {k: _join(v) for k, v in words.get("means", {}).items()}
    words["history"] = [
        row | {"rule": _join(row["rule"])} for row in words["history"]
    ]
    return {"name": name, **words}


def _join(text: str) -> str:
    return " ".join(text.split())


def list_controls(name: str) -> list[Control]:
    """The controls of a claim, the positive ones first."""
    return [
        Control(title, kind, planted)
        for kind in Kind
        for title, planted in read_declarations()[name].get(kind, {}).items()
    ]


def plant_run(
    line: str, place: int, numbers: Mapping[str, Any], factor: float = 1.0
) -> Run:
    """A run of a published setting.

    Args:
        line: A flagfile, and flags that follow it.
        place: Of its seed among the fresh ones.
        numbers: By the names that claims read, as in `claims.toml`.
        factor: What the numbers are multiplied by.
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


@functools.cache
def read_setting(line: str) -> dict[str, Any]:
    """All flags of a run, from a flagfile and flags that follow it."""
    return parse_config(f"--flagfile={line}".split()).to_flags()


def plant_study(
    line: str,
    exponents: Mapping[str, float],
    first_seed: int = 0,
    num_seeds: int = 3,
    sizes: Sequence[int] = (16, 20, 24, 28, 32),
) -> ThresholdStudy:
    """A study whose slopes are found to within a fifth.

    Args:
        line: A flagfile, and flags that follow it.
        exponents: The slopes by the kind of training set.
        first_seed: The first of its seeds.
        num_seeds: How many there are at each size.
        sizes: Of the grid.
    """
    import pandas

    shared = {"region": "corner", "criterion": "position_accuracy"}
    thresholds = [
        {
            "kind": kind,
            "grid_size": float(size),
            "seed": first_seed + seed,
            "num_examples": size**exponent * (1 + 0.1 * seed),
            "reached": True,
            **shared,
        }
        for kind, exponent in exponents.items()
        for size in sizes
        for seed in range(num_seeds)
    ]
    rest = {"quantity": "num_examples", "not_reached": 0.0, "note": None}
    slopes = [
        {"kind": kind, "slope": s, "low": s - 0.2, "high": s + 0.2}
        for kind, s in exponents.items()
    ]
    lines = expand_flagfiles(f"--flagfile={line}".split())
    return ThresholdStudy(
        Path(f"/planted/{line}"),
        pandas.DataFrame(thresholds),
        pandas.DataFrame(slopes).assign(**shared, **rest),
        parse_run_flags("\n".join(lines))[0],
    )
