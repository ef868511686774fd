"""Settings that several experiments share: decoders of all bumps but a region.

The donut holds out a square in the centre, the corner a square in a corner.
"""

from __future__ import annotations

from tfcomp.claims.claim import Measured
from tfcomp.claims.claim import Number
from tfcomp.claims.evidence import Evidence
from tfcomp.claims.gates import FITTED
from tfcomp.claims.selection import Condition
from tfcomp.claims.selection import Group
from tfcomp.claims.selection import Setting
from tfcomp.claims.selection import region_is

# Codes of x and y, and the flagfile of the CNN that decodes them.
CODE_FLAGFILES = {
    "bump": "donut.flags",
    "ramp": "ramp.flags",
    "one_hot": "one_hot.flags",
    "positional": "positional.flags",
}
# The codes that the paper looks into.
MAIN_CODES = ("bump", "ramp")
HELD_OUT = {"donut": "square:6-22", "corner": "corner:14"}


def make_cnn(code: str, region: str = "donut") -> Setting:
    """CNNs that decode one code, with a region held out."""
    return Setting(
        CODE_FLAGFILES[code],
        _require(code, HELD_OUT[region], "cnn"),
        (f"--region={HELD_OUT[region]}",),
    )


def make_mlp(code: str) -> Setting:
    """MLPs that decode one code, with the centre held out."""
    changes = ("--encoding=ramp", "--epochs=100") if code == "ramp" else ()
    must = _require(code, HELD_OUT["donut"], "mlp")
    return Setting("mlp.flags", must, changes)


def measure_donut(*numbers: Number) -> list[Measured]:
    """Numbers of fitted CNNs on the donut, of both main codes."""
    return [
        Measured(f"donut, {code}", make_cnn(code), numbers, [FITTED])
        for code in MAIN_CODES
    ]


def find_donuts(evidence: Evidence) -> dict[str, Group]:
    """The same CNNs by their names in pictures."""
    return {
        f"{code} code": make_cnn(code).find(evidence) for code in MAIN_CODES
    }


def _require(code: str, region: str, model: str) -> dict[str, Condition]:
    return {
        "dataset": "gaussian_bumps",
        "model": model,
        "encoding": code,
        "region": region_is(region.partition(":")[0]),
        "num_train": 0,
        "coordinates": "grid",
    }
