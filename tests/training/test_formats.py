"""Other formats: each by its own runtime, beside the network."""

import dataclasses
import os
from pathlib import Path

import keras
import numpy as np
import pytest
import yaml

from tfcomp import export
from tfcomp.config.errors import ConfigError, RunError
from tfcomp.config.run_config import RunConfig
from tfcomp.evaluation.loading import LoadedRun, load_run
from tfcomp.training import formats
from tfcomp.training.format_export import compare, export_format, split_grid
from tfcomp.training.formats import FORMATS, Format
from tfcomp.training.hub_card import write_hub_card

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
    ask = formats.ask_network(run.model)
    with pytest.raises(RunError, match="has outputs"):
        compare(lambda x: {"image": ask(x)["image"]}, run)


def test_every_point_is_compared_once() -> None:
    grid = np.arange(400.0).reshape(200, 2)
    parts = list(split_grid(grid))
    np.testing.assert_array_equal(np.concatenate(parts), grid)
    assert [len(part) for part in parts] == [1, 7, 64, 64, 64]


@pytest.mark.parametrize(
    ("name", "words"),
    [("onx", "must be among"), ("torch", "onnx2torch"), ("", "must name")],
)
def test_unknown_formats(
    smoke_run: RunConfig, tmp_path: Path, name: str, words: str
) -> None:
    flags = [f"--run={smoke_run.run_dir}", f"--format={name}"]
    with pytest.raises(ConfigError, match=words):
        export.main(["export", *flags, f"--output={tmp_path / 'new'}"])
    assert not (tmp_path / "new").exists()


def test_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    form = Format("f", print, print, "", {"no_such_module": "no-such-package"})
    monkeypatch.setitem(FORMATS, "odd", form)
    with pytest.raises(ConfigError, match="pip install no-such-package"):
        formats.check_formats(["keras", "odd"])


def test_command_writes_again(
    smoke_run: RunConfig, tmp_path: Path, capsys: pytest.CaptureFixture
) -> None:
    flags = [f"--run={smoke_run.run_dir}", f"--output={tmp_path}"]
    for _ in range(2):
        assert export.main(["export", *flags, "--format=keras"]) == 0
        assert "model.keras" in capsys.readouterr().out
    folder = tmp_path / smoke_run.run_name
    assert sorted(os.listdir(folder)) == ["README.md", "keras"]
