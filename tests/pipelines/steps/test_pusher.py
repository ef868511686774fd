"""The pusher: the next version, at once and only once."""

from __future__ import annotations

import os
import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from unittest import mock

import pytest

from pipelines.steps.pusher.executor import EVIDENCE
from pipelines.steps.pusher.executor import push_model
from tfcomp.config.errors import RunError
from tfcomp.storage.model_versions import list_versions


@pytest.fixture
def evaluation(tmp_path: Path) -> Path:
    path = tmp_path / "evaluation.json"
    path.write_text("{}")
    return path


def make_model(folder: Path, weights: str) -> Path:
    """What looks like an exported model."""
    (folder / "variables").mkdir(parents=True)
    (folder / "variables" / "data").write_text(weights)
    (folder / "assets.extra").mkdir()
    (folder / "assets.extra" / "weights.sha256").write_text(weights)
    return folder


def test_next_version(tmp_path: Path, evaluation: Path) -> None:
    target = tmp_path / "out" / "name"
    for number, weights in enumerate(("a", "b"), 1):
        model = make_model(tmp_path / weights, weights)
        push = push_model(model, target, evaluation)
        assert push.is_new and push.version == target / str(number)
        assert (push.version / "variables" / "data").read_text() == weights
        assert (push.version / EVIDENCE).read_text() == "{}"
    assert [v.name for v in list_versions(target)] == ["1", "2"]


def test_same_model_is_pushed_once(tmp_path: Path, evaluation: Path) -> None:
    model = make_model(tmp_path / "a", "a")
    first = push_model(model, tmp_path / "out", evaluation)
    again = push_model(model, tmp_path / "out", evaluation)
    assert not again.is_new and again.version == first.version
    # Back to an earlier model is a new version: the last one counts.
    other = make_model(tmp_path / "b", "b")
    push_model(other, tmp_path / "out", evaluation)
    back = push_model(model, tmp_path / "out", evaluation)
    assert back.is_new and back.version.name == "3"


@pytest.mark.parametrize("name", ["data", "more"])
def test_damaged_version_is_no_copy(
    name: str, tmp_path: Path, evaluation: Path
) -> None:
    model = make_model(tmp_path / "a", "a")
    (model / "variables" / "more").write_text("more")
    first = push_model(model, tmp_path / "out", evaluation)
    if name == "data":
        (first.version / "variables" / name).write_text("b")
    else:
        (first.version / "variables" / name).unlink()
    again = push_model(model, tmp_path / "out", evaluation)
    assert again.is_new and again.version.name == "2"


def test_interrupted_push_leaves_no_version(
    tmp_path: Path, evaluation: Path
) -> None:
    model = make_model(tmp_path / "a", "a")
    target = tmp_path / "out"
    with mock.patch("os.rename", side_effect=KeyboardInterrupt):
        with pytest.raises(KeyboardInterrupt):
            push_model(model, target, evaluation)
    assert list_versions(target) == []
    push = push_model(model, target, evaluation)
    assert push.version.name == "1"
    assert sorted(os.listdir(target)) == [".lock", "1"]


def test_pushes_at_once_take_turns(tmp_path: Path, evaluation: Path) -> None:
    models = [make_model(tmp_path / n, n) for n in "abcd"]
    with ThreadPoolExecutor(4) as pool:
        pushes = list(
            pool.map(
                lambda m: push_model(m, tmp_path / "out", evaluation), models
            )
        )
    names = sorted(push.version.name for push in pushes)
    assert names == ["1", "2", "3", "4"]
    for push, model in zip(pushes, models, strict=True):
        data = push.version / "variables" / "data"
        assert data.read_text() == model.name


def test_folder_that_cannot_be_written(
    tmp_path: Path, evaluation: Path
) -> None:
    (tmp_path / "out").write_text("a file")
    model = make_model(tmp_path / "a", "a")
    with pytest.raises(RunError, match="--export_dir must be writable"):
        push_model(model, tmp_path / "out" / "name", evaluation)


def test_absent_model(tmp_path: Path, evaluation: Path) -> None:
    with pytest.raises(RunError):
        push_model(tmp_path / "none", tmp_path / "out", evaluation)
    assert list_versions(tmp_path / "out") == []
    shutil.rmtree(tmp_path / "out")
