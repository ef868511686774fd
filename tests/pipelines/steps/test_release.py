"""The candidate is queried where tfcomp does not exist; pushed once."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from pipelines.steps import release
from pipelines.steps.canary import BLOCKED
from pipelines.steps.evaluator import LINEAGE
from tfcomp.config.errors import RunError
from tfcomp.config.run_config import RunConfig
from tfcomp.models.loading import load_run
from tfcomp.storage.output_folders import list_versions

Arrays = dict[str, np.ndarray]


@pytest.fixture(scope="module")
def expected(smoke_run: RunConfig) -> Arrays:
    run = load_run(smoke_run.run_dir)
    return release.make_answers(run, release.make_requests(run.dataset))


def test_model_is_asked_where_there_is_no_keras(tmp_path: Path) -> None:
    # What the canary does before it loads a model, then imports. What is
    # loaded there is a file; `test_components` asks a model of TensorFlow.
    (tmp_path / "tensorflow.py").write_text(
        "class saved_model:\n    load = staticmethod(open)\n"
    )
    script = (
        "import importlib, runpy, sys\n"
        f"sys.path.insert(0, {str(tmp_path)!r})\n"
        f"canary = runpy.run_path({str(release.CANARY)!r})\n"
        "try:\n"
        "    canary['main'](['no model', 'no requests', 'no answers'])\n"
        "except OSError:\n"
        "    pass\n"
        "assert 'tensorflow' in sys.modules\n"
        "for name in canary['BLOCKED']:\n"
        "    try:\n"
        "        importlib.import_module(name)\n"
        "    except ModuleNotFoundError as error:\n"
        "        print(error.name)\n"
    )
    command = [sys.executable, "-c", script]
    result = subprocess.run(command, stdout=subprocess.PIPE, text=True)
    assert result.stdout.split() == list(BLOCKED)


@pytest.mark.slow
def test_signature_that_is_missing(tmp_path: Path) -> None:
    import tensorflow as tf

    module = tf.Module()
    signature = tf.TensorSpec((None, 2), name="factors")
    draw = tf.function(lambda factors: {"image": factors}, [signature])
    tf.saved_model.save(module, tmp_path / "m", {"serving_default": draw})
    with pytest.raises(RunError, match="no signature activations, geometry"):
        release.query_model(
            tmp_path / "m", {"one": np.zeros((1, 2), np.float32)}
        )


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda a: a[:-1], "with shape"),
        (lambda a: a * np.nan, "differs from the network's by nan"),
        (lambda a: a + 0.01 * np.abs(a).max(), "differs from the network's"),
    ],
)
def test_wrong_answers(change, message: str, expected: Arrays) -> None:
    for name in ("serving_default/id/image", "geometry/ood/stage_1"):
        wrong = expected | {name: change(expected[name])}
        with pytest.raises(RunError, match=f"answers? {name} .*{message}"):
            release.compare_answers(wrong, expected)
    fewer = {k: v for k, v in expected.items() if k != name}
    with pytest.raises(RunError, match=f"{name} with shape None, the network"):
        release.compare_answers(fewer, expected)
    with pytest.raises(RunError, match=f"{name} .*, the network with None"):
        release.compare_answers(expected, fewer)


@pytest.fixture
def evaluation(tmp_path: Path) -> Path:
    path = tmp_path / "evaluation.json"
    path.write_text("{}")
    return path


def make_model(folder: Path, weights: str) -> Path:
    """A folder that looks like an exported model."""
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
    pushes = [release.push_model(model, out, evaluation, {}) for model in order]
    versions = [version for version, _ in pushes]
    assert versions == [out / number for number in "1123"]
    assert [is_new for _, is_new in pushes] == [True, False, True, True]
    assert list_versions(out) == [out / number for number in "123"]
    for version, model in zip(versions, order, strict=True):
        assert (version / "variables" / "data").read_text() == model.name
        assert (version / release.EVIDENCE).read_text() == "{}"
    lineages = [
        json.loads((v / LINEAGE).read_text()) for v in list_versions(out)
    ]
    first, second, third = (lineage["parents"] for lineage in lineages)
    assert first == []
    assert [p["version"] for p in (*second, *third)] == ["1", "2"]
    assert second[0]["sha256"] != third[0]["sha256"]


def test_damaged_version_is_no_copy(tmp_path: Path, evaluation: Path) -> None:
    model = make_model(tmp_path / "a", "a")
    for number in "123":
        version, is_new = release.push_model(
            model, tmp_path / "out", evaluation, {}
        )
        assert is_new and version.name == number
        if number == "1":
            (version / "variables" / "data").unlink()
        else:
            (version / "variables" / "data").write_text("b")
