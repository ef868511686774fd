"""The claims are judged from a wheel, in an environment without TensorFlow."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
# To Python a module that cannot be imported.
WITHOUT = 'import sys; sys.modules |= {"tensorflow": None, "keras": None}\n'
PATIENCE = 300  # seconds, for a machine that is busy


def run(*command: object, **options: object) -> str:
    done = subprocess.run(
        list(map(str, command)),
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        **options,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def tfcomp(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The command of a wheel; only its dependencies are those of here."""
    pytest.importorskip("setuptools", reason="builds the wheel")
    folder = tmp_path_factory.mktemp("wheel")
    source = folder / "source"
    run("git", "clone", "-q", "--depth=1", f"file://{ROOT}", source)
    run(sys.executable, "-m", "venv", folder / "venv")
    (site,) = folder.glob("venv/lib/python*/site-packages")
    # A folder that is named here does not bring its own .pth files along.
    borrowed = [path for path in sys.path if path.endswith("site-packages")]
    (site / "borrowed.pth").write_text("\n".join([*borrowed, ""]))
    # By the setuptools of here: that of a new environment may be old.
    build = ("wheel", "-q", "--no-deps", "--no-build-isolation")
    run(sys.executable, "-m", "pip", *build, "-w", folder, source)
    (wheel,) = folder.glob("*.whl")
    pip = folder / "venv/bin/pip"
    run(pip, "install", "-q", "--no-deps", "--force-reinstall", wheel)
    (site / "sitecustomize.py").write_text(WITHOUT)
    return folder / "venv/bin/tfcomp"


def ask(tfcomp: Path, folder: Path, *flags: str) -> str:
    left_out = ("PYTHONPATH", "VIRTUAL_ENV", "PYTHONHOME")
    kept = {k: v for k, v in os.environ.items() if k not in left_out}
    return run(tfcomp, "study", *flags, cwd=folder, env=kept)


@pytest.mark.slow
@pytest.mark.timeout(4 * PATIENCE)
def test_claims_are_judged_from_a_wheel(tfcomp: Path, tmp_path: Path) -> None:
    runs = f"--runs={ROOT / 'docs/evidence'}"
    printed = ask(tfcomp, tmp_path, "claims", runs)
    lines = [line for line in printed.splitlines() if line[:1] == "C"]
    assert len(lines) == 22 and "not run" not in printed
    shown = (ROOT / "docs/results.md").read_text("utf-8")
    tables = (tmp_path / "report").glob("verdicts*.md")
    # To the last digit.
    assert any(table.read_text("utf-8").strip() in shown for table in tables)
    # The flagfiles of the plan are in the wheel, too.
    plan = ask(tfcomp, tmp_path, "claims", "--plan", runs)
    assert "| penalties | 40 | 0 | 40 |" in plan
