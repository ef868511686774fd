"""Figures of the paper, and the runs of some evidence that they need."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from reproduction.claims.evidence import Evidence
from reproduction.figures import networks
from reproduction.figures.networks import select_fitted
from reproduction.groups import Group
from reproduction.selection import Setting, list_families, read_setting
from tfcomp.storage.run_folder import MODEL_FILE

if TYPE_CHECKING:
    from matplotlib.figure import Figure

EXTENT = ("--first_seed=100", "--seeds=5")
NEED_NETWORKS = {"each", "rows"}  # kinds of pictures; others need scores
Drawn = Mapping[str, "Figure"]  # by caption
Drawer = Callable[..., Drawn]
Needs = dict[str, Setting]


@dataclass(frozen=True)
class PaperFigure:
    """A figure of the paper, as declared in `figures.toml`, and its runs."""

    name: str
    shows: str
    pictures: Sequence[Mapping[str, Any]] = ()  # as {"each": "errors"}
    needs: Needs = field(default_factory=dict)  # by label in the pictures
    search: str = ""  # the command of the threshold study that it needs
    sweep: str = ""  # the sweep that it needs, whose flagfile has its name
    evidence: Evidence = field(default_factory=Evidence)
    # Fitted runs, or all if none is, and the number of unfitted ones.
    groups: dict[str, Group] = field(default_factory=dict)
    unfitted: dict[str, int] = field(default_factory=dict)
    missing: dict[str, str] = field(default_factory=dict)  # to commands
    files: dict[str, str] = field(default_factory=dict)  # by caption

    def find(self, evidence: Evidence) -> PaperFigure:
        """Selects runs as claims do, and lists missing ones."""
        declared = self.name, self.shows, self.pictures, self.needs
        found = PaperFigure(*declared, self.search, self.sweep, evidence)
        if self.search and not evidence.studies:
            found.missing["the threshold study"] = self.search
        every = self._list_trials(evidence)
        if self.sweep and not every:
            command = f"tfcomp sweep {self.sweep} --workers=2"
            found.missing[f"the sweep {self.sweep}"] = command
        for label, need in self.needs.items():
            every[label] = need.find(evidence.groups)
            if not len(every[label]):
                found.missing[label] = make_command(need)
        for label, group in every.items():
            if not len(group):
                continue
            fitted = select_fitted(group)
            found.groups[label] = fitted if len(fitted) else group
            found.unfitted[label] = len(group) - len(fitted)
        if any(NEED_NETWORKS.intersection(p) for p in self.pictures):
            for label in found.groups.keys() - found.networks.keys():
                words = f"{label}: a run folder with the network"
                found.missing[words] = make_command(self.needs[label])
        return found

    def _list_trials(self, evidence: Evidence) -> dict[str, Group]:
        """Returns settings that differ in size and held-out region alone."""
        groups = [
            group
            for group in evidence.groups
            if self.sweep in {run["study"] for run in group.runs.values()}
        ]
        families = list_families(groups, ["grid_size", "region"])
        return {
            f"N = {group.flags['grid_size']}, {group.flags['region']}": group
            for group in max(families, key=len, default=[])
        }

    def __str__(self) -> str:
        if not self.pictures:
            return "a scheme, not drawn"
        missing = f", missing: {'; '.join(self.missing)}" * bool(self.missing)
        return f"{len(self.files)} drawn{missing}"

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
    return " ".join([*command, f"--run_name={name}", *EXTENT, "--measure"])


def make_slug(text: str) -> str:
    """Returns a text with letters, digits and single underscores alone."""
    return re.sub("[^0-9A-Za-z]+", "_", text).strip("_")


def _vary(setting: Setting, label: str, flag: str, *values: int) -> Needs:
    """Returns the setting with values of a flag that the paper varies."""
    return {
        label.format(value): replace(
            setting.require(**{flag: value}),
            changes=(*setting.changes, f"--{flag}={value}"),
        )
        for value in values
    }


def _compare_penalties(region: str) -> Needs:
    names = ("none", "both")
    return {
        f"{region}, {name}": networks.make_low_rank(name, region)
        for name in names
    }


NEEDS: dict[str, Needs] = {
    "bump": {"bump": networks.make_cnn("bump")},
    "ramp": {"ramp": networks.make_cnn("ramp")},
    "bumps alone": {"bumps alone": networks.make_cnn("bump", "corner")},
    "low rank corner": _compare_penalties("corner"),
    "low rank centre": _compare_penalties("centre"),
    "penalties": {
        name: networks.make_low_rank(name) for name in networks.PENALTIES
    },
    "stripes": _vary(
        networks.STRIPED, "{} bumps", "num_bumps", *networks.NUMBERS
    ),
    "stripes alone": _vary(networks.STRIPED, "{} bumps", "num_bumps", 0),
    "stripes and bumps": _vary(networks.STRIPED, "{} bumps", "num_bumps", 50),
    "stripes and many bumps": _vary(
        networks.STRIPED, "{} bumps", "num_bumps", 100
    ),
    "rotation": {"rotated digit": networks.ROTATED},
    "hard rendering": networks.HARD,
}
for _code in ("bump", "ramp"):
    _label = f"{_code}, depth {{}}"
    _cnn, _mlp = networks.make_cnn(_code), networks.make_mlp(_code)
    NEEDS[f"{_code} CNNs"] = _vary(_cnn, _label, "depth", 2, 3, 4, 5, 6)
    NEEDS[f"{_code} MLPs"] = _vary(_mlp, _label, "depth", 3, 4, 5, 6, 7)


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
