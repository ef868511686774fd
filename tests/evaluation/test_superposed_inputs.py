"""Images for mean codes, of a decoder that is linear in its code."""

import keras
import numpy as np

from tests.analysis.planted import hold_out, make_grid
from tfcomp.config.run_flags import parse_config
from tfcomp.datasets import make_dataset
from tfcomp.datasets.splits import Points, Splits
from tfcomp.evaluation.superposed_inputs import draw_superposed_inputs
from tfcomp.models.initial_model import make_model

GRID = make_grid(6, 7)
IS_OOD = hold_out(GRID, 2, 3) | (GRID[:, 0] == 5)
POINTS = Points(GRID, IS_OOD, np.zeros(42, bool))
SPLITS = Splits(GRID[~IS_OOD], POINTS, ())


def make_decoder(*, skips: bool = False, code: str = "code") -> keras.Model:
    factors = keras.Input((2,), name="factors")
    hidden = keras.layers.Dense(5, activation="tanh", name=code)(factors)
    image = keras.layers.Dense(12)(hidden)
    if skips:
        image = image + keras.layers.Dense(12)(factors)
    image = keras.layers.Reshape((3, 4, 1), name="image")(image)
    return keras.Model(factors, image)


def test_a_linear_decoder_superposes_outputs_by_superposed_inputs() -> None:
    model = make_decoder()
    found = draw_superposed_inputs(model, SPLITS)
    outputs = model.predict(GRID, verbose=0)
    assert found.shape == (IS_OOD.sum(), 2, 3, 4, 1)
    for point, images in zip(GRID[IS_OOD], found, strict=True):
        for factor, image in enumerate(images):
            same = ~IS_OOD & (GRID[:, factor] == point[factor])
            if same.any():
                expected = outputs[same].mean(axis=0)
                np.testing.assert_allclose(image, expected, atol=1e-5)
            else:  # all of x = 5 is held out
                assert np.isnan(image).all()


def test_other_decoders_have_none() -> None:
    """Of several inputs, without a code, or with an index as a code."""
    for changes in ({"skips": True}, {"code": "other"}):
        assert draw_superposed_inputs(make_decoder(**changes), SPLITS) is None
    config = parse_config(["--flagfile=low_rank.flags"])
    dataset = make_dataset(config)
    model = make_model(config, dataset, "float32")
    assert draw_superposed_inputs(model, dataset.splits) is None
