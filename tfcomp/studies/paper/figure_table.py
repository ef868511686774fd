"""The figures of `figures.toml`, and the runs that it names.

Runs are found by their flags, as claims find them
(`tfcomp.studies.claims.selection`).
"""

import tomllib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from tfcomp.studies.claims.experiments.decoders import make_cnn, make_mlp
from tfcomp.studies.claims.experiments.forced_rendering import (
    HARD,
    PENALTIES,
    make_low_rank,
)
from tfcomp.studies.claims.experiments.rotated_digits import ROTATED
from tfcomp.studies.claims.experiments.stripe_training import NUMBERS, STRIPED
from tfcomp.studies.claims.selection import Setting
from tfcomp.studies.paper.paper_figure import PaperFigure

Needs = dict[str, Setting]
DEPTHS = (2, 3, 4, 5, 6)
MLP_DEPTHS = (3, 4, 5, 6, 7)


def fix(setting: Setting, flag: str, value: int) -> Setting:
    """The setting with a flag that the paper varies."""
    changes = (*setting.changes, f"--{flag}={value}")
    return replace(setting.require(**{flag: value}), changes=changes)


def vary_depth(
    make: Callable[[str], Setting], code: str, depths: tuple[int, ...]
) -> Needs:
    """Networks of several depths with one code."""
    return {
        f"{code}, depth {depth}": fix(make(code), "depth", depth)
        for depth in depths
    }


def compare_penalties(region: str) -> Needs:
    """Low-rank networks without penalties and with both."""
    return {
        f"{region}, {name}": make_low_rank(name, region)
        for name in ("none", "both")
    }


def add_bumps(*counts: int) -> Needs:
    """Networks on stripes and so many bumps."""
    return {f"{n} bumps": fix(STRIPED, "num_bumps", n) for n in counts}


NEEDS: dict[str, Needs] = {
    "bump": {"bump": make_cnn("bump")},
    "ramp": {"ramp": make_cnn("ramp")},
    "bumps alone": {"bumps alone": make_cnn("bump", "corner")},
    "bump CNNs": vary_depth(make_cnn, "bump", DEPTHS),
    "ramp CNNs": vary_depth(make_cnn, "ramp", DEPTHS),
    "bump MLPs": vary_depth(make_mlp, "bump", MLP_DEPTHS),
    "ramp MLPs": vary_depth(make_mlp, "ramp", MLP_DEPTHS),
    "low rank corner": compare_penalties("corner"),
    "low rank centre": compare_penalties("centre"),
    "penalties": {name: make_low_rank(name) for name in PENALTIES},
    "stripes": add_bumps(*NUMBERS),
    "stripes alone": add_bumps(0),
    "stripes and bumps": add_bumps(50),
    "stripes and many bumps": add_bumps(100),
    "rotation": {"rotated digit": ROTATED},
    "hard rendering": HARD,
}


def read_figures() -> dict[str, PaperFigure]:
    """All figures by their number."""
    file = Path(__file__).with_name("figures.toml")
    figures = {}
    for name, declared in tomllib.loads(file.read_text("utf-8")).items():
        needs: Needs = {}
        for need in declared.pop("needs", ()):
            needs |= NEEDS[need]
        figures[name] = PaperFigure(name, needs=needs, **declared)
    return figures
