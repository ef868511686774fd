"""Models from elsewhere: what breaks the contract is one line with the cure."""

import itertools
import sys
import types
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf
from numpy import ndarray as Array
from pytest import approx

import tfcomp
from tests.datasets.own_tables import CLASSES, IMAGES
from tests.metrics.planted import hold_out, make_bumps, make_grid
from tfcomp.config.run_flags import parse_config
from tfcomp.datasets import make_dataset
from tfcomp.datasets.factor_table import FactorTable
from tfcomp.metrics.jacobians import find_outside_jacobians
from tfcomp.metrics.kernels import compute_cosine_gram, measure_alignment
from tfcomp.models import adapters

pytestmark = pytest.mark.usefixtures("untraced")

TABLE = FactorTable(IMAGES, CLASSES, names=list("abc"))
SHAPE = TABLE.image_shape
REGION = "a:1,b:1"
render = TABLE.draw


def score(model: Any, **options: Any) -> tfcomp.ModelReport:
    return tfcomp.evaluate(model, TABLE, REGION, **options)


def spoil(factors: Array) -> Array:
    images = render(factors)
    for image, point in zip(images, factors.tolist(), strict=True):
        if point == [1, 1, 2]:
            image[:] = np.nan
        if point == [0, 0, 3]:
            image[:] = np.inf
    return images


def make_dense() -> keras.Model:
    factors = keras.Input((3,))
    flat = keras.layers.Dense(int(np.prod(SHAPE)))(factors)
    image = keras.layers.Reshape(SHAPE)(flat)
    return keras.Model(factors, image)


def make_pair() -> keras.Model:
    first = keras.Input((1,))
    others = keras.Input((2,))
    factors = keras.layers.Concatenate()([first, others])
    return keras.Model([first, others], make_dense()(factors))


def make_several() -> keras.Model:
    factors = keras.Input((3,))
    return keras.Model(factors, [make_dense()(factors), factors])


def make_encoder() -> keras.Model:
    images = keras.Input(SHAPE)
    flat = keras.layers.Flatten()(images)
    return keras.Model(images, keras.layers.Dense(3)(flat))


@pytest.mark.parametrize(
    "make, words",
    (
        (make_encoder, "evaluate_encoder"),
        (lambda: lambda f: render(f)[:1], "row for each"),
        (lambda: lambda f: render(f)[:, :4], r"\[5, 6, 1\]"),
        (lambda: lambda f: render(f) * 1j, "real"),
        (lambda: lambda f: (render(f), f), "2 outputs"),
        (lambda: lambda f: {"mean": render(f)}, "gives no image"),
        (lambda: spoil, "2 of 24 .*a 0, b 0, c 3; a 1, b 1, c 2"),
        (lambda: 3, "function"),
        (make_pair, "2 inputs"),
        (make_several, "2 outputs"),
    ),
)
def test_breaks_of_the_contract(make, words):
    with pytest.raises(ValueError, match=words) as caught:
        score(make())
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "options, words",
    (({"inputs": "pixels"}, "inputs"), ({"stages": ["hid"]}, "gives no hid")),
)
def test_options_that_a_function_lacks(options, words):
    with pytest.raises(ValueError, match=words):
        score(render, **options)


@pytest.mark.parametrize("channels", [2, 3])
@pytest.mark.parametrize("axes", [3, (1, 2, 3)])
def test_gray_images_are_none_of_several_channels(channels, axes):
    images = np.repeat(IMAGES[..., None], channels, axis=3)
    table = FactorTable(images, CLASSES, names=list("abc"))

    with pytest.raises(ValueError, match="images"):
        tfcomp.evaluate(lambda f: table.draw(f).max(axes), table, REGION)


def test_files_of_other_forms(tmp_path):
    class Own(keras.layers.Layer):
        def call(self, x: Any) -> Any:
            return x

    with pytest.raises(tfcomp.RunError, match="must hold a model"):
        score("none.keras")

    folder = tmp_path / "none"
    tf.saved_model.save(tf.Module(), str(folder))
    with pytest.raises(ValueError, match="serving_default"):
        score(folder)

    file = tmp_path / "model.h5"
    file.write_bytes(b"\x89HDF")
    with pytest.raises(tfcomp.RunError, match="keras"):
        score(file)

    file = tmp_path / "own.keras"
    factors = keras.Input((3,))
    image = make_dense()(Own()(factors))
    keras.Model(factors, image).save(file)
    with pytest.raises(tfcomp.RunError, match="import"):
        score(file)


