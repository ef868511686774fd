"""Other formats: each by its own runtime, beside the network."""

import dataclasses
import importlib
import os
import re
from pathlib import Path

import keras
import numpy as np
import pytest
import tensorflow as tf
import yaml

from tfcomp import export
from tfcomp.config.errors import ConfigError, RunError
from tfcomp.config.run_config import RunConfig
from tfcomp.evaluation.loading import LoadedRun, load_run
from tfcomp.training import formats
from tfcomp.training.formats import FORMATS, Format, write_format


@pytest.fixture(scope="module")
def run(smoke_run: RunConfig) -> LoadedRun:
    return load_run(smoke_run.run_dir)


def has_packages(name: str) -> bool:
    try:
        formats.check_formats([name])
    except ConfigError:
        return False
    return True


@pytest.fixture(scope="module")
def exports(smoke_run: RunConfig, tmp_path_factory) -> Path:
    """The folder that the command writes, of all formats with packages."""
    folder = tmp_path_factory.mktemp("exports")
    names = ",".join(filter(has_packages, FORMATS))
    flags = [f"--run={smoke_run.run_dir}", f"--output={folder}"]
    for asked in ("keras", names):  # the second time replaces the first
        assert export.main(["export", *flags, f"--format={asked}"]) == 0
    assert sorted(os.listdir(folder)) == [smoke_run.run_name]
    return folder / smoke_run.run_name


@pytest.mark.parametrize("name", FORMATS)
def test_runtimes_draw_as_the_network(
    run: LoadedRun, exports: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the code of the card, for batches of several sizes."""
    if not has_packages(name):
        pytest.skip(f"no packages for {name}")
    monkeypatch.chdir(exports)
    for count in (1, 3, 100):
        factors = np.random.default_rng(count).uniform(0, 11, (count, 2))
        factors = factors.astype(np.float32)  # between the grid points
        names = {"factors": factors}
        exec(FORMATS[name].call, names)
        truth = run.model.predict(factors, verbose=0)
        np.testing.assert_allclose(names["image"], truth, atol=1e-5)


def test_stages_are_outputs(exports: Path) -> None:
    runtime = pytest.importorskip("onnxruntime")
    session = runtime.InferenceSession(exports / "onnx" / "model.onnx")
    names = {output.name for output in session.get_outputs()}
    assert names == {"code", "stage_0", "stage_1", "stage_2", "image"}


def test_readme_has_the_scores(run: LoadedRun, exports: Path) -> None:
    _, header, card = (exports / "README.md").read_text().split("---\n", 2)
    (model,) = yaml.safe_load(header)["model-index"]
    for result in model["results"]:
        scores = run.metrics[result["dataset"]["split"]]
        for metric in result["metrics"]:
            assert metric["value"] == scores[metric["type"]]
    assert {r["dataset"]["split"] for r in model["results"]} >= {"id", "ood"}
    assert FORMATS["keras"].call in card


@pytest.mark.parametrize("name", ["onx", ""])
def test_unknown_formats(
    smoke_run: RunConfig, tmp_path: Path, name: str
) -> None:
    flags = [f"--run={smoke_run.run_dir}", f"--format={name}"]
    with pytest.raises(ConfigError, match="--format must"):
        export.main(["export", *flags, f"--output={tmp_path / 'new'}"])
    assert not (tmp_path / "new").exists()


def test_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    form = Format("f", "", {"no_such_module": "no-such-package"})
    monkeypatch.setitem(FORMATS, "odd", form)
    with pytest.raises(ConfigError, match="pip install no-such-package"):
        formats.check_formats(["keras", "odd"])


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
    assert not os.listdir(tmp_path / "out")
