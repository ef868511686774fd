"""Planted outputs, stages and splits, of which a metric once said otherwise."""

from typing import Any

import keras
import numpy as np
import pytest

from tests.metrics.planted import hold_out, make_bumps, make_grid
from tfcomp.config.run_flags import parse_config
from tfcomp.datasets import make_dataset
from tfcomp.datasets.splits import Points, Splits
from tfcomp.metrics import geometry, scores
from tfcomp.metrics.output_analysis import predict_superposed_inputs
from tfcomp.metrics.schmidt import compute_interaction_r2
from tfcomp.models.stages import make_model

GRID = make_grid(14, 14)
IS_OOD = hold_out(GRID, 2, 11)
BUMPS = make_bumps(GRID, 14)


def near(value: float) -> Any:
    return pytest.approx(value, abs=0.02)


def test_hits() -> None:
    """The published accuracy counts bumps of height 1e-9, and pluses."""
    pluses = [np.add.outer(b.max(axis=1), b.max(axis=0)) for b in BUMPS]
    cases = (BUMPS, 1), (1e-9 * BUMPS, 0), (np.stack(pluses), 0)
    for images, hits in cases:
        pair = images[IS_OOD], BUMPS[IS_OOD]
        found = scores.score_images(*pair, GRID[IS_OOD].astype(int), "bright")
        assert found["position_accuracy"].mean() == near(1)
        assert found["hit_rate"].mean() == hits
    assert compute_interaction_r2(np.stack(pluses), BUMPS) == near(0)


def test_geometry() -> None:
    """The mean does not see that, of ten factors, two move the same unit."""
    jacobian = np.eye(10)[:9, [*range(9), 8]]
    merged = np.tile(jacobian.T @ jacobian, (50, 1, 1))
    assert geometry.compute_factorization(merged).mean() == near(0.989)
    assert min(geometry.compute_pair_scores(merged).values()) == near(0)
    for units in (20, 2000):
        jacobians = np.random.default_rng(0).normal(size=(400, units, 2))
        g = np.einsum("nui,nuj->nij", jacobians, jacobians)
        found = geometry.compute_cosine_factorization(g)
        assert found.mean() == near(geometry.compute_chance(units))


def test_factors_in_other_units(make_study) -> None:
    """Equation 7 of a stage with one factor counted in hundredths."""
    study = make_study(
        "truth", stage_0=lambda f: keras.ops.stack([f @ [[100.0], [1.0]]], 1)
    )
    found = geometry.measure_orthogonality(study)
    row = found["stage_0"]
    assert row["factorization"] > 0.98
    assert row["worst_pair_factorization"] == pytest.approx(0)
    assert row["chance_factorization"] == 0
    assert found["image"]["chance_factorization"] > 0.9


def test_a_sum_is_no_test_of_sharing(make_study) -> None:
    """Images of two bars are sums of those that share one, and say so."""
    planted = make_study("truth")
    assert planted.truth_sharing < 0.3
    grid = planted.splits.grid.astype(int)
    bars = np.zeros((len(grid), 16, 16))
    bars[np.arange(len(grid)), :, grid[:, 0]] += 1
    bars[np.arange(len(grid)), grid[:, 1], :] += 1
    del vars(planted)["truth_sharing"]
    vars(planted)["bright_truth"] = bars.reshape(len(grid), -1)
    assert planted.truth_sharing > 0.5


def make_decoder(*, skips: bool = False, code: str = "code") -> keras.Model:
    factors = keras.Input((2,), name="factors")
    hidden = keras.layers.Dense(5, activation="tanh", name=code)(factors)
    image = keras.layers.Dense(12)(hidden)
    if skips:
        image = image + keras.layers.Dense(12)(factors)
    image = keras.layers.Reshape((3, 4, 1), name="image")(image)
    return keras.Model(factors, image)


def test_a_linear_decoder_superposes_outputs_by_superposed_inputs() -> None:
    grid = make_grid(6, 7)
    is_ood = hold_out(grid, 2, 3) | (grid[:, 0] == 5)
    splits = Splits(grid[~is_ood], Points(grid, is_ood, np.zeros(42, bool)), ())
    model = make_decoder()
    found = predict_superposed_inputs(model, splits)
    outputs = model.predict(grid, verbose=0)
    assert found.shape == (is_ood.sum(), 2, 3, 4, 1)
    for point, images in zip(grid[is_ood], found, strict=True):
        for factor, image in enumerate(images):
            same = ~is_ood & (grid[:, factor] == point[factor])
            if same.any():
                expected = outputs[same].mean(axis=0)
                np.testing.assert_allclose(image, expected, atol=1e-5)
            else:  # all of x = 5 is held out
                assert np.isnan(image).all()
    # Others have none: of several inputs, without a code, with an index.
    for changes in ({"skips": True}, {"code": "other"}):
        model = make_decoder(**changes)
        assert predict_superposed_inputs(model, splits) is None
    config = parse_config(["--flagfile=low_rank.flags"])
    dataset = make_dataset(config)
    model = make_model(config, dataset, "float32")
    assert predict_superposed_inputs(model, dataset.splits) is None
