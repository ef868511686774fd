"""Fixtures of the pipeline's tests: small profiles, and runs without sweeps."""

import json
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from pipelines.profile import Profile, load_profile
from tfcomp.config.run_config import RunConfig
from tfcomp.storage.files import write_csv

REPOSITORY = Path(__file__).parents[2]
SWEEP = "tiny"
TINY = (
    "--flagfile=smoke.flags",
    f"--run_name={SWEEP}",
    "--grid_size=8",
    "--region=corner:5",
    "--model=mlp",
    "--width=4",
    "--epochs=1",
    "--steps_per_epoch=5",
    "--eval_every=0",
    "--layerwise_every=0",
)
RULES = """
push_as = "tiny"
sweep = "tiny"

[thresholds]
id_relative_mse = {below = 1000}
"""


@pytest.fixture(autouse=True, scope="session")
def _pipelines_are_found() -> Iterator[None]:
    """Lets the processes of tests import `pipelines` in any folder."""
    paths = [str(REPOSITORY), os.environ.get("PYTHONPATH", "")]
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", os.pathsep.join(filter(None, paths)))
        yield


def write_tiny_profile(folder: Path, *flags: str, rules: str = RULES) -> Path:
    """Writes the folder of a profile with one tiny sweep."""
    folder.mkdir(exist_ok=True)
    (folder / "tiny_sweep.flags").write_text("\n".join([*TINY, *flags]))
    (folder / "profile.toml").write_text(rules)
    return folder


@pytest.fixture
def write_profile(tmp_path: Path) -> Callable[..., Path]:
    """Writes a tiny profile among the temporary files of the test."""

    def write(*flags: str, rules: str = RULES, name: str = "own") -> Path:
        return write_tiny_profile(tmp_path / name, *flags, rules=rules)

    return write


@pytest.fixture
def make_profile(write_profile: Callable[..., Path]) -> Callable[..., Profile]:
    """The profile that `write_profile` writes, loaded."""

    def make(*flags: str, plugins: str = "", **changes: str) -> Profile:
        folder = write_profile(*flags, **changes)
        return load_profile(str(folder), plugins)

    return make


@pytest.fixture
def tiny_profile(make_profile: Callable[..., Profile]) -> Profile:
    """A profile with one trial that takes a second."""
    return make_profile()


@pytest.fixture
def runs_dir(smoke_run: RunConfig, tmp_path: Path) -> Path:
    """The output of a trainer: one trial, the smoke run."""
    folder = tmp_path / "runs"
    trials = folder / "logs" / SWEEP / "trials"
    shutil.copytree(smoke_run.run_dir, trials / "smoke")
    models = folder / "saved_models" / SWEEP / "smoke"
    shutil.copytree(smoke_run.export_path, models)
    metrics = json.loads((trials / "smoke" / "metrics.json").read_text())
    row = {"trial": "smoke", "status": "finished", "reason": "", "seed": 0}
    for subset in ("id", "ood"):
        row |= {f"{subset}_{k}": v for k, v in metrics[subset].items()}
    write_csv(trials.parent / "trials.csv", [row])
    return folder
