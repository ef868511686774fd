"""Figures of the paper, and the runs of some evidence that they need."""

from __future__ import annotations

import functools
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from reproduction.claims.evidence import Evidence, read_evidence
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
    from pandas import DataFrame

NETWORKS = ("each", "rows")  # kinds of pictures that need a trained network
# Published models of the paper's settings, each with one seed.
PUBLISHED = (
    "donut",
    "hard_rendering",
    "low_rank",
    "ramp",
    "rotated_mnist",
    "stripes",
    "stripes_and_bumps",
)
Drawn = Mapping[str, "Figure"]  # by caption
Groups = Mapping[str, "DataFrame"]  # rows of runs, by label


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


def select_runs(figure: PaperFigure, evidence: Evidence) -> Groups:
    """Selects the runs of a figure: the fitted ones, or all if none fits.

    Of several settings the one with the most runs is taken.

    Args:
        figure: The figure.
        evidence: All runs.
    """
    # Imported here: bad flags must be answered without pandas.
    from reproduction.decoders.cells import keep_setting

    groups = {}
    for label, flags in figure.needs.items():
        runs = evidence.match(**flags)
        if runs.empty:
            continue
        runs = keep_setting(runs)
        fitted = evidence.fitted(runs)
        if flags["dataset"] == "stripes":
            fitted = evidence.placed(runs)
        if fitted.empty:
            fitted = runs
        groups[label] = fitted
    return groups


def find_networks(figure: PaperFigure, groups: Groups) -> dict[str, Path]:
    """Finds the folder of a trained network for each label that has one.

    Args:
        figure: The figure.
        groups: Its runs, by label. Where none of them has its weights, a
            published model of the setting is taken.
    """
    published = read_published()
    networks = {}
    for label, flags in figure.needs.items():
        folders = list(published.match(**flags)["folder"])
        if label in groups:
            folders = [*groups[label]["folder"], *folders]
        for folder in folders:
            path = Path(folder, MODEL_FILE)
            if folder and path.exists():
                networks[label] = path.parent
                break
    return networks


@functools.cache
def read_published() -> Evidence:
    """Reads the published models of the paper's settings."""
    folders = [str(find_published(f"paper/{name}")) for name in PUBLISHED]
    return read_evidence(folders)


def list_needs() -> dict[str, dict[str, Flags]]:
    """Lists flags of runs by label, by the name of what a figure needs."""
    # Imported here: bad flags must be answered without pandas.
    from reproduction.claims.c19_interpolation import DIGIT
    from reproduction.claims.c22_hard_rendering import AXES, HARD

    bumps_alone = BUMPS | {"model": "cnn", "encoding": "bump"}
    low_rank = BUMPS | {"model": "low_rank"}
    # At this width there are networks of all depths.
    cnn = SQUARE | {"model": "cnn", "width": 32}
    needs: dict[str, dict[str, Flags]] = {
        "bump": {"bump code": DONUTS["bump"]},
        "ramp": {"ramp code": DONUTS["ramp"]},
        "bumps alone": {"bumps alone": bumps_alone | {"region": "corner:14"}},
        "rotation": {"rotated digit": DIGIT},
        "penalties": {},
        "stripes": {},
        "hard rendering": {},
    }
    for name, weights in PENALTIES.items():
        flags = low_rank | weights | {"region": CORNER}
        needs["penalties"][name] = flags
    places = {"corner": CORNER, "centre": CENTRE}
    for place, region in places.items():
        needs[f"low rank {place}"] = {}
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
        needs[striped] = {striped: flags}
    for code in DONUTS:
        needs[f"{code} CNNs"] = {}
        needs[f"{code} MLPs"] = {}
        for depth in range(2, 7):
            flags = cnn | {"encoding": code, "depth": depth}
            needs[f"{code} CNNs"][f"{code}, depth {depth}"] = flags
            flags = MLP | {"encoding": code, "depth": depth + 1}
            needs[f"{code} MLPs"][f"{code}, depth {depth + 1}"] = flags
    return needs


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
        figures[name] = PaperFigure(
            name=name,
            shows=declared["shows"],
            pictures=declared.get("pictures", ()),
            needs=flags,
        )
    return figures
