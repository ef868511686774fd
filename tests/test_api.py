"""The names of `import tfcomp`: commands as functions, models from anywhere."""

import ast
import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

import tfcomp
from tfcomp.config.errors import ConfigError, RunError
from tfcomp.config.run_flags import parse_config
from tfcomp.datasets import make_dataset
from tfcomp.metrics.geometry import compute_factorization
from tfcomp.metrics.jacobians import choose_jacobian
from tfcomp.metrics.run_analysis import RunAnalysis
from tfcomp.models.stages import make_model
from tfcomp.training.export import export_model

SMALL = ("--width=4", "--grid_size=8", "--region=square:3-4")
SMOKE = parse_config(["--flagfile=smoke.flags", *SMALL])
CLASSES = np.stack(
    np.meshgrid(range(3), range(4), range(4), indexing="ij"), -1
).reshape(-1, 3)
PAGES = Path(__file__).parents[1] / "docs" / "extending.md"


def draw(classes: np.ndarray) -> np.ndarray:
    """A bar of 1 to 3 pixels in one of 16 places."""
    images = np.zeros((len(classes), 8, 12), np.float32)
    for image, (length, x, y) in zip(images, classes.astype(int), strict=True):
        image[2 * y, 3 * x : 3 * x + 1 + length] = 1
    return images


@pytest.fixture(scope="module")
def table() -> tfcomp.FactorTable:
    pixels = (255 * draw(CLASSES)).astype(np.uint8)
    return tfcomp.FactorTable(pixels, CLASSES, names=["length", "x", "y"])


@pytest.mark.parametrize(
    "shape",
    [(-1, 8, 12), (-1, 1, 8, 12), (-1, 96)],
    ids=["rows and columns", "channels first", "flat"],
)
def test_a_function_of_arrays(
    table: tfcomp.FactorTable, shape: tuple[int, ...]
) -> None:
    result = tfcomp.evaluate(
        lambda classes: 0.9 * draw(classes).reshape(shape),
        table,
        "length:2,x:2-3",
        inputs="classes",
    )
    is_ood = (CLASSES[:, 0] == 2) & (CLASSES[:, 1] >= 2)
    mean = draw(CLASSES[~is_ood]).mean(axis=0)
    for subset, rows in (("id", ~is_ood), ("ood", is_ood)):
        scores, truth = result.scores[subset], draw(CLASSES[rows])
        expected = (
            np.square(0.1 * truth).mean() / np.square(truth - mean).mean()
        )
        assert scores["relative_mse"] == pytest.approx(expected, rel=1e-4)
        assert "position_accuracy" not in scores
    assert result.run.dataset.splits.is_ood.sum() == 8
    assert result.coverage["combinations"] == pytest.approx(40 / 48)


def test_lost_derivatives_are_differences(table: tfcomp.FactorTable) -> None:
    """A function that is linear in the factors has exact differences."""
    slopes = np.random.default_rng(0).normal(size=(3, 96)).astype(np.float32)

    def evaluate(values: np.ndarray) -> dict[str, np.ndarray]:
        return {"image": values @ slopes, "half": values @ slopes[:, :7]}

    result = tfcomp.evaluate(evaluate, table, "x:3", stages=["half"])
    study = result.analysis
    assert study.stages == ["half", "image"]
    expected = slopes[:, :7] @ slopes[:, :7].T
    np.testing.assert_allclose(study.metrics["half"][5], expected, rtol=1e-4)
    assert set(study.nondifferentiable) == {"half", "image"}
    factorization = compute_factorization(expected[None])[0]
    found = result.measures["factorization"][0]
    assert found == pytest.approx(factorization, rel=1e-4)


def test_keras_model_and_saved_model_give_our_own_numbers(
    tmp_path: Path,
) -> None:
    dataset = make_dataset(SMOKE)
    model = make_model(SMOKE, dataset, "float32")
    own = RunAnalysis(model, dataset)
    scores = own.evaluation.scores
    metrics = own.metrics
    jacobian_fn = choose_jacobian(model, dataset)
    version = export_model(model, tmp_path / "exported", jacobian_fn)
    model.save(tmp_path / "model.keras")
    for source in (tmp_path / "model.keras", str(version)):
        result = tfcomp.evaluate(source, dataset)
        assert result.analysis.stages == list(metrics)
        assert not result.analysis.nondifferentiable
        for subset, expected in scores.items():
            assert result.scores[subset] == pytest.approx(expected, rel=1e-5)
        for stage, g in metrics.items():
            np.testing.assert_allclose(
                result.analysis.metrics[stage], g, rtol=1e-3, atol=1e-6
            )


