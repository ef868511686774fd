"""Registries: names, lazy paths, duplicates; plugins."""

from __future__ import annotations

import functools
import subprocess
import sys
from pathlib import Path

import pytest

from tfcomp.config.errors import ConfigError
from tfcomp.config.errors import RunError
from tfcomp.config.registry import Registry
from tfcomp.config.registry import import_plugins


def build_one() -> int:
    return 1


def build_two() -> int:
    return 2


@pytest.fixture
def registry() -> Registry:
    return Registry("shape")


@pytest.fixture
def plugins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder on the import path; its modules are forgotten afterwards."""
    monkeypatch.syspath_prepend(str(tmp_path))
    before = set(sys.modules)
    yield tmp_path
    for name in set(sys.modules) - before:
        del sys.modules[name]


def test_decorator_returns_the_builder(registry: Registry) -> None:
    @registry.register("round")
    def build() -> int:
        return 3

    assert build() == 3
    assert registry.get("round").load() is build


def test_names_are_sorted(registry: Registry) -> None:
    registry.register("b", build_two)
    registry.register("a", build_one)
    assert registry.names() == ["a", "b"]


def test_duplicate_is_rejected(registry: Registry) -> None:
    registry.register("a", build_one)
    with pytest.raises(ValueError, match="shape 'a' is registered already"):
        registry.register("a", build_two)
    with pytest.raises(ValueError, match="registered already"):
        registry.register("a", "json:dumps")
    assert registry.get("a").load() is build_one


def test_same_builder_may_be_registered_again(registry: Registry) -> None:
    registry.register("a", build_one)
    registry.register("a", build_one)
    registry.register("b", "json:dumps")
    registry.register("b", "json:dumps")
    assert registry.names() == ["a", "b"]


def test_partial_is_a_builder(registry: Registry) -> None:
    first = functools.partial(int, "7")
    registry.register("a", first)
    registry.register("a", first)
    assert registry.get("a").load()() == 7
    with pytest.raises(ValueError, match="registered already"):
        registry.register("a", functools.partial(int, "8"))


def test_unknown_name_lists_the_known(registry: Registry) -> None:
    registry.register("b", build_two)
    registry.register("a", build_one)
    with pytest.raises(ConfigError) as caught:
        registry.get("c")
    assert str(caught.value) == "--shape must be one of: a, b, got 'c'"


def test_check_is_kept(registry: Registry) -> None:
    registry.register("a", build_one, check=build_two)
    registry.register("b", build_two)
    assert registry.get("a").check is build_two
    assert registry.get("b").check is None


def test_path_is_imported_only_when_loaded(
    registry: Registry, plugins: Path
) -> None:
    (plugins / "lazy_shapes.py").write_text("def build():\n    return 5\n")
    registry.register("lazy", "lazy_shapes:build")
    assert registry.names() == ["lazy"]
    entry = registry.get("lazy")
    assert "lazy_shapes" not in sys.modules
    assert entry.load()() == 5
    assert "lazy_shapes" in sys.modules


def test_listing_what_exists_does_not_import_tensorflow() -> None:
    script = (
        "import sys\n"
        "from tfcomp.datasets import DATASETS\n"
        "from tfcomp.models.encodings import ENCODINGS\n"
        "from tfcomp.models import MODELS\n"
        "names = [r.names() for r in (DATASETS, ENCODINGS, MODELS)]\n"
        "assert all(names), names\n"
        "sys.exit('tensorflow' in sys.modules or 'keras' in sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True)


def test_shipped_paths_exist() -> None:
    from tfcomp.datasets import DATASETS
    from tfcomp.datasets.regions import REGIONS
    from tfcomp.models import MODELS
    from tfcomp.models.encodings import ENCODINGS

    for table in (DATASETS, ENCODINGS, MODELS, REGIONS):
        for name in table.names():
            assert callable(table.get(name).load())


def test_plugins_are_imported_in_order(plugins: Path) -> None:
    (plugins / "first_part.py").write_text("value = [1]\n")
    (plugins / "second_part.py").write_text(
        "import sys\nsys.modules['first_part'].value.append(2)\n"
    )
    import_plugins("first_part, second_part,")
    assert sys.modules["first_part"].value == [1, 2]


def test_no_plugins() -> None:
    before = set(sys.modules)
    import_plugins("")
    import_plugins(" , ")
    assert set(sys.modules) == before


def test_missing_plugin_names_flag_and_value(plugins: Path) -> None:
    (plugins / "first_part.py").write_text("")
    with pytest.raises(ConfigError) as caught:
        import_plugins("first_part,no_such_part")
    assert caught.value.name == "plugins"
    assert caught.value.value == "first_part,no_such_part"
    assert "No module named 'no_such_part'" in str(caught.value)


def test_plugin_that_misses_a_dependency(plugins: Path) -> None:
    (plugins / "needy_part.py").write_text("import no_such_dependency\n")
    with pytest.raises(ConfigError, match="named 'no_such_dependency'"):
        import_plugins("needy_part")


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("1 / 0\n", "--plugins: bad_part failed: division by zero"),
        ("def (\n", "--plugins: bad_part failed: "),
        ("from os import nothing_like_it\n", "cannot import name"),
    ],
)
def test_plugin_that_fails(source: str, message: str, plugins: Path) -> None:
    (plugins / "bad_part.py").write_text(source)
    with pytest.raises(RunError, match=message):
        import_plugins("bad_part")


def test_plugin_with_a_taken_name(plugins: Path) -> None:
    (plugins / "taken_part.py").write_text(
        "from tfcomp.models import MODELS\n"
        "@MODELS.register('mlp')\n"
        "def build(config, dataset): ...\n"
    )
    with pytest.raises(RunError, match="model 'mlp' is registered already"):
        import_plugins("taken_part")
