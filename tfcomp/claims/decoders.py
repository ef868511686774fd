"""Decoders trained on all bumps outside a region, by code and kind."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from tfcomp.claims.comparison import Arm
from tfcomp.claims.evidence import Evidence
from tfcomp.claims.selection import Group
from tfcomp.claims.selection import find_group
from tfcomp.claims.selection import find_series
from tfcomp.claims.selection import make_reference
from tfcomp.claims.selection import region_is

REGIONS = {"donut": "square:6-22", "corner": "corner:14"}
KINDS = {"donut": "square", "corner": "corner"}
CODES = {
    "bump": "donut.flags",
    "ramp": "ramp.flags",
    "one_hot": "one_hot.flags",
    "positional": "positional.flags",
}
MLP = {"bump": (), "ramp": ("--encoding=ramp", "--epochs=100")}


def find_bumps(
    evidence: Evidence, code: str, region: str = "donut", **must: object
) -> Group:
    """CNNs trained on all bumps outside a region."""
    arm = make_bump_arm(code, region)
    return find_group(evidence, arm.reference, {**arm.must, **must})


def make_bump_arm(code: str, region: str) -> Arm:
    """CNNs trained on all bumps outside a region, to be compared."""
    reference = make_reference(CODES[code], f"--region={REGIONS[region]}")
    return Arm(reference, _require(code, region, "cnn"))


def find_bump_series(
    evidence: Evidence, code: str, flag: str, wanted: Collection[Any] = ()
) -> dict[Any, Group]:
    """CNNs on the donut that differ in one flag alone, by its value."""
    must = _require(code, "donut", "cnn")
    reference = make_reference(CODES[code])
    return find_series(evidence, reference, must, flag, wanted)


def find_mlp(evidence: Evidence, code: str) -> Group:
    """MLPs trained on all bumps outside the square."""
    reference = make_reference("mlp.flags", *MLP[code])
    return find_group(evidence, reference, _require(code, "donut", "mlp"))


def _require(code: str, region: str, model: str) -> dict[str, object]:
    return {
        "dataset": "gaussian_bumps",
        "model": model,
        "encoding": code,
        "region": region_is(KINDS[region]),
        "num_train": 0,
        "coordinates": "grid",
    }
