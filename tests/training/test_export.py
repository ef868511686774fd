"""SavedModels that a run exports: signatures, card, versions."""

import re
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf

from tests.conftest import make_smoke_config
from tfcomp.datasets import make_dataset
from tfcomp.metrics.jacobians import compute_stage_jacobians
from tfcomp.models.loading import LoadedRun, load_run
from tfcomp.models.stages import make_model, make_stage_model
from tfcomp.storage.files import list_versions
from tfcomp.training.export import export_model


@pytest.fixture(scope="module")
def run(smoke_run) -> LoadedRun:
    return load_run(smoke_run.run_dir)


def test_the_card_of_a_saved_model_calls_its_signatures(
    smoke_run, monkeypatch
) -> None:
    version = list_versions(smoke_run.export_path)[-1]
    monkeypatch.chdir(version)
    names: dict[str, Any] = {}
    card = (version / "README.md").read_text()
    for block in re.findall(r"```python\n(.*?)```", card, re.DOTALL):
        exec(block, names)
    assert names["image"].shape == (1, 12, 12, 1)
    assert set(names["geometry"]) == set(names["stages"])


@pytest.fixture(scope="module")
def saved(smoke_run):
    return tf.saved_model.load(list_versions(smoke_run.export_path)[-1])


@pytest.mark.parametrize("name", ["serving_default", "activations", "geometry"])
def test_signatures_take_all_factors(saved, name) -> None:
    for width in (1, 3):
        with pytest.raises(tf.errors.InvalidArgumentError, match=r"\[n, 2\]"):
            saved.signatures[name](factors=tf.zeros((4, width)))


def test_geometry_is_semidefinite(smoke_run, saved, run) -> None:
    grid = make_dataset(smoke_run).splits.grid
    geometry = saved.signatures["geometry"](factors=grid)
    jacobians = compute_stage_jacobians(make_stage_model(run.model), grid)
    for stage, metric in geometry.items():
        values = np.linalg.eigvalsh(metric.numpy().astype(np.float64))
        assert values.min() >= -1e-6 * values.max()
        slow = np.einsum("bki,bkj->bij", jacobians[stage], jacobians[stage])
        np.testing.assert_allclose(metric, slow, rtol=1e-4, atol=1e-6)


def test_versions_are_numbered_and_not_repeated(tmp_path) -> None:
    config = make_smoke_config(tmp_path, "--model=mlp", "--depth=1")
    model = make_model(config, make_dataset(config), "float32")
    changed = keras.models.clone_model(model)
    versions = [
        export_model(exported, tmp_path, compute_stage_jacobians)
        for exported in (model, model, changed)
    ]
    assert [version.name for version in versions] == ["1", "1", "2"]
    assert list_versions(tmp_path) == versions[1:]
