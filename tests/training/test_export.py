"""The SavedModel: signatures and versions.

That it loads without tfcomp is tested with the pipeline's `infra_validator`.
"""

from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf

from tfcomp.analysis.jacobians import compute_stage_jacobians
from tfcomp.config.run_config import RunConfig
from tfcomp.datasets import make_dataset
from tfcomp.models.stages import make_stage_model
from tfcomp.storage.output_folders import list_versions
from tfcomp.storage.run_folder import read_metrics
from tfcomp.training.export import export_model, format_card


@pytest.fixture(scope="module")
def saved(smoke_run: RunConfig):
    return tf.saved_model.load(list_versions(smoke_run.export_path)[-1])


@pytest.fixture(scope="module")
def model(smoke_run: RunConfig) -> keras.Model:
    return keras.models.load_model(Path(smoke_run.run_dir) / "model.keras")


@pytest.mark.parametrize("count", [1, 5, 144])
def test_image_signature(smoke_run, saved, model, count: int) -> None:
    factors = make_dataset(smoke_run).splits.grid[:count]
    image = saved.signatures["serving_default"](factors=factors)["image"]
    assert image.shape == (count, 12, 12, 1)
    expected = model.predict(factors, verbose=0)
    np.testing.assert_allclose(image, expected, atol=1e-6)


def test_activations_signature(saved, model) -> None:
    factors = np.array([[2.0, 3.0], [4.5, 6.25]], np.float32)
    found = saved.signatures["activations"](factors=factors)
    expected = make_stage_model(model)(factors)
    assert set(found) == set(expected)
    for stage, activation in expected.items():
        np.testing.assert_allclose(found[stage], activation, atol=1e-6)


@pytest.mark.parametrize("name", ["serving_default", "activations", "geometry"])
def test_signatures_take_their_columns_and_empty_batches(
    saved: Any, name: str
) -> None:
    found = saved.signatures[name](factors=tf.zeros((0, 2)))
    assert {len(value) for value in found.values()} == {0}
    for width in (1, 3):
        with pytest.raises(tf.errors.InvalidArgumentError, match=r"\[n, 2\]"):
            saved.signatures[name](factors=tf.zeros((4, width)))


def test_geometry_is_semidefinite(smoke_run, saved, model) -> None:
    grid = make_dataset(smoke_run).splits.grid
    geometry = saved.signatures["geometry"](factors=grid)
    jacobians = compute_stage_jacobians(make_stage_model(model), grid)
    for stage, metric in geometry.items():
        values = np.linalg.eigvalsh(metric.numpy().astype(np.float64))
        assert values.min() >= -1e-6 * values.max()
        slow = np.einsum("bki,bkj->bij", jacobians[stage], jacobians[stage])
        np.testing.assert_allclose(metric, slow, rtol=1e-4, atol=1e-6)


def test_nulls_in_metrics_are_no_traceback(smoke_run) -> None:
    metrics = read_metrics(Path(smoke_run.run_dir))
    empty = keras.tree.map_structure(lambda _: None, metrics)
    assert "# smoke" in format_card(smoke_run, make_dataset(smoke_run), empty)


def test_versions_are_numbered_and_not_repeated(model, tmp_path) -> None:
    changed = keras.models.clone_model(model)
    versions = [
        export_model(exported, tmp_path, compute_stage_jacobians)
        for exported in (model, model, changed)
    ]
    assert [version.name for version in versions] == ["1", "1", "2"]
    assert list_versions(tmp_path) == versions[1:]
