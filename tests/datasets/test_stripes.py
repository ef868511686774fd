"""Stripes and bumps: what is trained on, and what counts as true."""

import numpy as np

from tfcomp.config.run_flags import parse_config
from tfcomp.datasets import make_dataset


def make(*flags: str):
    return make_dataset(parse_config(["--flagfile=stripes.flags", *flags]))


def test_stripes_show_every_value_of_one_factor() -> None:
    train = make().splits.train
    assert train.shape == (56, 2)
    assert (np.isnan(train).sum(axis=1) == 1).all()
    for column in range(2):
        values = train[:, column]
        values = np.sort(values[~np.isnan(values)])
        np.testing.assert_array_equal(values, np.arange(28))


def test_bumps_come_from_id_without_repetition() -> None:
    dataset = make("--num_bumps=100")
    bumps = dataset.splits.train[56:]
    assert bumps.shape == (100, 2)
    assert len(np.unique(bumps, axis=0)) == 100
    assert not dataset.region.contains(bumps).any()
    assert dataset.splits.is_test.sum() == 588 - 100


def test_truths_are_bump_and_plus() -> None:
    dataset = make()
    factors = np.array([[5.0, 9.0]], np.float32)
    bump = dataset.render_array(factors)[0, :, :, 0]
    plus = dataset.render_array(factors, dataset.other_truths["plus"])
    plus = plus[0, :, :, 0]
    stripes = np.array([[5.0, np.nan], [np.nan, 9.0]], np.float32)
    vertical, horizontal = dataset.render_array(stripes)[..., 0]
    np.testing.assert_allclose(plus, vertical + horizontal, rtol=1e-6)
    np.testing.assert_allclose(bump, vertical * horizontal, atol=1e-7)
    assert np.unravel_index(plus.argmax(), plus.shape) == (9, 5)
