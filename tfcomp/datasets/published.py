"""Published data sets: their factors, and splits that papers hold out.

A file of data sets, as `published.toml`, which says what its fields mean, is
registered by

    register_published(Path(__file__).with_name("published.toml"))
"""

import tomllib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tfcomp.config.plugins import Registry

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


register_published(Path(__file__).with_name("published.toml"))
