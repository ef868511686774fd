"""Networks that several claims are about, and their controls."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from reproduction.claims.evidence import Evidence, Networks, Reader
from reproduction.claims.judge import ALL, UNTRAINED, Row

if TYPE_CHECKING:
    from pandas import Series

Flags = dict[str, Any]

# Networks that were trained on the held-out combinations, too.
ALL_SEEDS = range(300, 305)
TRAIN_ALL: Flags = {
    "train_all": True,
    "precision": "float32",
    "seed": ALL_SEEDS,
}

BUMPS: Flags = {
    "dataset": "gaussian_bumps",
    "num_train": 0,
    "coordinates": "grid",
    "train_all": False,
}
SQUARE = BUMPS | {"region": "square:6-22"}
DONUT = SQUARE | {
    "model": "cnn",
    "depth": 4,
    "width": 64,
    "precision": "float32",
}
# The donut of figure 1, by code; the lengths of the shipped flagfiles.
DONUTS: dict[str, Flags] = {
    "bump": DONUT | {"encoding": "bump", "epochs": 50},
    "ramp": DONUT | {"encoding": "ramp", "epochs": 100},
}
MLP = SQUARE | {"model": "mlp", "depth": 3, "width": 256}
MLPS: dict[str, Flags] = {
    "bump": MLP | {"encoding": "bump", "epochs": 600},
    "ramp": MLP | {"encoding": "ramp", "epochs": 2000},
}
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
SHORT: Flags = {"epochs": 25, "steps_per_epoch": 40}  # 1,000 steps
LONG = {"epochs": 50, "steps_per_epoch": 63}  # 3,150 steps
BUMPS_ALONE = BUMPS | {"model": "cnn", "region": "corner:14", **LONG}


def list_donuts(evidence: Evidence) -> dict[str, Flags]:
    """Lists donuts by code, and of depth 2 if such networks were trained.

    The table of appendix D has this depth.
    """
    donuts = dict(DONUTS)
    for code, flags in DONUTS.items():
        shallow = flags | {"depth": 2, "seed": ALL_SEEDS}
        if evidence.select(**shallow).tried:
            donuts[f"{code}, depth 2"] = shallow
    return donuts


def select_penalties(
    evidence: Evidence, seeds: range, region: str = CORNER
) -> dict[str, Networks]:
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


def read_change(networks: Networks, name: str, last: str = "") -> Series:
    """Reads a number at a late stage less that at `stage_0`, by seed.

    Args:
        networks: The networks that are read.
        name: The number at each stage.
        last: The late stage; by default the last hidden one.
    """
    stages = networks.stages(name)
    late = stages.columns[-2]
    return stages[last or late] - stages["stage_0"]


def judge_networks(
    networks: Networks,
    number: Reader,
    controls: Mapping[str, Networks] | None = None,
    missing: str = "",
    **row: Any,
) -> Row:
    """Judges a number of networks, beside the same number of controls.

    Args:
        networks: The fitted networks of the claim.
        number: The number.
        controls: Networks that must not have it, by name.
        missing: What to call a control without any run, which is left out.
        **row: More attributes of the row.
    """
    others = {}
    for name, control in (controls or {}).items():
        if missing and not control.tried:
            continue
        others[name] = control.read(number)
    if controls and len(others) == len(controls):
        missing = ""
    return Row(
        values=networks.read(number),
        tried=networks.tried,
        others=others,
        missing=missing,
        **row,
    )


def judge_symptom(
    evidence: Evidence,
    flags: Flags,
    seeds: range,
    number: Reader,
    has_start: bool = True,
    control: Flags | None = None,
    **row: Any,
) -> Row:
    """Judges a symptom of failure, with its controls.

    Args:
        evidence: All runs.
        flags: The setting of the networks that fail.
        seeds: Their seeds, if the setting has none.
        number: The number.
        has_start: False if untrained networks are no control.
        control: Flags of the control that differ from the setting.
        **row: More attributes of the row.
    """
    seeded = {"seed": seeds} | flags
    networks = evidence.select(**seeded).fitted
    all_flags = flags | TRAIN_ALL | (control or {})
    controls = {ALL: evidence.select(**all_flags).fitted}
    if has_start:
        controls[UNTRAINED] = networks.untrained
    return judge_networks(networks, number, controls, **row)
