"""Models from elsewhere: what breaks the contract is one line with the cure."""

import sys
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf

import tfcomp
from tests.datasets.own_tables import CLASSES, IMAGES
from tfcomp.datasets.factor_table import FactorTable

TABLE = FactorTable(IMAGES, CLASSES, names=list("abc"))
SHAPE = TABLE.image_shape
REGION = "a:1,b:1"


def draw(factors: np.ndarray) -> np.ndarray:
    return TABLE.draw(factors)


def score(model: Any, **others: Any) -> tfcomp.ModelReport:
    return tfcomp.evaluate(model, TABLE, REGION, **others)


def make_dense(width: int = 3) -> keras.Model:
    factors = keras.Input((width,))
    flat = keras.layers.Dense(int(np.prod(SHAPE)))(factors)
    return keras.Model(factors, keras.layers.Reshape(SHAPE)(flat))


@pytest.mark.parametrize(
    ("model", "words"),
    (
        (lambda f: draw(f)[:1], "row for each"),
        (lambda f: draw(f)[0], "row for each"),
        (lambda f: draw(f) * 1j, r"\.real"),
        (lambda f: (draw(f), f), "2 outputs"),
        (lambda f: {"mean": draw(f)}, "gives no image"),
        (lambda f: draw(f) * np.nan, "finite"),
        (3, "a model or a function"),
    ),
)
def test_breaks_of_the_contract(model: Any, words: str) -> None:
    with pytest.raises(ValueError, match=words) as caught:
        score(model)
    assert "\n" not in str(caught.value)


def test_keras_models_of_other_forms() -> None:
    one, two = keras.Input((1,)), keras.Input((2,))
    flat = keras.layers.Concatenate()([one, two])
    pair = keras.Model([one, two], make_dense()(flat))
    with pytest.raises(ValueError, match="2 inputs"):
        score(pair)
    factors = keras.Input((3,))
    several = keras.Model(factors, [make_dense()(factors), factors])
    with pytest.raises(ValueError, match="2 outputs"):
        score(several)


def test_saved_models_of_other_forms(tmp_path: Path) -> None:
    module = tf.Module()
    tf.saved_model.save(module, str(tmp_path / "none"))
    with pytest.raises(ValueError, match="serving_default"):
        score(tmp_path / "none")
    (tmp_path / "model.h5").write_bytes(b"\x89HDF")
    with pytest.raises(tfcomp.RunError, match=r"model\.keras"):
        score(tmp_path / "model.h5")


def test_layers_of_ones_own(tmp_path: Path) -> None:
    class Own(keras.layers.Layer):
        def call(self, x: Any) -> Any:
            return x

    factors = keras.Input((3,))
    keras.Model(factors, make_dense()(Own()(factors))).save(
        tmp_path / "own.keras"
    )
    with pytest.raises(tfcomp.RunError, match="import the module"):
        score(tmp_path / "own.keras")


def test_images_that_are_not_finite_are_named_and_left_out(
    tmp_path: Path, capsys: pytest.CaptureFixture
) -> None:
    def spoil(factors: np.ndarray) -> np.ndarray:
        images = draw(factors) + np.float32(0.1)
        images[(factors == (1, 1, 2)).all(axis=1)] = np.nan
        images[(factors == (0, 0, 3)).all(axis=1)] = np.inf
        return images

    result = score(spoil)
    said = capsys.readouterr().err
    assert "2 of 24" in said and "a 0, b 0, c 3; a 1, b 1, c 2" in said
    assert result.scores["ood"]["mse"] == pytest.approx(0.01, rel=1e-3)
    assert result.scores["id"]["mse"] == pytest.approx(0.01, rel=1e-3)
    page = result.write_report(tmp_path / "report")
    assert "not finite" in page.read_text("utf-8")


@pytest.mark.parametrize(
    ("change", "words"),
    (
        (lambda x: 14 * x - 7, "logits?"),
        (lambda x: 2 * x - 1, "-1 to 1?"),
        (lambda x: 255 * x, "255?"),
    ),
)
def test_the_range_of_outputs_is_compared(
    change: Callable, words: str, capsys: pytest.CaptureFixture
) -> None:
    result = score(lambda f: change(draw(f)))
    assert words in capsys.readouterr().err
    assert words in result.run.description
    score(draw)
    assert "note" not in capsys.readouterr().err


