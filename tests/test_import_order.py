"""Imports go one way, and TensorFlow is imported late."""

from __future__ import annotations

import ast
import functools
import subprocess
import sys
from collections.abc import Iterator
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

import tfcomp

ROOT = Path(tfcomp.__file__).parent

# A part (a module or a package of tfcomp) imports only parts before it. A
# part that is not listed may stand anywhere, as long as there is no cycle.
ORDER = (
    "errors quiet layers regularizers registry factors settings regions "
    "config run_flags curves metrics figures renderers encodings datasets "
    "models checks analysis stage_blocks stage_numbers training evaluation "
    "export run_folder run_search loading descriptions exhibits pictures "
    "study measures summaries monitor experiment few_shot_series report "
    "claims sweeps thresholds train few_shot measure sweep threshold"
).split()
LIGHT = (
    "tfcomp",
    "tfcomp.config",
    "tfcomp.datasets",
    "tfcomp.encodings",
    "tfcomp.measures",
    "tfcomp.models",
    "tfcomp.regions",
    "tfcomp.run_flags",
    "tfcomp.sweep",
    "tfcomp.sweeps.scheduling",
    "tfcomp.sweeps.trial",
    "tfcomp.threshold",
    "tfcomp.thresholds.one_search",
    "tfcomp.train",
)


def list_sources() -> list[Path]:
    return sorted(ROOT.rglob("*.py"))


def part_of(path: Path) -> str:
    relative = path.relative_to(ROOT)
    return relative.parts[0].removesuffix(".py")


def list_parts() -> list[str]:
    return sorted({part_of(path) for path in list_sources()} - {"__init__"})


def list_imports(path: Path) -> Iterator[str]:
    """Parts of tfcomp that a file imports, inside functions as well."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path} has a relative import"
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        else:
            continue
        for name in names:
            package, *rest = name.split(".")
            if package == "tfcomp" and rest:
                yield rest[0]


@functools.cache
def list_edges() -> set[tuple[str, str]]:
    parts = list_parts()  # `from tfcomp import __version__` is no part
    return {
        (part_of(path), imported)
        for path in list_sources()
        for imported in list_imports(path)
        if imported in parts and part_of(path) != imported
    }


def list_entry_points() -> set[str]:
    """What a user can start with `python -m`: modules at the top."""
    return {
        part_of(path)
        for path in sorted(ROOT.glob("*.py"))
        if 'if __name__ == "__main__":' in path.read_text(encoding="utf-8")
    }


def test_listed_parts_exist() -> None:
    assert len(ORDER) == len(set(ORDER))
    assert set(ORDER) <= set(list_parts())


@pytest.mark.parametrize("part", ORDER)
def test_imports_go_one_way(part: str) -> None:
    imported = {name for user, name in list_edges() if user == part}
    assert not imported & set(ORDER[ORDER.index(part) :])


def test_no_cycles() -> None:
    graph = {part: set() for part in list_parts()}
    for user, imported in list_edges():
        graph[user].add(imported)
    # Raises CycleError, which shows the cycle, if there is one.
    order = list(TopologicalSorter(graph).static_order())
    assert set(order) == set(graph)


def test_some_imports_are_found() -> None:
    edges = list_edges()
    assert ("regions", "factors") in edges
    assert ("train", "experiment") in edges  # inside a function
    assert ("datasets", "renderers") in edges


def test_libraries_do_not_import_entry_points() -> None:
    entry_points = list_entry_points()
    assert "train" in entry_points
    users = {user for user, name in list_edges() if name in entry_points}
    assert users <= entry_points


def test_importing_the_package_imports_no_part() -> None:
    assert list(list_imports(ROOT / "__init__.py")) == []


def test_tensorflow_is_imported_late() -> None:
    script = (
        "import importlib, sys\n"
        f"for name in {LIGHT}:\n"
        "    importlib.import_module(name)\n"
        "    heavy = {'tensorflow', 'keras', 'matplotlib', 'sklearn'}\n"
        "    found = heavy & set(sys.modules)\n"
        "    assert not found, (name, found)\n"
    )
    result = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True
    )
    assert result.returncode == 0, result.stderr
