"""Formats of `tfcomp export`, read by their own runtimes."""

import os
import re
import shutil
from importlib.util import find_spec
from pathlib import Path
from unittest.mock import Mock

import keras
import numpy as np
import pytest
import tensorflow as tf
from numpy.testing import assert_allclose

from tfcomp import export
from tfcomp.config.errors import ConfigError, RunError
from tfcomp.config.plugins import Registry
from tfcomp.models.loading import LoadedRun, load_run
from tfcomp.training import formats
from tfcomp.training.formats import FORMATS, write_format


@pytest.fixture(scope="module")
def run(smoke_run) -> LoadedRun:
    return load_run(smoke_run.run_dir)


def list_writable() -> list[str]:
    """The formats whose packages are installed."""
    names = []
    for name in FORMATS.names():
        packages = FORMATS.get(name).load().packages
        if all(map(find_spec, packages)):
            names.append(name)
    return names


@pytest.fixture(scope="module")
def exports(smoke_run, tmp_path_factory) -> Path:
    """The folder that the command writes, of all formats with packages."""
    folder = tmp_path_factory.mktemp("exports")
    names = ",".join(list_writable())
    flags = [f"--run={smoke_run.run_dir}", f"--output={folder}"]
    for spec in (names, "keras"):  # all are in the README
        assert export.main(["export", *flags, f"--format={spec}"]) == 0
    assert sorted(os.listdir(folder)) == [smoke_run.run_name]
    return folder / smoke_run.run_name


@pytest.mark.parametrize("name", FORMATS.names())
def test_runtimes_draw_as_the_network(run, exports, name, monkeypatch, rng):
    """By the code of the card, for batches of several sizes."""
    if name not in list_writable():
        pytest.skip(f"no packages for {name}")
    monkeypatch.chdir(exports)
    call = FORMATS.get(name).load().call
    for count in (1, 3, 100):
        factors = rng.uniform(0, 11, (count, 2)).astype(np.float32)
        names = {"factors": factors}
        exec(call, names)
        truth = run.model.predict(factors, verbose=0)
        assert_allclose(names["image"], truth, atol=1e-5)


def test_a_renamed_run_replaces_no_export_of_another(smoke_run, tmp_path):
    output = tmp_path / "out"
    for name in ("old", "new"):
        shutil.copytree(smoke_run.run_dir, tmp_path / name)
        flags = [f"--run={tmp_path / name}/.", f"--output={output}"]
        assert export.main(["export", *flags, "--format=keras"]) == 0
    assert sorted(os.listdir(output)) == ["new", "old"]


def test_the_card_calls_all_formats_in_the_folder(exports):
    card = (exports / "README.md").read_text()
    for name in list_writable():
        assert FORMATS.get(name).load().call in card


def test_a_format_without_its_package(monkeypatch):
    monkeypatch.setattr(formats, "find_spec", lambda name: None)
    with pytest.raises(ConfigError, match="pip install ai-edge-litert"):
        formats.check_formats(["keras", "litert"])


@pytest.mark.parametrize(
    "names",
    [
        ["onx"],
        [],
    ],
)
def test_unknown_formats(names):
    with pytest.raises(ConfigError, match="--format"):
        formats.check_formats(names)


def test_pytorch_differentiates_its_program(run, exports):
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
        expected = truth[stage].numpy()
        tolerance = 1e-4 * np.abs(expected).max()
        assert_allclose(metric.detach(), expected, atol=tolerance)


def test_an_error_of_a_converter_is_one_line(run, tmp_path, monkeypatch):
    fail = Mock(side_effect=NameError("two\nlines"))
    monkeypatch.setattr(keras.Model, "export", fail)
    with pytest.raises(RunError, match=r"onnx: Keras cannot .*\(two\)$"):
        write_format(run, "onnx", tmp_path)


def test_a_format_of_a_plugin(run, tmp_path, monkeypatch):
    registry = Registry("format")
    own = formats.Format(
        write=lambda run, path: path.write_text(run.config.run_name),
        call="image = ...",
        file="model.txt",
    )
    registry.register("text", own)
    monkeypatch.setattr(formats, "FORMATS", registry)

    formats.check_formats(["text"])
    path = write_format(run, "text", tmp_path)

    assert path == tmp_path / "text" / "model.txt"
    assert path.read_text() == run.config.run_name
