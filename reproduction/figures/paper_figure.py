"""Figures of the paper, and the runs of some evidence that they need."""

from __future__ import annotations

import functools
import tomllib
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from reproduction.claims.evidence import Evidence, Networks, read_evidence
from reproduction.claims.networks import (
    BUMPS,
    CENTRE,
    CORNER,
    DONUTS,
    MLP,
    PENALTIES,
    SHORT,
    SQUARE,
    STRIPES,
    Flags,
)
from tfcomp.storage.run_folder import MODEL_FILE, find_published

if TYPE_CHECKING:
    from matplotlib.figure import Figure

NETWORKS = ("each", "rows")  # kinds of pictures that need a trained network
Drawn = Mapping[str, "Figure"]  # by caption


@dataclass(frozen=True)
class PaperFigure:
    """A figure of the paper, as declared in `figures.toml`.

    Attributes:
        name: As `2a-d`.
        shows: What the paper shows.
        pictures: What is drawn, as {"each": "errors"}.
        needs: Flags of the runs that it needs, by label in the pictures.
    """

    name: str
    shows: str
    pictures: Sequence[Mapping[str, Any]] = ()
    needs: Mapping[str, Flags] = field(default_factory=dict)


@dataclass(frozen=True)
class FigureRuns:
    """The runs that a figure shows, of some evidence.

    Attributes:
        figure: The figure of the paper.
        evidence: All runs.
    """

    figure: PaperFigure
    evidence: Evidence

    @functools.cached_property
    def groups(self) -> dict[str, Networks]:
        """The fitted runs by label, or all if none fits.

        Of several settings the one with the most runs is taken.
        """
        # Imported here: bad flags must be answered without pandas.
        from reproduction.decoders.cells import keep_setting

        groups = {}
        for label, flags in self.figure.needs.items():
            runs = self.evidence.match(**flags)
            if runs.empty:
                continue
            runs = keep_setting(runs)
            every = Networks(self.evidence, runs, tried=len(runs))
            fitted = every.fitted
            if flags["dataset"] == "stripes":
                fitted = every.placed
            if fitted.runs.empty:
                fitted = every
            groups[label] = fitted
        return groups

    @functools.cached_property
    def folders(self) -> dict[str, Path]:
        """The folder of a trained network for each label that has one.

        Where no run has its weights, a published model of the setting is taken.
        """
        published = read_published()
        networks = {}
        for label, flags in self.figure.needs.items():
            folders = list(published.match(**flags)["folder"])
            if label in self.groups:
                folders = [*self.groups[label].runs["folder"], *folders]
            for folder in folders:
                if folder and Path(folder, MODEL_FILE).exists():
                    networks[label] = Path(folder)
                    break
        return networks


@functools.cache
def read_published() -> Evidence:
    """Reads the published models of the paper's settings, one seed each."""
    folder = find_published("paper/donut").parent
    return read_evidence([str(folder)])


def list_needs() -> dict[str, dict[str, Flags]]:
    """Lists flags of runs by label, by the name of what a figure needs."""
    # Imported here: bad flags must be answered without pandas.
    from reproduction.claims.c19_interpolation import DIGIT
    from reproduction.claims.c22_hard_rendering import AXES, HARD

    bumps_alone = BUMPS | {
        "model": "cnn",
        "encoding": "bump",
        "region": "corner:14",
    }
    low_rank = BUMPS | {"model": "low_rank"}
    # At this width there are networks of all depths.
    cnn = SQUARE | {"model": "cnn", "width": 32}
    needs: dict[str, dict[str, Flags]] = defaultdict(dict)
    needs["bump"]["bump code"] = DONUTS["bump"]
    needs["ramp"]["ramp code"] = DONUTS["ramp"]
    needs["bumps alone"]["bumps alone"] = bumps_alone
    needs["rotation"]["rotated digit"] = DIGIT
    for name, weights in PENALTIES.items():
        flags = low_rank | weights | {"region": CORNER}
        needs["penalties"][name] = flags
    for place, region in {"corner": CORNER, "centre": CENTRE}.items():
        for name, words in (
            ("none", "no penalties"),
            ("both", "both penalties"),
        ):
            flags = low_rank | PENALTIES[name] | {"region": region}
            needs[f"low rank {place}"][f"{place}, {words}"] = flags
        for words, axes in AXES.items():
            flags = HARD | {"axes": axes, "region": region}
            needs["hard rendering"][f"{place}, axes {words}"] = flags
    for count in (0, 10, 50, 100):
        label = f"{count} bumps"
        flags = STRIPES | SHORT | {"num_bumps": count}
        needs["stripes"][label] = flags
        striped = f"stripes and {label}"
        needs[striped][striped] = flags
    for code in DONUTS:
        for depth in range(2, 7):
            flags = cnn | {"encoding": code, "depth": depth}
            needs[f"{code} CNNs"][f"{code}, depth {depth}"] = flags
            flags = MLP | {"encoding": code, "depth": depth + 1}
            needs[f"{code} MLPs"][f"{code}, depth {depth + 1}"] = flags
    return dict(needs)


def read_figures() -> dict[str, PaperFigure]:
    """Reads all figures by their number."""
    file = Path(__file__).with_name("figures.toml")
    declarations = tomllib.loads(file.read_text("utf-8"))
    needs = list_needs()
    figures = {}
    for name, declared in declarations.items():
        flags: dict[str, Flags] = {}
        for need in declared.get("needs", ()):
            flags |= needs[need]
        declared["needs"] = flags
        figures[name] = PaperFigure(name, **declared)
    return figures
