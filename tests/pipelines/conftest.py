"""Fixtures of the pipeline's tests: small profiles, and runs without sweeps."""

import functools
import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from pipelines.profile import Profile, load_profile, make_works
from tfcomp.config.run_config import RunConfig

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
RULES = (
    f"--candidate={SWEEP}",
    "--push_as=tiny",
    "--max=id_relative_mse=1000",
)


@pytest.fixture(autouse=True, scope="session")
def _pipelines_are_found() -> Iterator[None]:
    """Lets the processes of tests import `pipelines` in any folder."""
    paths = [str(REPOSITORY), os.environ.get("PYTHONPATH", "")]
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", os.pathsep.join(filter(None, paths)))
        yield


def write_tiny_profile(
    folder: Path,
    *flags: str,
    rules: Sequence[str] = RULES,
) -> Path:
    """Writes the folder of a profile with one tiny sweep."""
    folder.mkdir(exist_ok=True)
    (folder / "tiny_sweep.flags").write_text("\n".join([*TINY, *flags]))
    (folder / "pipeline.flags").write_text("\n".join(rules))
    return folder


@pytest.fixture
def write_profile(tmp_path: Path) -> Callable[..., Path]:
    """Writes a tiny profile among the temporary files of the test."""
    return functools.partial(write_tiny_profile, tmp_path / "own")


@pytest.fixture
def make_profile(write_profile: Callable[..., Path]) -> Callable[..., Profile]:
    """Writes a tiny profile and loads it."""

    def make(*flags: str, plugins: str = "", **changes: Any) -> Profile:
        folder = write_profile(*flags, **changes)
        return load_profile(str(folder), plugins)

    return make


@pytest.fixture
def tiny_profile(make_profile: Callable[..., Profile]) -> Profile:
    """A profile with one trial that takes a second."""
    return make_profile()


@pytest.fixture
def runs_dir(
    tiny_profile: Profile,
    smoke_run: RunConfig,
    tmp_path: Path,
) -> Path:
    """The output of a trainer, whose one trial is the smoke run."""
    folder = tmp_path / "runs"
    (sweep,) = make_works(tiny_profile, folder)
    (trial,) = sweep.items
    shutil.copytree(smoke_run.run_dir, trial.path)
    shutil.copytree(smoke_run.export_path, trial.config.export_path)
    return folder
