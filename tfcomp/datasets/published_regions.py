"""Published splits (docs/experiments.md) of data sets with named factors.

    montero:element       Montero et al. (2021, 2022)
    orthotopic:2          the orthotopic ladder (2025)

`x`, `posX` and `x_position` name one factor. Bounds are classes of the
published numbers of values, scaled to other numbers.
"""

import tomllib
from collections.abc import Iterable
from pathlib import Path

import numpy as np

from tfcomp.datasets.factors import FactorSpace
from tfcomp.datasets.regions import REGIONS, Predicate

_FILE = Path(__file__).with_name("published.toml")
PUBLISHED = tomllib.loads(_FILE.read_text("utf-8"))
SYNONYMS = {
    **{"posx": "x", "x_position": "x", "posy": "y", "y_position": "y"},
    **{"object_color": "color", "object_shape": "shape", "object_size": "size"},
    **{"camera_height": "height", "background_color": "background"},
    **{"horizontal_axis": "horizontal", "vertical_axis": "vertical"},
}


@REGIONS.register("montero")
def make_montero(arguments: str, space: FactorSpace) -> Predicate:
    """Holds out a split of Montero et al., as `element`."""
    name = _identify(space)
    # Of each factor the first and last held-out class; all must hold.
    splits: dict[str, dict[str, list[int]]] = PUBLISHED[name].get("montero", {})
    if arguments not in splits:
        raise _refuse(name, splits)
    columns, scales = _match(space, name, splits[arguments])
    low, high = np.transpose([*splits[arguments].values()])

    def contains(values: np.ndarray) -> np.ndarray:
        index = space.to_index(values)[:, columns]
        # The values below high + 1, as scaled.
        inside = (index >= low * scales) & (index < (high + 1) * scales)
        return inside.all(axis=1)

    return contains


@REGIONS.register("orthotopic")
def make_orthotopic(arguments: str, space: FactorSpace) -> Predicate:
    """Holds out points with more than n factors beyond their thresholds."""
    name = _identify(space)
    ladder = PUBLISHED[name].get("ladder", {"factors": [], "rungs": []})
    rungs = {str(n): rung for n, rung in enumerate(ladder["rungs"])}
    if arguments not in rungs:
        raise _refuse(name, rungs)
    columns, scales = _match(space, name, ladder["factors"])
    thresholds = rungs[arguments] * scales

    def contains(values: np.ndarray) -> np.ndarray:
        is_high = space.to_index(values)[:, columns] >= thresholds
        return is_high.sum(axis=1) > int(arguments)

    return contains


def _identify(space: FactorSpace) -> str:
    """Returns the published data set with these factors."""
    known = {name: data["classes"] for name, data in PUBLISHED.items()}
    for data, classes in known.items():
        if {*_normalize(space)} >= {*classes}:
            return data
    raise ValueError(
        "of this kind needs the factors of a published data set: "
        + "; ".join(f"{', '.join(f)} ({d})" for d, f in known.items())
    )


def _refuse(data: str, splits: Iterable[str]) -> ValueError:
    known = ", ".join(splits)
    rule = f"one of {known}" if known else "another region"
    return ValueError(f"must be {rule} for {data}")


def _normalize(space: FactorSpace) -> list[str]:
    names = [name.lower().removeprefix("label_") for name in space.names]
    plain = [name.replace(" ", "_") for name in names]
    return [SYNONYMS.get(name, name) for name in plain]


def _match(
    space: FactorSpace, data: str, factors: Iterable[str]
) -> tuple[list[int], np.ndarray]:
    """Returns columns of factors, and classes for each published class."""
    names, published = _normalize(space), PUBLISHED[data]["classes"]
    columns = [names.index(factor) for factor in factors]
    sizes = np.array(space.shape)[columns]
    return columns, sizes / [published[factor] for factor in factors]
