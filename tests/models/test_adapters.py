"""Models from elsewhere: what breaks the contract is one line with the cure."""

import itertools
import sys
import types
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf

import tfcomp
from tests.datasets.own_tables import CLASSES, IMAGES
from tests.metrics.planted import hold_out, make_bumps, make_grid
from tfcomp.config.run_flags import parse_config
from tfcomp.datasets import make_dataset
from tfcomp.datasets.factor_table import FactorTable
from tfcomp.metrics.kernels import (
    compute_cosine_gram,
    measure_alignment,
    summarize_alignment,
)

TABLE = FactorTable(IMAGES, CLASSES, names=list("abc"))
SHAPE = TABLE.image_shape
REGION = "a:1,b:1"


def draw(factors: np.ndarray) -> np.ndarray:
    return TABLE.draw(factors)


def score(model: Any, **others: Any) -> tfcomp.ModelReport:
    return tfcomp.evaluate(model, TABLE, REGION, **others)


def spoil(factors: np.ndarray) -> np.ndarray:
    images = draw(factors)
    images[(factors == (1, 1, 2)).all(axis=1)] = np.nan
    images[(factors == (0, 0, 3)).all(axis=1)] = np.inf
    return images


def make_dense() -> keras.Model:
    factors = keras.Input((3,))
    flat = keras.layers.Dense(int(np.prod(SHAPE)))(factors)
    return keras.Model(factors, keras.layers.Reshape(SHAPE)(flat))


def make_pair() -> keras.Model:
    one, two = keras.Input((1,)), keras.Input((2,))
    flat = keras.layers.Concatenate()([one, two])
    return keras.Model([one, two], make_dense()(flat))


def make_several() -> keras.Model:
    factors = keras.Input((3,))
    return keras.Model(factors, [make_dense()(factors), factors])


@pytest.mark.parametrize(
    ("make", "words"),
    (
        (lambda: lambda f: draw(f)[:1], "row for each"),
        (lambda: lambda f: draw(f) * 1j, "real"),
        (lambda: lambda f: (draw(f), f), "2 outputs"),
        (lambda: lambda f: {"mean": draw(f)}, "gives no image"),
        (lambda: spoil, "2 of 24 .*a 0, b 0, c 3; a 1, b 1, c 2"),
        (lambda: 3, "a model or a function"),
        (make_pair, "2 inputs"),
        (make_several, "2 outputs"),
    ),
)
def test_breaks_of_the_contract(make, words) -> None:
    with pytest.raises(ValueError, match=words) as caught:
        score(make())
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("channels", [2, 3])
@pytest.mark.parametrize("keep", [np.s_[..., 0], np.s_[:, 0, 0, 0]])
def test_gray_images_are_none_of_several_channels(channels, keep) -> None:
    images = np.repeat(IMAGES[..., None], channels, axis=3)
    table = FactorTable(images, CLASSES, names=list("abc"))
    with pytest.raises(ValueError, match="images"):
        tfcomp.evaluate(lambda f: table.draw(f)[keep], table, REGION)


def test_files_of_other_forms(tmp_path) -> None:
    class Own(keras.layers.Layer):
        def call(self, x: Any) -> Any:
            return x

    tf.saved_model.save(tf.Module(), str(tmp_path / "none"))
    with pytest.raises(ValueError, match="serving_default"):
        score(tmp_path / "none")
    (tmp_path / "model.h5").write_bytes(b"\x89HDF")
    with pytest.raises(tfcomp.RunError, match=r"model\.keras"):
        score(tmp_path / "model.h5")
    factors = keras.Input((3,))
    own = keras.Model(factors, make_dense()(Own()(factors)))
    own.save(tmp_path / "own.keras")
    with pytest.raises(tfcomp.RunError, match="import the module"):
        score(tmp_path / "own.keras")


@pytest.mark.parametrize(
    ("change", "words"),
    (
        (lambda x: 14 * x - 7, "logits?"),
        (lambda x: 2 * x - 1, "-1 to 1?"),
        (lambda x: 255 * x, "255?"),
        (lambda x: x, ""),
    ),
)
def test_the_range_of_outputs_is_compared(change, words, capsys) -> None:
    result = score(lambda f: change(draw(f)))
    said = capsys.readouterr().err
    assert words in said and ("note" in said) == bool(words)
    assert words in result.run.description


def test_scores_of_a_stochastic_model_are_averaged(
    capsys,
) -> None:
    errors = itertools.cycle([0.1, 0.3])

    def sample(factors: np.ndarray) -> np.ndarray:
        return draw(factors) + np.float32(next(errors))

    score(sample)
    assert "samples=10" in capsys.readouterr().err
    result = score(sample, samples=40)
    mean, sd = (x["ood"]["mse"] for x in (result.scores, result.score_sds))
    assert mean == pytest.approx((0.01 + 0.09) / 2, rel=0.05)
    assert sd == pytest.approx(0.04, rel=0.05)
    assert "ood sd" in repr(result)
    assert "means of 40 evaluations" in result.run.description


def test_a_dataset_keeps_the_width_of_its_bumps() -> None:
    data = make_dataset(parse_config(["--flagfile=smoke.flags", "--sigma=2"]))
    result = tfcomp.evaluate(lambda f: data.render_array(f), data).analysis
    gram = compute_cosine_gram(result.bright_truth)
    assert result.align(gram)["alignment_radial"] == pytest.approx(1, abs=1e-4)


@pytest.mark.parametrize("kind", ["ordered", "periodic"])
def test_kernels_in_whatever_units_or_periods(kind) -> None:
    grid, unit = make_grid(9, 9), 1e6
    table = FactorTable(
        make_bumps(grid, 9),
        grid.astype(int),
        names=["a", "b"],
        kinds=[kind, "ordered"],
        values=[unit * np.arange(9), np.arange(9)],
    )
    result = tfcomp.evaluate(table.draw, table, hold_out(grid, 2, 6)).analysis
    numbers = measure_alignment(result)

    points = np.rint(result.splits.grid / [unit, 1])
    gram = compute_cosine_gram(result.bright_outputs)
    expected = summarize_alignment(gram, points, result.splits.is_ood)
    assert {k: numbers[k] for k in expected} == pytest.approx(expected)
    # No width of bumps without bumps, or across a wrap.
    assert "alignment_radial" not in numbers
    assert ("alignment_radial_best" in numbers) == (kind == "ordered")
    if kind == "ordered":
        assert numbers["alignment_radial_best"] == pytest.approx(1, abs=1e-2)
        assert numbers["alignment_radial_width"] == pytest.approx(1, abs=1e-2)


def test_a_module_of_pytorch_is_called_for_inference(
    monkeypatch,
) -> None:
    """A stand-in with the names of PyTorch, which is not needed for tests."""

    class Module:
        training = True

        def parameters(self) -> Any:
            return iter(())

        def eval(self) -> None:
            self.training = False

        def modules(self) -> Any:
            return iter([self])

        def __call__(self, factors: np.ndarray) -> Any:
            assert not self.training
            return draw(factors)

    def refuse(*_: object) -> None:
        raise RuntimeError("no derivative")

    Module.__module__ = "torch.nn.modules.module"
    Module.__qualname__ = "Module"
    torch = types.SimpleNamespace(
        from_numpy=lambda values: values,
        no_grad=lambda: tf.name_scope("no_grad"),
        zeros_like=np.zeros_like,
        func=types.SimpleNamespace(jvp=refuse),
    )
    monkeypatch.setitem(sys.modules, "torch", torch)
    module = Module()
    assert score(module).scores["ood"]["mse"] == pytest.approx(0, abs=1e-9)
    assert module.training
