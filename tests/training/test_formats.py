"""Other formats: each by its own runtime, beside the network."""

import dataclasses
import importlib
import os
import re
import shutil
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
from tfcomp.training.format_export import (
    compare,
    export_format,
    split_grid,
    write_hub_card,
)
from tfcomp.training.formats import FORMATS, Format

NAMES = sorted(FORMATS)


@pytest.fixture(scope="module")
def run(smoke_run: RunConfig) -> LoadedRun:
    return load_run(smoke_run.run_dir)


@pytest.fixture(scope="module")
def exports(run: LoadedRun, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with every format whose packages are here."""
    folder = tmp_path_factory.mktemp("exports")
    for name in NAMES:
        if has_packages(name):
            export_format(run, name, folder)
    return folder


def has_packages(name: str) -> bool:
    try:
        formats.check_formats([name])
    except ConfigError:
        return False
    return True


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("count", [1, 3, 100])
def test_draws_what_the_network_draws(
    run: LoadedRun, exports: Path, name: str, count: int
) -> None:
    if not has_packages(name):
        pytest.skip(f"no packages for {name}")
    form = FORMATS[name]
    factors = np.random.default_rng(count).uniform(0, 11, (count, 2))
    factors = factors.astype(np.float32)  # between the points of the grid
    found = form.read(exports / name / form.file)(factors)
    truth = run.model.predict(factors, verbose=0)
    assert list(found) and found["image"].shape == truth.shape
    np.testing.assert_allclose(found["image"], truth, atol=1e-5)
    assert {"code", "stage_0", "stage_1"} < set(found)


def test_call_of_the_card_works(
    run: LoadedRun, exports: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(exports)
    factors = run.dataset.splits.grid[:2]
    truth = run.model.predict(factors, verbose=0)
    for name in filter(has_packages, NAMES):
        names = {"factors": factors}
        exec(FORMATS[name].call, names)
        np.testing.assert_allclose(names["image"], truth, atol=1e-5)


def test_readme_has_the_scores(run: LoadedRun, exports: Path) -> None:
    write_hub_card(run, ["keras"], exports)
    text = (exports / "README.md").read_text()
    _, header, card = text.split("---\n", 2)
    (model,) = yaml.safe_load(header)["model-index"]
    for result in model["results"]:
        known = run.metrics[result["dataset"]["split"]]
        for metric in result["metrics"]:
            assert metric["value"] == known[metric["type"]]
    assert {r["dataset"]["split"] for r in model["results"]} >= {"id", "ood"}
    assert FORMATS["keras"].call in card
    assert FORMATS["onnx"].call not in card


@pytest.mark.parametrize("factor", [1.001, np.nan])
def test_planted_difference_is_refused(
    run: LoadedRun,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    factor: float,
) -> None:
    def write(run: LoadedRun, path: Path) -> None:
        model = keras.models.clone_model(run.model)
        model.set_weights([w * factor for w in run.model.get_weights()])
        model.save(path)

    wrong = dataclasses.replace(FORMATS["keras"], write=write)
    monkeypatch.setitem(FORMATS, "keras", wrong)
    with pytest.raises(RunError, match="differs from the network's"):
        export_format(run, "keras", tmp_path)
    assert not os.listdir(tmp_path)


def test_missing_output_is_refused(run: LoadedRun) -> None:
    predict = formats.predict_keras(run.model)
    with pytest.raises(RunError, match="has outputs"):
        compare(lambda x: {"image": predict(x)["image"]}, run)


def test_every_point_is_compared_once() -> None:
    grid = np.arange(400.0).reshape(200, 2)
    parts = list(split_grid(grid))
    np.testing.assert_array_equal(np.concatenate(parts), grid)
    assert [len(part) for part in parts] == [1, 7, 64, 64, 64]


@pytest.mark.parametrize(
    ("name", "words"),
    [("onx", "must be among"), ("", "must name")],
)
def test_unknown_formats(
    smoke_run: RunConfig, tmp_path: Path, name: str, words: str
) -> None:
    flags = [f"--run={smoke_run.run_dir}", f"--format={name}"]
    with pytest.raises(ConfigError, match=words):
        export.main(["export", *flags, f"--output={tmp_path / 'new'}"])
    assert not (tmp_path / "new").exists()


def test_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    packages = {"no_such_module": "no-such-package"}
    form = Format(print, print, "f", "", packages)
    monkeypatch.setitem(FORMATS, "odd", form)
    with pytest.raises(ConfigError, match="pip install no-such-package"):
        formats.check_formats(["keras", "odd"])


@pytest.mark.filterwarnings("ignore:.*torch.jit.script:DeprecationWarning")
def test_pytorch_differentiates_its_program(
    run: LoadedRun, exports: Path
) -> None:
    """By the function of the page; the SavedModel has the same geometry."""
    torch = pytest.importorskip("torch")
    program = torch.export.load(exports / "torch" / "model.pt2").module()
    names = {"torch": torch, "draw": program}
    page = (Path(formats.__file__).parents[2] / "docs/formats.md").read_text()
    (block,) = re.findall(r"```python\n(def compute_metric.*?)```", page, re.S)
    exec(block, names)
    factors = run.dataset.splits.grid[40:44]
    saved = tf.saved_model.load(str(exports / "saved_model"))
    truth = saved.signatures["geometry"](factors=tf.constant(factors))
    for stage in ("code", "stage_1", "image"):
        found = names["compute_metric"](torch.from_numpy(factors), stage)
        scale = np.abs(truth[stage]).max()
        np.testing.assert_allclose(
            found.detach(), truth[stage], atol=1e-4 * scale
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
        export_format(other, "torch", tmp_path / "out")
    reason = str(error.value)
    assert "calling Twice.call()" in reason and "\n" not in reason
    assert not os.listdir(tmp_path / "out")


def test_damaged_weights_are_refused(
    smoke_run: RunConfig, tmp_path: Path
) -> None:
    folder = shutil.copytree(smoke_run.run_dir, tmp_path / "smoke")
    file = folder / "model.keras"
    file.write_bytes(file.read_bytes()[:-500])
    flags = [f"--run={folder}", f"--output={tmp_path / 'new'}"]
    with pytest.raises(RunError, match="model.keras is damaged.*repair it"):
        export.main(["export", *flags])
    assert not (tmp_path / "new").exists()


def test_hubs_read_the_card_and_refuse_a_damaged_one(
    run: LoadedRun, tmp_path: Path
) -> None:
    hub = pytest.importorskip("huggingface_hub")
    write_hub_card(run, ["keras"], tmp_path)
    path = tmp_path / "README.md"
    text = path.read_text()
    found = hub.ModelCard.load(path).data.eval_results
    scores = {(r.dataset_split, r.metric_type): r.metric_value for r in found}
    assert scores["ood", "mse"] == run.metrics["ood"]["mse"]
    for damage in ("---\ntags: [\n---\n", text.replace("tags:", "tags: ]", 1)):
        path.write_text(damage)
        with pytest.raises(yaml.YAMLError):
            hub.ModelCard.load(path)
    write_hub_card(run, ["keras"], tmp_path)
    assert path.read_text() == text


def test_command_writes_again(
    smoke_run: RunConfig, tmp_path: Path, capsys: pytest.CaptureFixture
) -> None:
    flags = [f"--run={smoke_run.run_dir}", f"--output={tmp_path}"]
    for asked in ("keras", "keras, saved_model"):
        assert export.main(["export", *flags, f"--format={asked}"]) == 0
        assert "model.keras" in capsys.readouterr().out
    folder = tmp_path / smoke_run.run_name
    names = sorted(os.listdir(folder))
    assert names == ["README.md", "keras", "saved_model"]
