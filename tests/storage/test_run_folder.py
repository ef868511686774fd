"""Guarantees of a finished run, and the state of an unfinished one."""

import codecs
import dataclasses
import json
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from tfcomp.config.errors import RunError
from tfcomp.config.run_config import RunConfig
from tfcomp.storage.files import lock_folder
from tfcomp.storage.run_folder import (
    claim_run,
    find_runs,
    is_finished,
    read_config,
    read_metrics,
    remove_outputs,
)

METRICS = {"id": {"mse": 1.0}, "layers": {"image": {}}, "train": {}}


def claim(config: RunConfig):
    """Makes the folder of a run, and gives it free."""
    with claim_run(config):
        pass


@pytest.fixture
def finished(make_smoke: Callable[..., RunConfig]) -> RunConfig:
    """A run with files that look finished."""
    smoke_config = make_smoke()
    claim(smoke_config)
    run = Path(smoke_config.run_dir)
    with zipfile.ZipFile(run / "model.keras", "w") as archive:
        archive.writestr("model.weights.h5", bytes(100))
    (run / "metrics.json").write_text(json.dumps(METRICS))
    assert is_finished(run)
    return smoke_config


@pytest.mark.parametrize("text", [None, "[]", '{"id": 3}', '{"train": {}}'])
def test_metrics(text: str | None, finished: RunConfig):
    file = Path(finished.run_dir) / "metrics.json"
    file.unlink() if text is None else file.write_text(text)
    assert not is_finished(file.parent)


def test_model_is_cut_or_has_other_bytes(finished: RunConfig):
    file = Path(finished.run_dir) / "model.keras"
    content = file.read_bytes()
    changed = content.replace(bytes(100), bytes([7]) * 100)
    for damaged in (b"", content[:50], content[:-5], changed):
        file.write_bytes(damaged)
        assert not is_finished(file.parent)
    file.unlink()
    assert not is_finished(file.parent)


def test_a_run_that_is_not_finished(
    finished: RunConfig, make_smoke: Callable[..., RunConfig]
):
    run = Path(finished.run_dir)
    (run / "metrics.json").unlink()
    with pytest.raises(RunError, match="add --resume"):
        claim(make_smoke())
    with pytest.raises(RunError, match="--resume$"):
        read_config(run)
    with lock_folder(run), pytest.raises(RunError, match="another process"):
        claim(make_smoke("--resume"))
    claim(make_smoke("--resume"))


def test_flags_of_a_run_that_are_empty(make_smoke: Callable):
    config = make_smoke("--region=corner:14")
    claim(config)
    (Path(config.run_dir) / "run.flags").write_text("\n")
    with pytest.raises(RunError, match="run.flags"):
        read_config(config.run_dir)


# What data managers and users make of a run folder


def test_a_run_of_links_is_read_and_resumed(
    finished: RunConfig, tmp_path: Path
):
    """DataLad, git-annex and DVC keep files elsewhere."""
    run = Path(finished.run_dir)
    store = tmp_path / "store"
    store.mkdir()
    for name in ("metrics.json", "model.keras", ".lock"):
        (run / name).rename(store / name)
        (run / name).symlink_to(store / name)
    (run / "best.keras").symlink_to("model.keras")

    assert read_config(run).run_dir == str(run)
    assert read_metrics(run) == METRICS
    claim(dataclasses.replace(finished, resume=True))


def test_editors_of_windows_change_no_flags(finished: RunConfig):
    file = Path(finished.run_dir, "run.flags")
    content = file.read_bytes().replace(b"\n", b"\r\n")
    file.write_bytes(codecs.BOM_UTF8 + content)
    assert read_config(file.parent) == finished


@pytest.mark.parametrize("name", ["run.flags", "metrics.json", "model.keras"])
def test_files_that_are_not_fetched(
    name: str, finished: RunConfig, make_smoke: Callable[..., RunConfig]
):
    """Going on with the run would train it again."""
    file = Path(finished.run_dir, name)
    file.unlink()
    file.symlink_to("../.git/annex/objects/x")

    for read in (
        lambda: read_config(file.parent),
        lambda: claim(make_smoke("--resume")),
        lambda: claim(make_smoke("--overwrite")),
    ):
        with pytest.raises(RunError, match=f"{name}: fetch"):
            read()


def test_overwriting_removes_links_and_not_what_they_lead_to(
    finished: RunConfig, tmp_path: Path
):
    run = Path(finished.run_dir)
    documents = tmp_path / "Documents"
    documents.mkdir()
    for name in ("thesis.pdf", "ckpt-1"):
        (documents / name).write_text("mine")
    (run / "checkpoints").mkdir()
    for name in ("analysis", "checkpoints/restart_1", "checkpoints/ckpt-7"):
        (run / name).symlink_to(documents)

    remove_outputs(run)

    assert sorted(path.name for path in documents.iterdir()) == [
        "ckpt-1",
        "thesis.pdf",
    ]
    assert sorted(path.name for path in run.iterdir()) == [".lock", "run.flags"]


@pytest.mark.parametrize(
    "name", [".DS_Store", ".nfs0001", ".ipynb_checkpoints", "lost+found"]
)
def test_what_systems_leave_in_a_folder_is_no_owner(
    name: str, make_smoke: Callable[..., RunConfig]
):
    config = make_smoke()
    Path(config.run_dir, name).mkdir(parents=True)
    claim(config)


@pytest.mark.parametrize("name", ["runs [2026]", "runs*"])
def test_a_path_that_exists_is_no_pattern(
    name: str, finished: RunConfig, tmp_path: Path
):
    run = Path(finished.run_dir)
    folder = tmp_path / name
    folder.mkdir()
    (folder / "a").symlink_to(run)
    (folder / "loop").symlink_to(folder)
    assert find_runs([str(folder)]) == [run.resolve()]
    assert find_runs([f"{folder}/[ab]"]) == [run.resolve()]


def test_search_finds_finished_runs_once(finished: RunConfig):
    run = Path(finished.run_dir)
    unfinished = run.with_name("unfinished")
    unfinished.mkdir()
    (unfinished / "run.flags").write_text("--depth=3")
    patterns = [str(run.parent), str(run), f"{run.parent}/**/sm*"]
    assert find_runs(patterns) == [run.resolve()]
    assert find_runs([str(unfinished)]) == []
