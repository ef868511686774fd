"""The names of `import tfcomp`: commands as functions, models from anywhere."""

import ast
import dataclasses
import importlib
import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose

import tfcomp
from tfcomp.config.errors import ConfigError, RunError
from tfcomp.config.run_config import RunConfig
from tfcomp.config.run_flags import parse_config
from tfcomp.datasets import make_dataset
from tfcomp.metrics.run_analysis import RunAnalysis
from tfcomp.models.loading import load_run

pytestmark = pytest.mark.usefixtures("untraced")

CLASSES = np.array(list(np.ndindex(3, 4, 4)))
NAMES = ["length", "x", "y"]
PAGE = Path(__file__).parents[1] / "docs" / "models.md"
QUICK = {
    "grid_size": 8,
    "region": "square:3-4",
    "model": "mlp",
    "depth": 1,
    "width": 4,
    "epochs": 1,
    "steps_per_epoch": 1,
    "pictures": False,
    "export": False,
}


def draw(classes: np.ndarray) -> np.ndarray:
    """A bar of 1 to 3 pixels in one of 16 places."""
    images = np.zeros((len(classes), 8, 12), np.float32)
    for image, (length, x, y) in zip(images, classes.astype(int), strict=True):
        image[2 * y, 3 * x : 3 * x + 1 + length] = 1
    return images


PIXELS = (255 * draw(CLASSES)).astype(np.uint8)


@pytest.fixture(scope="module")
def table() -> tfcomp.FactorTable:
    return tfcomp.FactorTable(PIXELS, CLASSES, names=NAMES)


@pytest.mark.parametrize(
    "shape",
    [(-1, 8, 12), (-1, 1, 8, 12), (-1, 96)],
    ids=["rows and columns", "channels first", "flat"],
)
def test_a_function_of_arrays(
    table: tfcomp.FactorTable,
    shape: tuple[int, ...],
):
    truth = draw(CLASSES)
    length, x, _ = CLASSES.T
    is_ood = (length == 2) & (x >= 2)
    errors = np.square(0.1 * truth)
    blanks = np.square(truth - truth[~is_ood].mean(axis=0))

    result = tfcomp.evaluate(
        lambda classes: 0.9 * draw(classes).reshape(shape),
        table,
        "length:2,x:2-3",
        inputs="classes",
    )

    for subset, rows in (("id", ~is_ood), ("ood", is_ood)):
        scores = result.scores[subset]
        expected = errors[rows].mean() / blanks[rows].mean()
        assert scores["relative_mse"] == pytest.approx(expected, rel=1e-4)
        assert "position_accuracy" not in scores
    assert result.coverage["combinations"] == pytest.approx(40 / 48)


def test_keras_model_and_saved_model_give_our_own_numbers(
    smoke_run: RunConfig,
):
    run = load_run(smoke_run.run_dir)
    few = dataclasses.replace(smoke_run, eval_points=16)
    dataset = make_dataset(few)
    own = RunAnalysis(run.model, dataset)

    saved_model = Path(smoke_run.export_path, "1")
    for source in (run.path / "model.keras", saved_model):
        result = tfcomp.evaluate(source, dataset)

        assert result.stages == own.stages
        assert not result.analysis.nondifferentiable
        for subset, scores in own.evaluation.scores.items():
            assert result.scores[subset] == pytest.approx(scores, rel=1e-5)
        for stage, expected in own.metrics.items():
            metrics = result.analysis.metrics[stage]
            assert_allclose(metrics, expected, rtol=1e-3, atol=1e-6)


IMPORT = """
import sys
before = set(sys.modules)
import tfcomp
names = {name.split(".")[0] for name in set(sys.modules) - before}
assert names - sys.stdlib_module_names == {"tfcomp"}, names
ours = [name for name in sys.modules if name.startswith("tfcomp")]
assert ours == ["tfcomp"], ours
tfcomp.FactorTable, tfcomp.train_run, tfcomp.RunError
tfcomp.describe_run("smoke")
assert not {"tensorflow", "keras", "pandas"} & set(sys.modules)
"""


def test_import_is_light():
    """Counted in modules, since seconds depend on the machine."""
    subprocess.run([sys.executable, "-c", IMPORT], check=True)


def test_public_names():
    """The names that are offered, listed and typed are the same."""
    stub = Path(tfcomp.__file__).with_suffix(".pyi")
    typed = {}
    for statement in ast.parse(stub.read_text()).body:
        if isinstance(statement, ast.ImportFrom):
            module = importlib.import_module(statement.module)
            for alias in statement.names:
                typed[alias.name] = getattr(module, alias.name)

    assert typed.keys() == set(tfcomp.__all__)
    assert {*typed, "__version__"} == set(dir(tfcomp))
    for name, value in typed.items():
        assert getattr(tfcomp, name).__name__ == value.__name__
        assert value.__doc__
    with pytest.raises(AttributeError, match="nothing"):
        _ = tfcomp.nothing


def test_a_run_from_its_description_to_its_scores(working_folder: Path):
    flags = (
        "--flagfile=smoke --grid_size=8 --region=square:3-4 --model=mlp "
        "--depth=1 --width=4 --epochs=1 --steps_per_epoch=1 --nopictures "
        "--noexport"
    )
    config = tfcomp.describe_run("smoke", **QUICK)
    assert config == parse_config(flags.split())

    scores = tfcomp.train_run(config).scores

    metrics = json.loads(Path(config.run_dir, "metrics.json").read_text())
    assert scores["ood"] == pytest.approx(metrics["ood"])
    with pytest.raises(RunError, match=r"--seed=0 \(not 1\)"):
        tfcomp.train_run(tfcomp.describe_run("smoke", seed=1, **QUICK))


@pytest.mark.parametrize("values", [2, "23"])
def test_a_grid_has_lists_of_values(
    values: object,
    working_folder: Path,
):
    with pytest.raises(ConfigError, match="list of values for depth") as error:
        tfcomp.run_sweep("smoke", grid={"depth": values})

    assert "\n" not in str(error.value)
    assert list(working_folder.iterdir()) == []


def test_settings_of_a_description_are_checked():
    with pytest.raises(ConfigError, match="at least"):
        tfcomp.describe_run("smoke", width=0)
    for flag in ("dataset", "model", "encoding"):
        with pytest.raises(ConfigError, match=f"{flag} must be one of"):
            tfcomp.describe_run("smoke", **{flag: "cnnn"})


def test_documented_pytorch_decoder(working_folder: Path):
    pytest.importorskip("torch")
    block = r"<!-- pytorch -->\n```python\n(.*?)```"
    code = re.search(block, PAGE.read_text(), re.DOTALL)[1]
    np.savez("shapes.npz", images=PIXELS, classes=CLASSES)
    names: dict = {}

    exec(code, names)

    assert names["result"].scores["ood"]["relative_mse"] > 0
    assert Path("report/report.html").exists()
