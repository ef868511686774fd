"""Exports: SavedModels, and other formats by their own runtimes."""

import dataclasses
import importlib
import os
import re
import shutil
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import keras
import numpy as np
import pytest
import tensorflow as tf
import yaml

import tfcomp
from tests.conftest import make_smoke_config
from tfcomp import export
from tfcomp.config.errors import ConfigError, RunError
from tfcomp.config.run_config import RunConfig
from tfcomp.datasets import Factor, FactorSpace, make_dataset
from tfcomp.metrics.jacobians import compute_stage_jacobians
from tfcomp.models.loading import LoadedRun, load_run
from tfcomp.models.stages import make_model, make_stage_model
from tfcomp.storage.output_folders import list_versions
from tfcomp.storage.run_folder import read_metrics
from tfcomp.training import formats
from tfcomp.training.export import export_model, format_card, format_hub_card
from tfcomp.training.formats import FORMATS, write_format


@pytest.fixture(scope="module")
def run(smoke_run: RunConfig) -> LoadedRun:
    return load_run(smoke_run.run_dir)


def list_writable() -> list[str]:
    """The formats whose packages are installed."""
    modules = {n: row.get("packages", {}) for n, row in FORMATS.items()}
    if sys.version_info >= (3, 13):  # OpenVINO 2026.4 converts on 3.12
        del modules["openvino"]
    return [n for n in modules if all(map(find_spec, modules[n]))]


@pytest.fixture(scope="module")
def exports(smoke_run: RunConfig, tmp_path_factory) -> Path:
    """The folder that the command writes, of all formats with packages."""
    folder = tmp_path_factory.mktemp("exports")
    names = ",".join(list_writable())
    flags = [f"--run={smoke_run.run_dir}", f"--output={folder}"]
    with pytest.MonkeyPatch.context() as patch:
        # OpenVINO starts processes that send statistics.
        patch.setitem(sys.modules, "openvino_telemetry", None)
        for asked in ("keras", names, "keras"):  # all are in the README
            assert export.main(["export", *flags, f"--format={asked}"]) == 0
    assert sorted(os.listdir(folder)) == [smoke_run.run_name]
    return folder / smoke_run.run_name


