"""Loading runs: what is no run, or not finished, is one clear line."""

import shutil
from pathlib import Path

import numpy as np
import pytest

from tfcomp.config.errors import RunError
from tfcomp.config.run_config import RunConfig
from tfcomp.evaluation.loading import load_run
from tfcomp.storage.run_folder import check_run


@pytest.fixture
def copy(smoke_run: RunConfig, tmp_path: Path) -> Path:
    return Path(shutil.copytree(smoke_run.run_dir, tmp_path / "smoke"))


def test_load_run(copy: Path, smoke_run: RunConfig) -> None:
    run = load_run(copy)
    assert run.config.identity() == smoke_run.identity()
    assert run.config.run_dir == str(copy)
    assert run.metrics["train"]["epochs"] == smoke_run.training.epochs
    image = run.model.predict(np.zeros((1, 2), np.float32), verbose=0)
    assert image.shape == (1, 12, 12, 1)


@pytest.mark.parametrize(
    ("name", "message"), [("no", "does not exist"), ("", "has no run.flags")]
)
def test_folder_without_a_run(tmp_path: Path, name: str, message: str) -> None:
    with pytest.raises(RunError, match=message):
        check_run(tmp_path / name)


@pytest.mark.parametrize("name", ["metrics.json", "model.keras"])
def test_unfinished_run(copy: Path, name: str) -> None:
    (copy / name).unlink()
    with pytest.raises(RunError, match=f"has no {name}: go on with"):
        check_run(copy)


@pytest.mark.parametrize("line", ["--color=red", "--depth=x", "--depth=0"])
def test_run_of_another_version(copy: Path, line: str) -> None:
    with (copy / "run.flags").open("a") as file:
        file.write(line + "\n")
    with pytest.raises(RunError, match="another version"):
        check_run(copy)


@pytest.mark.parametrize("name", ["metrics.json", "model.keras"])
def test_damaged_file(copy: Path, name: str) -> None:
    (copy / name).write_bytes(b"{")
    with pytest.raises(RunError, match="is damaged"):
        load_run(copy)