def test_an_error_names_the_argument() -> None:
    with pytest.raises(tfcomp.ConfigError) as caught:
        score(draw, name="a, b")
    assert caught.value.name == "name"
    assert "run_name" not in str(caught.value)


def test_scores_of_a_stochastic_model_are_averaged(
    capsys: pytest.CaptureFixture,
) -> None:
    rng = np.random.default_rng(0)

    def sample(factors: np.ndarray) -> np.ndarray:
        images = draw(factors)
        return images + rng.choice([0.1, 0.3]) * np.ones_like(images)

    score(sample)
    assert "samples=10" in capsys.readouterr().err
    result = score(sample, samples=40)
    mean, sd = (x["ood"]["mse"] for x in (result.scores, result.score_sds))
    assert mean == pytest.approx((0.01 + 0.09) / 2, rel=0.4)
    assert sd == pytest.approx(0.04, rel=0.3)
    assert "ood sd" in repr(result)


def test_a_module_of_pytorch_is_called_for_inference(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A stand-in with the names of PyTorch, which is not needed for tests."""

    class Tensor(np.ndarray):
        def cpu(self) -> "Tensor":
            return self

        float = detach = cpu

        def is_floating_point(self) -> bool:
            return True

        def numpy(self) -> np.ndarray:
            return np.asarray(self)

    class Module:
        training = True

        def parameters(self) -> Any:
            return iter(())

        def train(self, mode: bool = True) -> None:
            self.training = mode

        def eval(self) -> None:
            self.training = False

        def modules(self) -> Any:
            return iter([self])

        def __call__(self, factors: Any) -> Any:
            assert not self.training
            return draw(np.asarray(factors)).view(Tensor)

    Module.__module__ = "torch.nn.modules.module"
    Module.__qualname__ = "Module"
    torch: Any = types.ModuleType("torch")
    torch.from_numpy = lambda values: values
    torch.no_grad = lambda: tf.name_scope("no_grad")
    torch.zeros_like = np.zeros_like

    def refuse(*_: object) -> None:
        raise RuntimeError("no derivative")

    torch.func = types.SimpleNamespace(jvp=refuse)
    monkeypatch.setitem(sys.modules, "torch", torch)
    module = Module()
    assert score(module).scores["ood"]["mse"] == pytest.approx(0, abs=1e-9)
    assert module.training


def test_real_modules_of_pytorch(capsys: pytest.CaptureFixture) -> None:
    torch = pytest.importorskip("torch")
    colors = np.random.default_rng(0).random((24, 4, 4, 3), dtype=np.float32)
    table = FactorTable(colors, CLASSES, names=list("abc"))

    def make(dtype: Any, change: Callable) -> Any:
        class Module(torch.nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.linear = torch.nn.Linear(3, 3, dtype=dtype)
                torch.nn.init.eye_(self.linear.weight)
                torch.nn.init.zeros_(self.linear.bias)

            def forward(self, factors: Any) -> Any:
                points = self.linear(factors).detach().float().numpy()
                images = torch.from_numpy(table.draw(points))
                return change(images.permute(0, 3, 1, 2).to(dtype))

        return Module()

    def evaluate(model: Any) -> float:
        return tfcomp.evaluate(model, table, REGION).scores["ood"]["mse"]

    for dtype in (torch.float32, torch.float64, torch.bfloat16):
        assert evaluate(make(dtype, lambda x: x)) < 1e-5
    float32 = torch.float32
    with pytest.raises(ValueError, match="2 outputs"):
        evaluate(make(float32, lambda x: (x, x)))
    evaluate(make(float32, lambda x: torch.logit(x, 1e-3)))
    assert "logits?" in capsys.readouterr().err
    embedding = torch.nn.Sequential(torch.nn.Embedding(5, 16))
    for model in (embedding, torch.nn.Bilinear(3, 3, 48)):
        with pytest.raises(ValueError, match="cannot be called") as caught:
            evaluate(model)
        assert "\n" not in str(caught.value)