@pytest.mark.parametrize(
    "change, words",
    (
        (lambda x: 14 * x - 7, "logits?"),
        (lambda x: 2 * x - 1, "-1 to 1?"),
        (lambda x: 255 * x, "255?"),
        (lambda x: x, ""),
    ),
)
def test_the_range_of_outputs_is_compared(change, words, capsys):
    report = score(lambda f: change(render(f)))

    note = capsys.readouterr().err
    assert words in note
    assert ("note" in note) == bool(words)
    assert words in report.run.description


def test_what_is_held_out_is_printed(capsys):
    report = tfcomp.evaluate(render, TABLE, "a:1")

    said = capsys.readouterr().err
    splits = report.dataset.splits
    held_out = splits.grid[splits.is_ood]
    assert set(held_out[:, 0]) == {1}
    assert f"held out: {len(held_out)} of 24 combinations" in said
    assert "lacks values of a" in said
    assert "1 held out altogether" in said


def test_scores_of_a_stochastic_model_are_averaged(capsys):
    errors = itertools.cycle([0.1, 0.3])

    def sample(factors: Array) -> Array:
        return render(factors) + np.float32(next(errors))

    score(sample)
    assert "samples=10" in capsys.readouterr().err

    report = score(sample, samples=40)
    mean = report.scores["ood"]["mse"]
    deviation = report.score_sds["ood"]["mse"]
    assert mean == approx((0.01 + 0.09) / 2, rel=0.05)
    assert deviation == approx(0.04, rel=0.05)
    assert "ood sd" in repr(report)
    assert "40" in report.run.description


def test_a_dataset_keeps_the_width_of_its_bumps():
    data = make_dataset(parse_config(["--flagfile=smoke.flags", "--sigma=2"]))

    analysis = tfcomp.evaluate(data.render_array, data).analysis

    gram = compute_cosine_gram(analysis.bright_truth)
    numbers = analysis.align(gram)
    assert numbers["alignment_radial"] == approx(1, abs=1e-4)


@pytest.mark.parametrize("kind", ["ordered", "periodic"])
def test_kernels_in_whatever_units_or_periods(kind):
    grid = make_grid(9, 9)
    table = FactorTable(
        make_bumps(grid, 9),
        grid.astype(int),
        names=["a", "b"],
        kinds=[kind, "ordered"],
        values=[1e6 * np.arange(9), np.arange(9)],
    )
    region = hold_out(grid, 2, 6)

    analysis = tfcomp.evaluate(table.draw, table, region).analysis
    numbers = measure_alignment(analysis)

    # No width of bumps without bumps, or across a wrap.
    assert "alignment_radial" not in numbers
    if kind == "ordered":
        near = approx(1, abs=1e-2)
        assert numbers["alignment_radial_best"] == near
        assert numbers["alignment_radial_width"] == near
    else:
        assert "alignment_radial_best" not in numbers


def test_a_module_of_pytorch_is_called_for_inference(monkeypatch):
    """A stand-in with the names of PyTorch, which is not needed for tests."""

    class Module:
        training = True

        def parameters(self) -> Any:
            return iter(())

        def eval(self):
            self.training = False

        def modules(self) -> Any:
            return iter([self])

        def __call__(self, factors: Array) -> Any:
            assert not self.training
            return render(factors)

    def refuse(*_: object):
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

    report = score(module)

    assert report.scores["ood"]["mse"] == approx(0, abs=1e-9)
    assert module.training


def test_exact_jacobians_have_the_order_of_the_pixels(monkeypatch, rng):
    """Other software may draw channels first, and differentiate them so."""
    images = rng.random((4, 3, 5, 3), np.float32)
    classes = make_grid(2, 2).astype(int)
    table = FactorTable(images, classes)
    slopes = rng.random((2, 45), np.float32)

    def call(factors: tf.Tensor) -> dict[str, tf.Tensor]:
        pixels = factors @ slopes
        return {"image": tf.reshape(pixels, (-1, 3, 3, 5))}

    def differentiate(factors: Array) -> dict[str, Array]:
        return {"image": np.stack([slopes.T] * len(factors))}

    opened = ([], call, differentiate)
    monkeypatch.setattr(adapters, "open_model", lambda *_: opened)
    result = tfcomp.evaluate(call, table)
    origin = np.zeros((1, 2), "f4")

    compute = find_outside_jacobians(result.model)
    assert compute is not None
    (jacobian,) = compute(result.model, origin)["image"]

    moved = result.draw(np.eye(2)) - result.draw(origin)
    expected = moved.reshape(2, 45).T
    np.testing.assert_allclose(jacobian, expected, rtol=1e-5)
