"""Registries: names, lazy paths, duplicates."""

import functools
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tfcomp.config.errors import ConfigError
from tfcomp.config.registry import Registry


def build_one() -> int:
    return 1


def build_two() -> int:
    return 2


@pytest.fixture
def registry() -> Registry:
    """Two builders, registered in another order than that of their names."""
    table = Registry("shape")
    table.register("b", build_two)
    table.register("a", build_one, check=build_two)
    return table


@pytest.mark.parametrize(
    ("builder", "other", "built"),
    [
        (build_one, build_two, 1),
        (build_one, "json:dumps", 1),
        ("builtins:int", "json:dumps", 0),
        (functools.partial(int, "7"), functools.partial(int, "8"), 7),
    ],
)
def test_a_name_has_one_builder(
    builder: Callable | str,
    other: Callable | str,
    built: int,
    registry: Registry,
) -> None:
    registry.register("c", builder)
    registry.register("c", builder)
    with pytest.raises(ValueError, match="shape 'c' is registered already"):
        registry.register("c", other)
    assert registry.get("c").load()() == built
    assert registry.names() == ["a", "b", "c"]


def test_unknown_name_lists_the_known(registry: Registry) -> None:
    with pytest.raises(ConfigError) as caught:
        registry.get("c")
    assert str(caught.value) == "--shape must be one of: a, b, got 'c'"


def test_path_is_imported_only_when_loaded(
    registry: Registry, plugins: Path
) -> None:
    (plugins / "lazy_shapes.py").write_text("def build():\n    return 5\n")
    registry.register("lazy", "lazy_shapes:build")
    assert "lazy" in registry.names()
    entry = registry.get("lazy")
    assert "lazy_shapes" not in sys.modules
    assert entry.load()() == 5
    assert "lazy_shapes" in sys.modules


def test_shipped_paths_exist() -> None:
    from tfcomp.datasets import DATASETS
    from tfcomp.datasets.regions import REGIONS
    from tfcomp.models import MODELS
    from tfcomp.models.encodings import ENCODINGS

    for table in (DATASETS, ENCODINGS, MODELS, REGIONS):
        for name in table.names():
            assert callable(table.get(name).load())