@pytest.mark.parametrize("name", FORMATS)
def test_runtimes_draw_as_the_network(
    run: LoadedRun, exports: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the code of the card, for batches of several sizes."""
    if name not in list_writable():
        pytest.skip(f"no packages for {name}")
    monkeypatch.chdir(exports)
    for count in (1, 3, 100):
        factors = np.random.default_rng(count).uniform(0, 11, (count, 2))
        factors = factors.astype(np.float32)  # between the grid points
        names = {"factors": factors}
        exec(FORMATS[name]["call"], names)
        truth = run.model.predict(factors, verbose=0)
        np.testing.assert_allclose(names["image"], truth, atol=1e-5)


def test_a_renamed_run_replaces_no_export_of_another(
    smoke_run: RunConfig, tmp_path: Path
) -> None:
    for name in ("old", "new"):
        shutil.copytree(smoke_run.run_dir, tmp_path / name)
        flags = [f"--run={tmp_path / name}/.", f"--output={tmp_path / 'out'}"]
        assert export.main(["export", *flags, "--format=keras"]) == 0
    assert sorted(os.listdir(tmp_path / "out")) == ["new", "old"]
    readme = tmp_path / "out/new/README.md"  # of a run with another seed
    readme.write_text(readme.read_text().replace("--seed=", "--seed=9"))
    with pytest.raises(ConfigError, match="another run's models"):
        export.main(["export", *flags, "--format=keras"])


def test_readme_has_the_scores(run: LoadedRun, exports: Path) -> None:
    _, header, card = (exports / "README.md").read_text().split("---\n", 2)
    (model,) = yaml.safe_load(header)["model-index"]
    for result in model["results"]:
        scores = run.metrics[result["dataset"]["split"]]
        for metric in result["metrics"]:
            assert metric["value"] == scores[metric["type"]]
    assert {r["dataset"]["split"] for r in model["results"]} >= {"id", "ood"}
    assert all(FORMATS[name]["call"] in card for name in list_writable())


def test_unknown_formats_and_packages(monkeypatch: pytest.MonkeyPatch) -> None:
    form = {"packages": {"no_such_module": "no-such-package"}}
    monkeypatch.setitem(FORMATS, "odd", form)
    with pytest.raises(ConfigError, match="pip install no-such-package"):
        formats.check_formats(["keras", "odd"])
    for names in (["onx"], []):
        with pytest.raises(ConfigError, match="--format must"):
            formats.check_formats(names)


def test_pytorch_differentiates_its_program(
    run: LoadedRun, exports: Path
) -> None:
    """By the function of the page; the SavedModel has the same geometry."""
    torch = pytest.importorskip("torch")
    program = torch.export.load(exports / "torch" / "model.pt2").module()
    names = {"torch": torch, "draw": program}
    page = (Path(formats.__file__).parents[2] / "docs/models.md").read_text()
    (block,) = re.findall(r"```python\n(def compute_metric.*?)```", page, re.S)
    exec(block, names)
    factors = run.dataset.splits.grid[40:44]
    saved = tf.saved_model.load(str(exports / "saved_model"))
    truth = saved.signatures["geometry"](factors=tf.constant(factors))
    for stage in ("code", "stage_1", "image"):
        metric = names["compute_metric"](torch.from_numpy(factors), stage)
        scale = np.abs(truth[stage]).max()
        np.testing.assert_allclose(
            metric.detach(), truth[stage], atol=1e-4 * scale
        )


def test_what_pytorch_cannot_compute_is_one_line(
    run: LoadedRun, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("torch")
    plugin = tmp_path / "tf_layer.py"
    plugin.write_text(
        "import keras\nimport tensorflow as tf\n\n"
        '@keras.saving.register_keras_serializable(package="mine")\n'
        "class Twice(keras.layers.Layer):\n"
        "    def call(self, inputs):\n        return tf.add(inputs, inputs)\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    twice = importlib.import_module("tf_layer").Twice(name="image")
    factors = keras.Input((2,), name="factors")
    config = dataclasses.replace(run.config, plugins="tf_layer")
    model = keras.Model(factors, twice(factors))
    other = dataclasses.replace(run, config=config, model=model)
    with pytest.raises(RunError, match="format=torch: Keras cannot") as error:
        write_format(other, "torch", tmp_path / "out")
    assert "\n" not in str(error.value)
    assert not (tmp_path / "out").exists()


def test_an_error_of_a_converter_is_one_line(
    run: LoadedRun, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fail = Mock(side_effect=NameError("two\nlines"))
    monkeypatch.setattr(keras.Model, "export", fail)
    with pytest.raises(RunError, match=r"onnx: Keras cannot .*\(two\)$"):
        write_format(run, "onnx", tmp_path)


@pytest.fixture(scope="module")
def saved(smoke_run: RunConfig):
    return tf.saved_model.load(list_versions(smoke_run.export_path)[-1])


@pytest.mark.parametrize("name", ["serving_default", "activations", "geometry"])
def test_signatures_take_their_columns_and_empty_batches(
    saved: Any, name: str
) -> None:
    found = saved.signatures[name](factors=tf.zeros((0, 2)))
    assert {len(value) for value in found.values()} == {0}
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


def test_nulls_in_metrics_are_no_traceback(smoke_run) -> None:
    metrics = read_metrics(Path(smoke_run.run_dir))
    empty = keras.tree.map_structure(lambda _: None, metrics)
    assert "# smoke" in format_card(smoke_run, make_dataset(smoke_run), empty)


def test_card_of_a_control_holds_nothing_out(smoke_run: RunConfig) -> None:
    data = dataclasses.replace(smoke_run.data, train_all=True)
    scores = read_metrics(Path(smoke_run.run_dir))
    for config in (smoke_run, dataclasses.replace(smoke_run, data=data)):
        card = " ".join(format_card(config, make_dataset(config), {}).split())
        is_control = config.data.train_all
        assert ("was held out from training" in card) != is_control
        assert ("that it never saw" in card) != is_control
        assert ("training included the region" in card) == is_control
        run = LoadedRun(None, config, make_dataset(config), None, scores, "")
        hub = format_hub_card(run, []).split("\n---\n")[0]
        assert ("held out" in hub) != is_control
    part = dataclasses.replace(data, num_train=5)
    config = dataclasses.replace(smoke_run, data=part, eval_points=50)
    card = format_card(config, make_dataset(config), {})
    assert "which it may have seen a part" in card and "sample of 50" in card
    data = dataclasses.replace(smoke_run.data, region="none")
    config = dataclasses.replace(smoke_run, data=data)
    card = format_card(config, make_dataset(config), {})
    assert "Nothing was held out" in card and "The OOD scores" not in card


def test_factors_of_a_card_are_the_ones_of_the_data(smoke_run) -> None:
    images = np.eye(4, dtype=np.float32).reshape(4, 2, 2)
    options = {"levels": [None, ["a|b", "c"]], "kinds": ["periodic:4", None]}
    table = tfcomp.FactorTable(images, [*np.ndindex(2, 2)], **options)
    data = tfcomp.evaluate(table.draw, table, "none").dataset
    parts = r"| a\|b, c |", "| 2 | 0 | 2 |", "[n, 1, 1]: ordered factors"
    assert all(part in format_card(smoke_run, data, {}) for part in parts)
    small = FactorSpace((Factor("x", 3, 0.02, 0.04),))
    data = dataclasses.replace(data, space=small)
    shares, copies = {"values": 0.9997}, {"num_held_out": 4, "num_copies": 3}
    card = format_card(smoke_run, data, {"coverage": shares, "copies": copies})
    assert "[[0.02]]" in card and "covered over 99.9 % of values" in card
    assert "Copies: 3 of 4 held-out images" in card


def test_versions_are_numbered_and_not_repeated(tmp_path: Path) -> None:
    config = make_smoke_config(tmp_path, "--model=mlp", "--depth=1")
    model = make_model(config, make_dataset(config), "float32")
    changed = keras.models.clone_model(model)
    versions = [
        export_model(exported, tmp_path, compute_stage_jacobians)
        for exported in (model, model, changed)
    ]
    assert [version.name for version in versions] == ["1", "1", "2"]
    assert list_versions(tmp_path) == versions[1:]
