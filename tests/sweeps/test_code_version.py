"""The code version covers what decides numbers, and nothing else."""

from __future__ import annotations

import ast
import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tfcomp import sources
from tfcomp.sources import ROOT
from tfcomp.sources import list_sources
from tfcomp.sweeps.code_version import BYSTANDERS
from tfcomp.sweeps.code_version import DECIDING
from tfcomp.sweeps.code_version import compute_code_version

# Where deciding modules hand over to those that show what is going on. What
# they pass on must not come back and change a number: look at every new one.
HAND_OVERS = {
    ("experiment", "summaries"),
    ("monitor", "summaries"),
}
# Looked up, raised, written or read by all: no arithmetic.
PLUMBING = set("analysis errors files quiet registry run_flags sources".split())


def covers(part: str, names: tuple[str, ...]) -> bool:
    return any(part == name or part.startswith(f"{name}.") for name in names)


def name_of(module: str) -> str:
    """`tfcomp.models.cnn` as the tables write it."""
    part = module.removeprefix("tfcomp").removeprefix(".")
    return "analysis.__init__" if part == "analysis" else part


def test_every_module_of_a_training_is_known(tmp_path: Path) -> None:
    script = (
        "import json, sys\n"
        "from tfcomp.sweeps import trial\n"
        "trial.main(sys.argv)\n"
        "names = [n for n in sys.modules if n.split('.')[0] == 'tfcomp']\n"
        "print(json.dumps(names))\n"
    )
    flags = [
        "--flagfile=smoke.flags",
        "--epochs=1",
        "--steps_per_epoch=1",
        "--grid_size=8",
        "--region=square:3-5",
        f"--log_dir={tmp_path}",
        f"--export_dir={tmp_path / 'models'}",
    ]
    result = subprocess.run(
        [sys.executable, "-c", script, *flags],
        capture_output=True,
        text=True,
        check=True,
    )
    modules = json.loads(result.stdout.splitlines()[-1])
    assert "tfcomp.training.fit" in modules
    parts = [name_of(module) for module in modules if module != "tfcomp"]
    unknown = [p for p in parts if not covers(p, DECIDING + BYSTANDERS)]
    assert not unknown, f"add {unknown} to DECIDING or BYSTANDERS"


def test_tables_name_what_exists_once() -> None:
    names = [*DECIDING, *BYSTANDERS]
    assert len(names) == len(set(names))
    for name in names:
        path = ROOT.joinpath(*name.split("."))
        assert path.is_dir() or path.with_suffix(".py").is_file(), name
        assert not any(
            covers(name, (other,)) for other in names if other != name
        )


def test_deciding_modules_import_no_bystander() -> None:
    """Those that are left out cannot be needed for a number."""
    found = set()
    for _, path in list_sources(DECIDING):
        user = path.relative_to(ROOT).parts[0].removesuffix(".py")
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.ImportFrom) and node.module:
                used = name_of(node.module)
                if node.module.startswith("tfcomp") and not covers(
                    used, DECIDING
                ):
                    found.add((user, used.split(".")[0]))
    found = {(user, used) for user, used in found if used not in PLUMBING}
    assert found == HAND_OVERS


@pytest.fixture
def copy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the package that may be changed."""
    root = tmp_path / "tfcomp"
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT, root, ignore=ignored)
    monkeypatch.setattr(sources, "ROOT", root)
    compute_code_version.cache_clear()
    yield root
    compute_code_version.cache_clear()


def recompute(*arguments: str) -> str:
    compute_code_version.cache_clear()
    return compute_code_version(*arguments)


def test_version_follows_deciding_sources(copy: Path) -> None:
    before = recompute()
    for name in ("metrics.py", "models/cnn.py", "analysis/geometry.py"):
        path = copy / name
        text = path.read_text()
        path.write_text(text + "\n# changed\n")
        assert recompute() != before, name
        path.write_text(text)
    (copy / "models" / "another.py").write_text("")
    assert recompute() != before


def test_version_ignores_everything_else(copy: Path) -> None:
    before = recompute()
    for name in ("__init__.py", "sweep.py", "figures/maps.py", "compare.py"):
        with open(copy / name, "a") as file:
            file.write("\n# changed\n")
    assert recompute() == before


def test_version_can_be_chosen(
    copy: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = recompute()
    (copy / "metrics.py").write_text("# only a comment has changed\n")
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
