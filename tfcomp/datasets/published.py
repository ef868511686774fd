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
    text = file.read_text("utf-8")
    tables = tomllib.loads(text)
    for name, facts in tables.items():
        data = PublishedData(**facts)
        PUBLISHED.register(name, data)


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
def make_montero(
    arguments: str,
    space: FactorSpace,
) -> Predicate:
    """Holds out a split of Montero et al., as `element`.

    Args:
        arguments: The name of the split.
        space: The factors of a published data set.

    Raises:
        ValueError: If the data set or the split is unknown.
    """
    columns, scales, classes = _find_split("montero", arguments, space)
    # The first and last held-out class of each factor; all must hold.
    first, last = classes.T
    low = first * scales
    end = (last + 1) * scales

    def contains(values: Array) -> Array:
        index = space.to_index(values)
        index = index[:, columns]
        is_above = index >= low
        is_below = index < end
        is_inside = is_above & is_below
        return is_inside.all(axis=1)

    return contains


@REGIONS.register("orthotopic")
def make_orthotopic(
    arguments: str,
    space: FactorSpace,
) -> Predicate:
    """Holds out points with more than n factors beyond their thresholds.

    Args:
        arguments: The number n.
        space: The factors of a published data set.

    Raises:
        ValueError: If the data set is unknown, or has no such split.
    """
    columns, scales, classes = _find_split("orthotopic", arguments, space)
    thresholds = classes * scales
    limit = int(arguments)

    def contains(values: Array) -> Array:
        index = space.to_index(values)
        is_high = index[:, columns] >= thresholds
        num_high = is_high.sum(axis=1)
        return num_high > limit

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
    names = list(map(_simplify, space.names))
    data = _find_published(names)
    published = PUBLISHED.get(data).load()
    splits = getattr(published, kind)
    if arguments not in splits:
        rule = "another region"
        if splits:
            listed = ", ".join(splits)
            rule = f"one of {listed}"
        raise ValueError(f"must be {rule} for {data}")

    columns = []
    scales = []
    classes = []
    split = splits[arguments]
    for factor, held_out in split.items():
        column = names.index(factor)
        num_levels = space.shape[column]
        num_classes = published.classes[factor]
        columns.append(column)
        scales.append(num_levels / num_classes)
        classes.append(held_out)
    return columns, np.array(scales), np.array(classes)


def _find_published(names: list[str]) -> str:
    """Finds the first data set whose factors are all among names."""
    listed = []
    for data in PUBLISHED.names():
        published = PUBLISHED.get(data).load()
        factors = published.classes
        if factors.keys() <= {*names}:
            return data
        joined = ", ".join(factors)
        listed.append(f"{joined} ({data})")
    rule = "of this kind needs the factors of a published data set"
    joined = "; ".join(listed)
    raise ValueError(f"{rule}: {joined}")


def _simplify(name: str) -> str:
    """Returns the published name of a factor with another spelling."""
    plain = name.lower()
    plain = plain.removeprefix("label_")
    plain = plain.replace(" ", "_")
    return SYNONYMS.get(plain, plain)


register_published(Path(__file__).with_name("published.toml"))
