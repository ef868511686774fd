"""Figures of the paper, and the runs of some evidence that they need."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tfcomp.storage.run_folder import MODEL_FILE
from tfcomp.studies.claims.cases import NUMBERS
from tfcomp.studies.claims.claim import select_fitted
from tfcomp.studies.claims.evidence import Evidence
from tfcomp.studies.claims.settings import (
    HARD,
    PENALTIES,
    ROTATED,
    STRIPED,
    make_cnn,
    make_low_rank,
    make_mlp,
)
from tfcomp.tables.groups import Group
from tfcomp.tables.selection import Setting, read_setting

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FIRST_SEED = 100
NUM_SEEDS = 5
NEED_NETWORKS = {"each", "rows"}  # kinds of pictures; others need scores
# Pictures, and tables in Markdown, by caption.
Drawn = Mapping[str, "Figure | str"]
Drawer = Callable[..., Drawn]
Needs = dict[str, Setting]
DEPTHS = (2, 3, 4, 5, 6)
MLP_DEPTHS = (3, 4, 5, 6, 7)


@dataclass(frozen=True)
class PaperFigure:
    """A figure or a table of the paper, as declared in `figures.toml`.

    Attributes:
        pictures: Each is a kind and its arguments, as `{"each": "errors"}`;
            none where the paper has a scheme.
        needs: The runs behind it, by their label in the pictures.
        search: The command that makes the threshold study that it needs.
    """

    name: str
    shows: str
    pictures: Sequence[Mapping[str, Any]] = ()
    needs: Mapping[str, Setting] = field(default_factory=dict)
    search: str = ""

    def find(self, evidence: Evidence) -> Found:
        """Selects runs as claims do, and lists missing ones."""
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
            found.groups[label] = fitted if len(fitted) else group
            found.unfitted[label] = len(group) - len(fitted)
            if kinds & NEED_NETWORKS and label not in found.networks:
                words = f"{label}: a run folder with the network"
                found.missing[words] = make_command(need)
        return found


@dataclass
class Found:
    """The runs of a figure, and the pictures that were made of them.

    Attributes:
        groups: The fitted runs, or all if none is, by label of the need.
        unfitted: The number of runs that are not fitted, by the same label.
        missing: The command that makes missing runs, by their description.
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


def make_command(setting: Setting) -> str:
    """Returns the command that trains and measures a setting at fresh seeds."""
    plain = read_setting(setting.flagfile)
    flags = [
        f"--{name}={str(value).lower()}"
        for name, value in setting.reference.items()
        if value != plain[name]
    ]
    stem = setting.flagfile.removesuffix(".flags")
    name = make_slug(f"paper {stem} {' '.join(flags)}")
    command = ["tfcomp sweep", f"--flagfile={setting.flagfile}", *flags]
    extent = [f"--first_seed={FIRST_SEED}", f"--seeds={NUM_SEEDS}"]
    return " ".join([*command, f"--run_name={name}", *extent, "--measure"])


def make_slug(text: str) -> str:
    """Returns a text with letters, digits and single underscores alone."""
    return re.sub("[^0-9A-Za-z]+", "_", text).strip("_")


def fix(setting: Setting, flag: str, value: int) -> Setting:
    """Returns the setting with a flag that the paper varies."""
    changes = (*setting.changes, f"--{flag}={value}")
    return replace(setting.require(**{flag: value}), changes=changes)


def vary_depth(setting: Setting, code: str, depths: Sequence[int]) -> Needs:
    """Returns networks of several depths, by their code."""
    return {f"{code}, depth {n}": fix(setting, "depth", n) for n in depths}


def compare_penalties(region: str) -> Needs:
    """Returns low-rank networks without penalties and with both."""
    names = ("none", "both")
    return {f"{region}, {name}": make_low_rank(name, region) for name in names}


def add_bumps(*counts: int) -> Needs:
    """Returns networks on stripes and some numbers of bumps."""
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
    """Returns all figures by their number."""
    file = Path(__file__).with_name("figures.toml")
    figures = {}
    for name, declared in tomllib.loads(file.read_text("utf-8")).items():
        needs: Needs = {}
        for need in declared.pop("needs", ()):
            needs |= NEEDS[need]
        figures[name] = PaperFigure(name, needs=needs, **declared)
    return figures
