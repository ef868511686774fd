"""The code version covers the packages that decide numbers, and no other."""

import importlib
import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import tfcomp
from tfcomp.storage.code_version import (
    DECIDING,
    compute_code_version,
)

# What a training imports beside the packages that decide its numbers.
SHOWING = {"tfcomp", "tfcomp.figures", "tfcomp.sweeps"}


def test_a_training_imports_nothing_else(tmp_path: Path) -> None:
    script = (
        "import json, sys\n"
        "import tfcomp.figures.layout\n"
        "tfcomp.figures.layout.MAX_LAYOUT_STEPS = 0\n"  # half the time
        "from tfcomp.sweeps import worker_task\n"
        "worker_task.run_trial(sys.argv)\n"
        "names = {'.'.join(n.split('.')[:2]) for n in sys.modules}\n"
        "print(json.dumps([n for n in names if n.startswith('tfcomp')]))\n"
    )
    flags = [
        "--flagfile=smoke.flags",
        "--epochs=1",
        "--steps_per_epoch=1",
        "--grid_size=8",
        "--region=square:3-5",
        "--layerwise_every=0",
        "--export=false",
        f"--log_dir={tmp_path}",
    ]
    result = subprocess.run(
        [sys.executable, "-c", script, *flags],
        capture_output=True,
        text=True,
        check=True,
    )
    imported = set(json.loads(result.stdout.splitlines()[-1]))
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


def test_version_follows_deciding_sources(copy: Path) -> None:
    before = recompute()
    for name in (
        "analysis/scores.py",
        "models/convolutional.py",
        "training/fit.py",
    ):
        path = copy / name
        text = path.read_text()
        path.write_text(text + "\n# changed\n")
        assert recompute() != before, name
        path.write_text(text)
    (copy / "models" / "another.py").write_text("")
    assert recompute() != before


def test_version_ignores_everything_else(copy: Path) -> None:
    before = recompute()
    for name in ("__init__.py", "sweep.py", "figures/map_plots.py"):
        with open(copy / name, "a") as file:
            file.write("\n# changed\n")
    assert recompute() == before


def test_version_can_be_chosen(
    copy: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = recompute()
    (copy / "analysis/scores.py").write_text("# only a comment has changed\n")
    assert recompute() != before
    monkeypatch.setenv("TFCOMP_CODE_VERSION", before)
    assert recompute() == before


def test_version_counts_plugins(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    plugin = tmp_path / "my_counted_parts.py"
    plugin.write_text("A = 1\n")
    package = tmp_path / "my_counted_package"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "part.py").write_text("B = 1\n")
    names = "my_counted_parts, my_counted_package"
    before = recompute(names)
    assert before != recompute()
    plugin.write_text("A = 2\n")
    second = recompute(names)
    (package / "part.py").write_text("B = 2\n")
    assert len({before, second, recompute(names)}) == 3
    assert recompute("sys") == recompute()  # it has no source
