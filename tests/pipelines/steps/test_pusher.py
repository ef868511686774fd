"""The pusher: the next version, at once and only once."""

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from pipelines.steps.pusher import EVIDENCE, LINEAGE, push_model
from tfcomp.config.errors import RunError
from tfcomp.storage.output_folders import list_versions


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


def test_same_model_is_pushed_once(tmp_path: Path, evaluation: Path) -> None:
    out = tmp_path / "out" / "name"
    models = [make_model(tmp_path / name, name) for name in "ab"]
    # Back to an earlier model is a new version: the last one counts.
    order = [models[0], models[0], models[1], models[0]]
    pushes = [push_model(model, out, evaluation, {}) for model in order]
    versions = [version for version, _ in pushes]
    assert versions == [out / number for number in "1123"]
    assert [is_new for _, is_new in pushes] == [True, False, True, True]
    assert list_versions(out) == [out / number for number in "123"]
    for version, model in zip(versions, order, strict=True):
        assert (version / "variables" / "data").read_text() == model.name
        assert (version / EVIDENCE).read_text() == "{}"
    lineages = [
        json.loads((v / LINEAGE).read_text()) for v in list_versions(out)
    ]
    parents = [lineage["parents"] for lineage in lineages]
    assert [[p["version"] for p in found] for found in parents] == [
        [],
        ["1"],
        ["2"],
    ]
    assert len({found[0]["sha256"] for found in parents[1:]}) == 2


@pytest.mark.parametrize(
    "name", ["variables/data", "variables/more", "card.md"]
)
def test_damaged_version_is_no_copy(
    name: str, tmp_path: Path, evaluation: Path
) -> None:
    model = make_model(tmp_path / "a", "a")
    (model / "variables" / "more").write_text("more")
    (model / "card.md").write_text("card")
    first, _ = push_model(model, tmp_path / "out", evaluation, {})
    if name == "variables/more":
        (first / name).unlink()
    else:
        (first / name).write_text("b")
    again, is_new = push_model(model, tmp_path / "out", evaluation, {})
    assert is_new and again.name == "2"


def test_pushes_at_once_take_turns(tmp_path: Path, evaluation: Path) -> None:
    models = [make_model(tmp_path / n, n) for n in "abcd"]
    with ThreadPoolExecutor(4) as pool:
        places = [tmp_path / "out"] * 4, [evaluation] * 4, [{}] * 4
        versions = [v for v, _ in pool.map(push_model, models, *places)]
    assert sorted(v.name for v in versions) == ["1", "2", "3", "4"]
    for version, model in zip(versions, models, strict=True):
        assert (version / "variables" / "data").read_text() == model.name


def test_absent_model(tmp_path: Path, evaluation: Path) -> None:
    with pytest.raises(RunError, match="no SavedModel in .*none"):
        push_model(tmp_path / "none", tmp_path / "out", evaluation, {})
    assert list_versions(tmp_path / "out") == []
