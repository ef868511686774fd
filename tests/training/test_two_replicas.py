"""Two replicas train on the same batches as one, to the same weights."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from tests.training.two_replicas import SMOKE
from tfcomp.config.run_flags import parse_config
from tfcomp.datasets import make_dataset
from tfcomp.training.fit import give_to_devices, make_batches
from tfcomp.training.prepared_models import make_strategy

SCRIPT = Path(__file__).with_name("two_replicas.py")


@pytest.fixture(scope="module")
def results(tmp_path_factory) -> list[dict]:
    """Results of one process, by one replica and by two."""
    folder = tmp_path_factory.mktemp("replicas")
    subprocess.run([sys.executable, SCRIPT, folder], check=True)
    return [dict(np.load(folder / f"{count}.npz")) for count in (1, 2)]


def test_the_loss_of_a_training_is_the_same(results) -> None:
    one, two = results
    assert one["losses"].shape == (2,)
    assert_allclose(two["losses"], one["losses"], rtol=1e-5)


def test_a_low_rank_layer_is_the_same(results) -> None:
    """With penalties, which must be counted once and not for each replica."""
    one, two = results
    assert len(one) == 5  # losses of a training and a layer, three weights
    for name in one.keys() - {"losses"}:
        assert_allclose(two[name], one[name], rtol=0, atol=1e-6)


def test_one_device_gets_all_batches_in_order() -> None:
    dataset = make_dataset(parse_config(SMOKE))
    batches = make_batches(
        dataset,
        16,
        seed=3,
        first_step=5,
        num_steps=7,
    )
    given = list(give_to_devices(batches, make_strategy()))

    assert len(given) == 7

    for batch, expected in zip(given, batches, strict=True):
        for part, expected_part in zip(batch, expected, strict=True):
            assert_array_equal(part, expected_part)