def test_image_of_another_saved_model_is_the_one_it_serves(
    table: tfcomp.FactorTable, tmp_path: Path
) -> None:
    """Although a layer of it has that name as well."""
    spec = [tf.TensorSpec((None, 3), name="factors")]
    kinds = {"serving_default": 0.25, "activations": 0.75}
    signatures = {
        name: tf.function(
            lambda factors, grey=grey: {
                "image": tf.fill((tf.shape(factors)[0], 96), grey),
                "hidden": factors,
            },
            spec,
        )
        for name, grey in kinds.items()
    }
    tf.saved_model.save(tf.Module(), tmp_path / "other", signatures)
    result = tfcomp.evaluate(tmp_path / "other", table, "x:3")
    np.testing.assert_allclose(result.draw(), 0.25)


@pytest.mark.parametrize(
    ("model", "arguments", "problem"),
    [
        (draw, {"inputs": "pixels"}, "inputs must be one of"),
        (draw, {"stages": ["hidden"]}, "gives no hidden"),
        (lambda f: draw(f)[:, :4], {}, r"must draw images \[8, 12, 1\]"),
        (7, {}, "a model or a function"),
        ("none.keras", {}, "must hold a model"),
    ],
)
def test_what_is_no_model(
    table: tfcomp.FactorTable, model, arguments: dict, problem: str
) -> None:
    with pytest.raises((ValueError, RunError), match=problem):
        tfcomp.evaluate(model, table, "x:3", **arguments)


def test_import_is_light() -> None:
    """Counted in modules, since seconds depend on the machine."""
    code = (
        "import sys; before = set(sys.modules); import tfcomp\n"
        "names = {name.split('.')[0] for name in set(sys.modules) - before}\n"
        "assert names - sys.stdlib_module_names == {'tfcomp'}, names\n"
        "ours = [name for name in sys.modules if name.startswith('tfcomp')]\n"
        "assert ours == ['tfcomp'], ours\n"
        "tfcomp.FactorTable, tfcomp.train_run, tfcomp.RunError\n"
        "tfcomp.describe_run('smoke')\n"
        "assert not {'tensorflow', 'keras', 'pandas'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_public_names() -> None:
    """The names that are offered, listed and typed are the same."""
    for name in tfcomp.__all__:
        assert getattr(tfcomp, name).__doc__
    assert {*tfcomp.__all__, "__version__"} == set(dir(tfcomp))
    stub = Path(tfcomp.__file__).with_suffix(".pyi")
    typed = {
        f"{part.module}:{part.names[0].name}"
        for part in ast.parse(stub.read_text()).body
        if isinstance(part, ast.ImportFrom)
    }
    lazy = tfcomp._LAZY.items()
    assert typed == {f"tfcomp.{m}:{n}" for m, ns in lazy for n in ns.split()}
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = tfcomp.nothing


def test_a_run_from_its_description_to_its_scores(working_folder: Path) -> None:
    quick = {"epochs": 1, "steps_per_epoch": 1, "pictures": False}
    quick |= {"width": 4, "export": False}
    config = tfcomp.describe_run("smoke", **quick)
    flags = "--flagfile=smoke --width=4 --epochs=1 --steps_per_epoch=1"
    flags += " --nopictures --noexport"
    assert config == parse_config(flags.split())
    scores = tfcomp.train_run(config).scores
    metrics = json.loads(Path(config.run_dir, "metrics.json").read_text())
    assert scores["ood"] == pytest.approx(metrics["ood"])
    with pytest.raises(RunError, match=r"--seed=0 \(not 1\): choose another"):
        tfcomp.train_run(tfcomp.describe_run("smoke", seed=1, **quick))
    with pytest.raises(ConfigError, match="must be at least"):
        tfcomp.describe_run("smoke", width=0)
    with pytest.raises(RunError, match="did you mean depth"):
        tfcomp.describe_run("smoke", deptth=2)


def test_documented_pytorch_decoder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("torch")
    code = re.search(
        r"<!-- pytorch -->\n```python\n(.*?)```", PAGES.read_text(), re.DOTALL
    )[1]
    assert len(ast.parse(code).body) == 9
    monkeypatch.chdir(tmp_path)
    pixels = (255 * draw(CLASSES)).astype(np.uint8)
    np.savez("shapes.npz", images=pixels, classes=CLASSES)
    space: dict = {}
    exec(code, space)
    assert space["result"].scores["ood"]["relative_mse"] > 0
    assert (tmp_path / "report" / "report.html").exists()
