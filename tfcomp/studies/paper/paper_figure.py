"""Figures of the paper, and the runs of some evidence that they need."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tfcomp.storage.run_folder import MODEL_FILE
from tfcomp.studies.claims.claim import select_fitted
from tfcomp.studies.claims.evidence import Evidence
from tfcomp.studies.claims.experiments.decoders import make_cnn, make_mlp
from tfcomp.studies.claims.experiments.forced_rendering import (
    HARD,
    PENALTIES,
    make_low_rank,
)
from tfcomp.studies.claims.experiments.rotated_digits import ROTATED
from tfcomp.studies.claims.experiments.stripe_training import NUMBERS, STRIPED
from tfcomp.tables.groups import Group
from tfcomp.tables.selection import Setting, read_setting

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FIRST_SEED = 100
NUM_SEEDS = 5
# What draws a kind of picture; what needs networks needs run folders, for the
# rest packed evidence is enough.
DRAWERS = {
    "data": ("score_pictures", "draw_data"),
    "claim": ("score_pictures", "draw_claim"),
    "stages": ("score_pictures", "draw_measure"),
    "scores": ("score_pictures", "draw_scores"),
    "each": ("network_pictures", "draw_each"),
    "rows": ("network_pictures", "draw_rows"),
}
# Pictures, and tables in Markdown, by caption.
Drawn = Mapping[str, "Figure | str"]
Needs = dict[str, Setting]
DEPTHS = (2, 3, 4, 5, 6)
MLP_DEPTHS = (3, 4, 5, 6, 7)


@dataclass(frozen=True)
class PaperFigure:
    """A figure or a table of the paper, by its number (see `figures.toml`).

    Attributes:
        pictures: What is drawn, as `{"each": "errors"}`: a kind of `DRAWERS`
            and arguments; none where the paper has a scheme.
        needs: The runs behind it, by their label in the pictures.
        search: The command that makes the threshold study that it needs.
    """

    name: str
    shows: str
    pictures: Sequence[Mapping[str, Any]] = ()
    needs: Mapping[str, Setting] = field(default_factory=dict)
    search: str = ""

    def find(self, evidence: Evidence) -> Found:
        """The runs, as claims would select them, and what is missing."""
        found = Found(self, evidence)
        if self.search and not evidence.studies:
            found.missing["the threshold study"] = self.search
        kinds = {kind for picture in self.pictures for kind in picture}
        for label, need in self.needs.items():
            group = need.find(evidence.groups)
            if not len(group):
                found.missing[label] = make_command(need)
                continue
            fitted = select_fitted(group)
            shown = fitted if len(fitted) else group
            found.groups[label] = shown
            found.unfitted[label] = len(group) - len(fitted)
            if kinds & {"each", "rows"} and label not in found.networks:
                words = f"{label}: a run folder with the network"
                found.missing[words] = make_command(need, shown)
        return found


@dataclass
class Found:
    """What evidence has of the needs of a figure, and what is made of it.

    Attributes:
        groups: The fitted runs, or all if none is, by label of the need.
        unfitted: How many runs are not fitted, by the same label.
        missing: What is missing, and the command that makes it.
        pictures: Names of the files, by caption.
        tables: Tables in Markdown, by caption.
    """

    figure: PaperFigure
    evidence: Evidence
    groups: dict[str, Group] = field(default_factory=dict)
    unfitted: dict[str, int] = field(default_factory=dict)
    missing: dict[str, str] = field(default_factory=dict)
    pictures: dict[str, str] = field(default_factory=dict)
    tables: dict[str, str] = field(default_factory=dict)

    def __str__(self) -> str:
        if not self.figure.pictures:
            return "a scheme, not drawn"
        missing = "; ".join(self.missing)
        count = len(self.pictures) + len(self.tables)
        return f"{count} drawn" + (f", missing: {missing}" if missing else "")

    @property
    def networks(self) -> dict[str, Path]:
        """The folder of the first network of each group, if there is one."""
        # Of several runs of a label, the one that comes last stays.
        return {
            label: Path(run["folder"])
            for label, group in self.groups.items()
            for run in reversed(list(group.runs.values()))
            if run["folder"] and Path(run["folder"], MODEL_FILE).exists()
        }


def make_command(setting: Setting, group: Group | None = None) -> str:
    """The command that trains and measures a setting at fresh seeds.

    With a group, the command that trains its first run again, as it was.
    """
    plain = read_setting(setting.flagfile)
    flags = [
        f"--{name}={str(value).lower()}"
        for name, value in setting.reference.items()
        if value != plain[name]
    ]
    module = "tfcomp.train" if group else "tfcomp.sweep"
    extent = [f"--first_seed={FIRST_SEED}", f"--seeds={NUM_SEEDS}", "--measure"]
    if group:
        flags += [f"--{difference}" for difference in group.differences]
        extent = [f"--seed={group.seeds[0]}"]
    stem = setting.flagfile.removesuffix(".flags")
    name = make_slug(f"paper {stem} {' '.join(flags)}")
    command = f"python -m {module} --flagfile={setting.flagfile}"
    return " ".join([command, *flags, f"--run_name={name}", *extent])


def make_slug(text: str) -> str:
    """Letters, digits and single underscores."""
    return re.sub("[^0-9A-Za-z]+", "_", text).strip("_")


def fix(setting: Setting, flag: str, value: int) -> Setting:
    """The setting with a flag that the paper varies."""
    changes = (*setting.changes, f"--{flag}={value}")
    return replace(setting.require(**{flag: value}), changes=changes)


def vary_depth(setting: Setting, code: str, depths: Sequence[int]) -> Needs:
    """Networks of several depths, by their code."""
    return {f"{code}, depth {n}": fix(setting, "depth", n) for n in depths}


def compare_penalties(region: str) -> Needs:
    """Low-rank networks without penalties and with both."""
    names = ("none", "both")
    return {f"{region}, {name}": make_low_rank(name, region) for name in names}


def add_bumps(*counts: int) -> Needs:
    """Networks on stripes and so many bumps."""
    return {f"{n} bumps": fix(STRIPED, "num_bumps", n) for n in counts}


NEEDS: dict[str, Needs] = {
    "bump": {"bump": make_cnn("bump")},
    "ramp": {"ramp": make_cnn("ramp")},
    "bumps alone": {"bumps alone": make_cnn("bump", "corner")},
    "bump CNNs": vary_depth(make_cnn("bump"), "bump", DEPTHS),
    "ramp CNNs": vary_depth(make_cnn("ramp"), "ramp", DEPTHS),
    "bump MLPs": vary_depth(make_mlp("bump"), "bump", MLP_DEPTHS),
    "ramp MLPs": vary_depth(make_mlp("ramp"), "ramp", MLP_DEPTHS),
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
