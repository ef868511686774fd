"""SavedModels that a run exports: signatures, card, versions."""

import re
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from numpy.testing import assert_allclose

from tfcomp.config.run_flags import parse_config
from tfcomp.datasets import make_dataset
from tfcomp.metrics.jacobians import choose_jacobian, compute_stage_jacobians
from tfcomp.models.loading import load_run
from tfcomp.models.registry import make_model, make_stage_model
from tfcomp.storage.files import list_versions
from tfcomp.training.export import export_model


@pytest.fixture(scope="module")
def version(smoke_run) -> Path:
    return list_versions(smoke_run.export_path)[-1]


@pytest.fixture(scope="module")
def saved(version) -> Any:
    return tf.saved_model.load(version)


def test_the_card_of_a_saved_model_calls_its_signatures(version, monkeypatch):
    monkeypatch.chdir(version)
    card = (version / "README.md").read_text()

    names: dict[str, Any] = {}
    blocks = re.findall(r"```python\n(.*?)```", card, re.DOTALL)
    for block in blocks:
        exec(block, names)

    assert names["image"].shape == (1, 12, 12, 1)
    assert set(names["geometry"]) == set(names["stages"])


@pytest.mark.parametrize("name", ["serving_default", "activations", "geometry"])
@pytest.mark.parametrize("width", [1, 3])
def test_signatures_take_all_factors(name, width, saved):
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"\[n, 2\]"):
        saved.signatures[name](factors=tf.zeros((4, width)))


def test_geometry_is_that_of_the_jacobians(smoke_run, saved):
    run = load_run(smoke_run.run_dir)
    grid = run.dataset.splits.grid

    geometry = saved.signatures["geometry"](factors=grid)

    stage_model = make_stage_model(run.model)
    jacobians = compute_stage_jacobians(stage_model, grid)
    for stage, metric in geometry.items():
        jacobian = jacobians[stage]
        expected = np.einsum("bki,bkj->bij", jacobian, jacobian)
        assert_allclose(metric, expected, rtol=1e-4, atol=1e-6)


ROTATED = (
    "rotated_mnist --digit_source=stand_in --num_angles=37 "
    "--digit_classes=4,1 --region=none --model=hard_rendering "
    "--axes=angle:find --encoding=bump --rank=2 --width=3 --depth=1"
)


def test_versions_are_numbered_and_not_repeated(smoke_run, version, tmp_path):
    """The second one is of images with classes, of which no one is near."""
    shutil.copytree(version, tmp_path / "1")
    config = parse_config(ROTATED.split())
    dataset = make_dataset(config)
    rotated = make_model(config, dataset, "float32")
    jacobian_fn = choose_jacobian(rotated, dataset, steps=[])

    for model in (load_run(smoke_run.run_dir).model, rotated, rotated):
        last = export_model(model, tmp_path, lambda: jacobian_fn)

    assert [path.name for path in list_versions(tmp_path)] == ["1", "2"]
    saved = tf.saved_model.load(last)
    points = tf.constant(
        [
            [4.0, 30.0],
            [1.0, 90.0],
        ]
    )
    outputs = saved.signatures["serving_default"](factors=points)
    metric = saved.signatures["geometry"](factors=points)
    assert outputs["image"].shape == (2, 28, 28, 1)
    assert metric["stage_0"].shape == (2, 1, 1)
