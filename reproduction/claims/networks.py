"""Networks that several claims are about, and their controls."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from reproduction.claims.evidence import Evidence
from reproduction.claims.judge import ALL, UNTRAINED, Row, judge

if TYPE_CHECKING:
    from pandas import DataFrame, Series

Flags = dict[str, Any]
# Reads a number of runs, at the start or at the end of training, by seed.
Reader = Callable[..., "Series"]

BUMPS: Flags = {
    "dataset": "gaussian_bumps",
    "num_train": 0,
    "coordinates": "grid",
    "train_all": False,
}
SQUARE = BUMPS | {"region": "square:6-22"}
DONUT = SQUARE | {"model": "cnn", "depth": 4, "width": 64}
# The donut of figure 1, by code; the lengths of the shipped flagfiles.
DONUTS: dict[str, Flags] = {
    "bump": DONUT | {"encoding": "bump", "epochs": 50},
    "ramp": DONUT | {"encoding": "ramp", "epochs": 100},
}
DONUTS = {code: DONUTS[code] | {"precision": "float32"} for code in DONUTS}
MLP = SQUARE | {"model": "mlp", "depth": 3, "width": 256}
MLPS: dict[str, Flags] = {
    "bump": MLP | {"encoding": "bump", "epochs": 600},
    "ramp": MLP | {"encoding": "ramp", "epochs": 2000},
}
# Networks that were trained on the held-out combinations, too.
ALL_SEEDS = range(300, 305)

CORNER, CENTRE = "corner:12", "square:8-23"
LOW_RANK = BUMPS | {"model": "low_rank", "epochs": 1000, "decay": "linear"}
NONE = {"entropy_weight": 0.0, "variance_weight": 0.0}
BOTH = {"entropy_weight": 0.1, "variance_weight": 0.01}
PENALTIES: dict[str, Flags] = {
    "none": NONE,
    "entropy": BOTH | {"variance_weight": 0.0},
    "variance": BOTH | {"entropy_weight": 0.0},
    "both": BOTH,
}
STRIPES: Flags = {
    "dataset": "stripes",
    "model": "cnn",
    "encoding": "bump",
    "region": "corner:14",
    "train_all": False,
}
SHORT = {"epochs": 25, "steps_per_epoch": 40}  # 1,000 steps
LONG = {"epochs": 50, "steps_per_epoch": 63}  # 3,150 steps
BUMPS_ALONE = BUMPS | {"model": "cnn", "region": "corner:14", **LONG}


def select_penalties(
    evidence: Evidence, seeds: range, region: str = CORNER
) -> dict[str, DataFrame]:
    """Selects low-rank networks by the name of their penalties.

    Args:
        evidence: The runs and their numbers.
        seeds: The seeds of the networks.
        region: The region that was held out.
    """
    networks = {}
    for name, weights in PENALTIES.items():
        flags = LOW_RANK | weights | {"region": region}
        networks[name] = evidence.select(**flags, seed=seeds)
    return networks


def read_score(path: str) -> Reader:
    """Makes what reads a number of each run, as `ood/mse`."""

    def read(evidence: Evidence, runs: DataFrame, when: str = "end") -> Series:
        return evidence.score(runs, path, when)

    return read


def read_change(name: str, last: str = "") -> Reader:
    """Makes what reads a number at a late stage less that at `stage_0`.

    Args:
        name: The number at each stage.
        last: The late stage; by default the last hidden one.
    """

    def read(evidence: Evidence, runs: DataFrame, when: str = "end") -> Series:
        stages = evidence.stages(runs, name, when)
        late = stages.columns[-2]
        return stages[last or late] - stages["stage_0"]

    return read


def judge_symptom(
    evidence: Evidence,
    flags: Flags,
    seeds: range,
    read: Reader,
    part: str,
    quantity: str,
    bound: str,
    has_start: bool = True,
    control: Flags | None = None,
    **options: Any,
) -> Row:
    """Judges a symptom of failure, with its controls.

    Args:
        evidence: All runs.
        flags: The setting of the networks that fail.
        seeds: Their seeds.
        read: Reads the number.
        part: The setting in words.
        quantity: The number in words, with its unit.
        bound: As `> 0.5`.
        has_start: False if untrained networks are no control.
        control: Flags of the control that differ from the setting.
        **options: More arguments of `judge`.
    """
    runs = evidence.select(**flags, seed=seeds)
    fitted = evidence.fitted(runs)
    all_flags = flags | {"train_all": True} | (control or {})
    trained = evidence.fitted(evidence.select(**all_flags, seed=ALL_SEEDS))
    controls = {ALL: read(evidence, trained, "end")}
    if has_start:
        controls[UNTRAINED] = read(evidence, fitted, "start")
    return judge(
        part=part,
        quantity=quantity,
        values=read(evidence, fitted, "end"),
        bound=bound,
        tried=len(runs),
        controls=controls,
        **options,
    )
