"""Published data sets: their factors, and splits that papers hold out.

A file of data sets, as `published.toml`, which says what its fields mean, is
registered by

    register_published(Path(__file__).with_name("published.toml"))

The regions `montero` and `orthotopic` need the factors of published data, whose
classes are scaled. docs/experiments.md has examples and references.
"""

import tomllib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from tfcomp.config.plugins import Registry
from tfcomp.datasets.factors import FactorSpace
from tfcomp.datasets.regions import REGIONS, Predicate

PUBLISHED = Registry("data")
# Other names of factors that data sets share.
SYNONYMS = {
    "posx": "x",
    "x_position": "x",
    "posy": "y",
    "y_position": "y",
    "object_color": "color",
    "object_shape": "shape",
    "object_size": "size",
    "camera_height": "height",
    "background_color": "background",
    "horizontal_axis": "horizontal",
    "vertical_axis": "vertical",
}


@dataclass(frozen=True)
class PublishedData:
    """What is published of a data set.

    Attributes:
        classes: The number of values of each factor, by which a space of
            factors is recognized.
        factors: Of each factor the name, kind, levels, values and unit.
        montero: The first and last held-out class of factors, by split.
        orthotopic: Thresholds of factors, by the number of factors that may
            reach theirs.
    """

    classes: dict[str, int]
    factors: list[dict[str, Any]]
    montero: dict[str, dict[str, list[int]]] = field(default_factory=dict)
    orthotopic: dict[str, dict[str, int]] = field(default_factory=dict)


def register_published(file: Path) -> None:
    """Registers the data sets of a TOML file."""
    tables = tomllib.loads(file.read_text("utf-8"))
    for name, facts in tables.items():
        PUBLISHED.register(name, PublishedData(**facts))


def describe_published(name: str) -> dict[str, Any]:
    """Returns the factors of a data set, as arguments of `FactorTable`."""
    factors = PUBLISHED.get(name).load().factors
    columns: dict[str, Any] = {
        "names": [factor["name"] for factor in factors],
        "kinds": [factor.get("kind", "ordered") for factor in factors],
        "levels": [factor.get("levels") for factor in factors],
        "units": [factor.get("unit", "") for factor in factors],
    }
    values = [factor.get("values") for factor in factors]
    if any(values):
        columns["values"] = values
    return columns


@REGIONS.register("montero")
def make_montero(arguments: str, space: FactorSpace) -> Predicate:
    """Holds out a split of Montero et al., as `element`."""
    columns, scales, classes = _find_split("montero", arguments, space)
    # The first and last held-out class of each factor; all must hold.
    low = classes[:, 0] * scales
    end = (classes[:, 1] + 1) * scales

    def contains(values: np.ndarray) -> np.ndarray:
        index = space.to_index(values)[:, columns]
        return ((index >= low) & (index < end)).all(axis=1)

    return contains


@REGIONS.register("orthotopic")
def make_orthotopic(arguments: str, space: FactorSpace) -> Predicate:
    """Holds out points with more than n factors beyond their thresholds."""
    columns, scales, classes = _find_split("orthotopic", arguments, space)
    thresholds = classes * scales

    def contains(values: np.ndarray) -> np.ndarray:
        is_high = space.to_index(values)[:, columns] >= thresholds
        return is_high.sum(axis=1) > int(arguments)

    return contains


def _find_split(
    kind: str, arguments: str, space: FactorSpace
) -> tuple[list[int], np.ndarray, np.ndarray]:
    """Finds a split of the published data set with the factors of a space.

    Args:
        kind: The field of `PublishedData` with the splits.
        arguments: The name of the split.
        space: The factors; other factors may lie beside the published ones.

    Returns:
        The columns of the split's factors, how many levels of the space make
        a published class of each, and the classes.
    """
    names = [_simplify(name) for name in space.names]
    data_sets = {n: PUBLISHED.get(n).load() for n in PUBLISHED.names()}
    matching = [n for n, p in data_sets.items() if {*p.classes} <= {*names}]
    if not matching:
        listed = [f"{', '.join(p.classes)} ({n})" for n, p in data_sets.items()]
        factors = "; ".join(listed)
        rule = "of this kind needs the factors of a published data set"
        raise ValueError(f"{rule}: {factors}")

    data = matching[0]
    published = data_sets[data]
    splits = getattr(published, kind)
    if arguments not in splits:
        rule = f"one of {', '.join(splits)}" if splits else "another region"
        raise ValueError(f"must be {rule} for {data}")

    classes = splits[arguments]
    columns = [names.index(factor) for factor in classes]
    sizes = [published.classes[factor] for factor in classes]
    scales = np.array(space.shape)[columns] / sizes
    return columns, scales, np.array([*classes.values()])


def _simplify(name: str) -> str:
    """Returns the published name of a factor with another spelling."""
    plain = name.lower().removeprefix("label_").replace(" ", "_")
    return SYNONYMS.get(plain, plain)


register_published(Path(__file__).with_name("published.toml"))
