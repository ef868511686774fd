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
from numpy import ndarray as Array

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
    columns: dict[str, Any] = {
        "names": [],
        "kinds": [],
        "levels": [],
        "units": [],
        "values": [],
    }
    for factor in PUBLISHED.get(name).load().factors:
        columns["names"].append(factor["name"])
        columns["kinds"].append(factor.get("kind", "ordered"))
        columns["levels"].append(factor.get("levels"))
        columns["units"].append(factor.get("unit", ""))
        columns["values"].append(factor.get("values"))
    if not any(columns["values"]):
        del columns["values"]
    return columns


@REGIONS.register("montero")
def make_montero(arguments: str, space: FactorSpace) -> Predicate:
    """Holds out a split of Montero et al., as `element`.

    Args:
        arguments: The name of the split.
        space: The factors of a published data set.

    Raises:
        ValueError: If the data set or the split is unknown.
    """
    columns, scales, classes = _find_split("montero", arguments, space)
    # The first and last held-out class of each factor; all must hold.
    low = classes[:, 0] * scales
    end = (classes[:, 1] + 1) * scales

    def contains(values: Array) -> Array:
        index = space.to_index(values)[:, columns]
        is_inside = (index >= low) & (index < end)
        return is_inside.all(axis=1)

    return contains


@REGIONS.register("orthotopic")
def make_orthotopic(arguments: str, space: FactorSpace) -> Predicate:
    """Holds out points with more than n factors beyond their thresholds.

    Args:
        arguments: The number n.
        space: The factors of a published data set.

    Raises:
        ValueError: If the data set is unknown, or has no such split.
    """
    columns, scales, classes = _find_split("orthotopic", arguments, space)
    thresholds = classes * scales

    def contains(values: Array) -> Array:
        index = space.to_index(values)[:, columns]
        num_high = np.sum(index >= thresholds, axis=1)
        return num_high > int(arguments)

    return contains


def _find_split(
    kind: str,
    arguments: str,
    space: FactorSpace,
) -> tuple[list[int], Array, Array]:
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
    data = _find_published(names)
    published = PUBLISHED.get(data).load()
    splits = getattr(published, kind)
    if arguments not in splits:
        rule = "another region"
        if splits:
            rule = f"one of {', '.join(splits)}"
        raise ValueError(f"must be {rule} for {data}")

    columns = []
    scales = []
    classes = []
    for factor, held_out in splits[arguments].items():
        column = names.index(factor)
        columns.append(column)
        scales.append(space.shape[column] / published.classes[factor])
        classes.append(held_out)
    return columns, np.array(scales), np.array(classes)


def _find_published(names: list[str]) -> str:
    """Finds the first data set whose factors are all among names."""
    listed = []
    for data in PUBLISHED.names():
        factors = PUBLISHED.get(data).load().classes
        if {*factors} <= {*names}:
            return data
        listed.append(f"{', '.join(factors)} ({data})")
    rule = "of this kind needs the factors of a published data set"
    raise ValueError(f"{rule}: {'; '.join(listed)}")


def _simplify(name: str) -> str:
    """Returns the published name of a factor with another spelling."""
    plain = name.lower().removeprefix("label_").replace(" ", "_")
    return SYNONYMS.get(plain, plain)


register_published(Path(__file__).with_name("published.toml"))
