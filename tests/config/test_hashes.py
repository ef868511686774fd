"""The hash of the code covers what decides numbers, and nothing else."""

import importlib
import re
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import tfcomp
from tfcomp.config.hashes import DECIDING, compute_code_version

# Rooms that only draw numbers, and names of the package itself.
SHOWING = {"tfcomp", "tfcomp.figures"}
IMPORT = re.compile(r"^\s*(?:from|import) (tfcomp(?:\.\w+)?)", re.MULTILINE)


def test_deciding_packages_import_nothing_else():
    root = Path(tfcomp.__file__).parents[1]
    imported = {
        name
        for package in DECIDING
        for path in root.joinpath(*package.split(".")).rglob("*.py")
        for name in IMPORT.findall(path.read_text("utf-8"))
    }
    assert imported - SHOWING == set(DECIDING)


@pytest.fixture
def copy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A copy of the package that may be changed."""
    root = tmp_path / "tfcomp"
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(Path(tfcomp.__file__).parent, root, ignore=ignored)
    monkeypatch.setattr(tfcomp, "__path__", [str(root)])
    for name in [n for n in sys.modules if n.startswith("tfcomp.")]:
        monkeypatch.delitem(sys.modules, name)
    importlib.invalidate_caches()
    compute_code_version.cache_clear()
    yield root
    compute_code_version.cache_clear()


def recompute(*arguments: str) -> str:
    compute_code_version.cache_clear()
    return compute_code_version(*arguments)


def test_version_follows_deciding_sources_or_is_chosen(
    copy: Path, monkeypatch: pytest.MonkeyPatch
):
    before = recompute()
    for name in (
        "metrics/scores.py",
        "models/decoders/convolutional.py",
        "training/fit.py",
    ):
        path = copy / name
        text = path.read_text()
        path.write_text(text + "\n# changed\n")
        assert recompute() != before, name
        path.write_text(text)
    for name in ("__init__.py", "sweep.py", "figures/map_plots.py"):
        with open(copy / name, "a") as file:
            file.write("\n# changed\n")
    assert recompute() == before
    (copy / "models" / "another.py").write_text("")
    assert recompute() != before
    monkeypatch.setenv("TFCOMP_CODE_VERSION", before)
    assert recompute() == before


def test_version_counts_plugins(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.syspath_prepend(tmp_path)
    module = tmp_path / "my_counted_parts.py"
    part = tmp_path / "my_counted_package/part.py"
    part.parent.mkdir()
    for path in (module, part.with_name("__init__.py"), part):
        path.write_text("")

    names = "my_counted_parts, my_counted_package"
    versions = {recompute(), recompute(names)}
    for path in (module, part):
        path.write_text("A = 2\n")
        versions.add(recompute(names))
    assert len(versions) == 4
    assert recompute("sys") == recompute()  # it has no source
