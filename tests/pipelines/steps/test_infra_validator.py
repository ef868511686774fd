"""The infra validator: a model is asked where tfcomp does not exist."""

import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from pipelines.steps.canary import BLOCKED, SIGNATURES
from pipelines.steps.infra_validator import (
    CANARY,
    compare_answers,
    make_answers,
    make_requests,
    query_model,
)
from tfcomp.config.errors import RunError
from tfcomp.config.run_config import RunConfig
from tfcomp.datasets import make_dataset
from tfcomp.evaluation.loading import load_run

Arrays = dict[str, np.ndarray]


@pytest.fixture(scope="module")
def expected(smoke_run: RunConfig) -> Arrays:
    run = load_run(smoke_run.run_dir)
    return make_answers(run, make_requests(run.dataset))


@pytest.fixture
def model(smoke_run: RunConfig, tmp_path: Path) -> Path:
    """A copy of the exported model, to be damaged."""
    source = Path(smoke_run.export_path) / "1"
    return Path(shutil.copytree(source, tmp_path / "model"))


def test_all_signatures_are_asked(expected: Arrays) -> None:
    """The canary is, too: `test_components` compares its answers with these."""
    asked = {name.split("/")[0] for name in expected}
    assert asked == set(SIGNATURES)
    requests = {name.split("/")[1] for name in expected}
    assert requests == {"one", "id", "ood"}


def test_model_that_cannot_be_loaded(model: Path, smoke_run: RunConfig) -> None:
    data = next((model / "variables").glob("*.data*"))
    data.write_bytes(data.read_bytes()[:100])
    requests = make_requests(make_dataset(smoke_run))
    with pytest.raises(RunError, match="with TensorFlow alone") as caught:
        query_model(model, requests)
    assert "\n" not in str(caught.value)


def test_model_is_asked_where_there_is_no_keras() -> None:
    # What the canary does before it loads a model, then imports.
    script = (
        "import importlib, runpy, sys\n"
        f"canary = runpy.run_path({str(CANARY)!r})\n"
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


def test_signature_that_is_missing(tmp_path: Path) -> None:
    import tensorflow as tf

    module = tf.Module()
    signature = tf.TensorSpec((None, 2), name="factors")
    draw = tf.function(lambda factors: {"image": factors}, [signature])
    tf.saved_model.save(module, tmp_path / "m", {"serving_default": draw})
    with pytest.raises(RunError, match="no signature activations, geometry"):
        query_model(tmp_path / "m", {"one": np.zeros((1, 2), np.float32)})


# Wrong answers


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
            compare_answers(wrong, expected)


def test_missing_and_surplus_answers(expected: Arrays) -> None:
    name = "activations/one/image"
    fewer = {k: v for k, v in expected.items() if k != name}
    with pytest.raises(RunError, match=f"{name} with shape None, the network"):
        compare_answers(fewer, expected)
    with pytest.raises(RunError, match=f"{name} .*, the network with None"):
        compare_answers(expected, fewer)
