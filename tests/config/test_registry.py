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


@pytest.mark.parametrize(
    ("builder", "built"),
    [(build_one, 1), ("builtins:int", 0), (functools.partial(int, "7"), 7)],
)
def test_a_name_has_one_builder(builder: Callable | str, built: int) -> None:
    registry = Registry("shape")
    registry.register("b", build_two)
    registry.register("a", builder)
    registry.register("a", builder)
    with pytest.raises(ValueError, match="shape 'a' is registered already"):
        registry.register("a", "json:dumps")
    assert registry.get("a").load()() == built
    with pytest.raises(ConfigError, match="--shape must be one of: a, b, got"):
        registry.get("c")


def test_path_is_imported_only_when_loaded(plugins: Path) -> None:
    registry = Registry("shape")
    (plugins / "lazy_shapes.py").write_text("def build():\n    return 5\n")
    registry.register("lazy", "lazy_shapes:build")
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
