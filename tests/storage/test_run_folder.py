"""What a finished run promises, and what state an unfinished one is in."""

import dataclasses
import json
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from tfcomp.config.errors import RunError
from tfcomp.config.flagfiles import expand_flagfiles
from tfcomp.config.run_config import RunConfig
from tfcomp.storage.files import MAX_TEXT
from tfcomp.storage.output_folders import lock_folder
from tfcomp.storage.run_folder import (
    check_run,
    claim_run,
    is_finished,
)

METRICS = {"id": {"mse": 1.0}, "layers": {"image": {}}, "train": {}}


@pytest.fixture
def finished(make_smoke: Callable[..., RunConfig]) -> RunConfig:
    """A run with files that look finished."""
    smoke_config = make_smoke()
    claim_run(smoke_config).close()
    run = Path(smoke_config.run_dir)
    with zipfile.ZipFile(run / "model.keras", "w") as archive:
        archive.writestr("model.weights.h5", bytes(100))
    (run / "metrics.json").write_text(json.dumps(METRICS))
    assert is_finished(run)
    return smoke_config


@pytest.mark.parametrize(
    "text",
    [
        None,
        "",
        "{}",
        "[]",
        '{"id": 3}',
        '{"train": {}}',
        '{"id": {}, "layers": []}',
        '{"id": {}, "layers": {"code": 3}}',
    ],
)
def test_metrics(text: str | None, finished: RunConfig) -> None:
    file = Path(finished.run_dir) / "metrics.json"
    file.unlink() if text is None else file.write_text(text)
    assert not is_finished(file.parent)


@pytest.mark.parametrize(("first", "last"), [(0, 0), (0, 50), (0, -5)])
def test_model_is_cut(first: int, last: int, finished: RunConfig) -> None:
    file = Path(finished.run_dir) / "model.keras"
    file.write_bytes(file.read_bytes()[first:last])
    assert not is_finished(file.parent)
    file.unlink()
    assert not is_finished(file.parent)


def test_model_has_other_bytes(finished: RunConfig) -> None:
    file = Path(finished.run_dir) / "model.keras"
    file.write_bytes(file.read_bytes().replace(bytes(100), bytes([7]) * 100))
    assert not is_finished(file.parent)


def test_running_is_not_interrupted(
    finished: RunConfig, make_smoke: Callable[..., RunConfig]
) -> None:
    run = Path(finished.run_dir)
    (run / "metrics.json").unlink()
    with lock_folder(run):
        with pytest.raises(RunError, match="exists in .* and is running"):
            claim_run(make_smoke())
        with pytest.raises(RunError, match="is running, it has no metrics"):
            check_run(run)
    with pytest.raises(RunError, match="was interrupted: add --resume"):
        claim_run(make_smoke())
    with pytest.raises(RunError, match="is not finished, .* --resume"):
        check_run(run)


def test_damaged_flags_are_named(
    finished: RunConfig, make_smoke: Callable[..., RunConfig]
) -> None:
    (Path(finished.run_dir) / "run.flags").write_bytes(bytes(range(256)))
    with pytest.raises(RunError, match="run.flags cannot be read"):
        claim_run(make_smoke("--resume"))


@pytest.mark.parametrize("part", ["head", "tail", "middle", "changed"])
def test_lost_lines_of_the_flags(part: str, make_smoke: Callable) -> None:
    """Before, flags that were lost had their defaults: another region."""
    config = make_smoke("--region=corner:14")
    claim_run(config).close()
    file = Path(config.run_dir) / "run.flags"
    lines = file.read_text().splitlines(keepends=True)
    text = {
        "head": lines[:20],
        "tail": lines[20:],
        "middle": lines[:20] + lines[22:],
        "changed": [line.replace("corner:14", "corner:15") for line in lines],
    }[part]
    file.write_text("".join(text))
    resumed = dataclasses.replace(config, resume=True)
    for use in (
        lambda: check_run(config.run_dir),
        lambda: claim_run(resumed),
        lambda: expand_flagfiles([f"--flagfile={file}"]),
    ):
        with pytest.raises(RunError, match="lines are missing or were changed"):
            use()


def test_flags_of_earlier_versions_have_no_checksum(
    make_smoke: Callable,
) -> None:
    config = make_smoke("--region=corner:14")
    claim_run(config).close()
    file = Path(config.run_dir) / "run.flags"
    lines = file.read_text().splitlines()
    assert lines[0] == lines[-1] and lines[0].startswith("#= ")
    file.write_text("\n".join(lines[1:-1]))
    claim_run(dataclasses.replace(config, resume=True)).close()


def test_empty_flags(make_smoke: Callable) -> None:
    """Before, a traceback."""
    config = make_smoke()
    claim_run(config).close()
    (Path(config.run_dir) / "run.flags").write_text("\n")
    with pytest.raises(RunError, match="run.flags is damaged .it has no flags"):
        check_run(config.run_dir)


def test_huge_metrics_are_not_read(finished: RunConfig) -> None:
    """Before, `analyze` hashed a sparse file of any size first."""
    with open(Path(finished.run_dir) / "metrics.json", "r+b") as file:
        file.truncate(MAX_TEXT + 1)
    with pytest.raises(RunError, match="it has more than 128 MB"):
        check_run(finished.run_dir)
