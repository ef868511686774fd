"""Two replicas train on the same batches as one, to the same weights."""

import subprocess
import sys
from pathlib import Path

import numpy as np
from numpy.testing import assert_allclose, assert_array_equal

from tests.datasets.own_tables import make_data
from tfcomp.training.fit import give_to_devices, make_batches
from tfcomp.training.prepared_models import make_strategy

SCRIPT = Path(__file__).with_name("two_replicas.py")


def test_losses_and_weights_are_the_same(tmp_path):
    subprocess.run([sys.executable, SCRIPT, tmp_path], check=True)

    one = np.load(tmp_path / "1.npz")
    two = np.load(tmp_path / "2.npz")
    assert one["losses"].shape == (2,)
    assert_allclose(two["losses"], one["losses"], rtol=1e-5)
    assert one.files == ["losses", "coefficients", "left", "right"]
    for name in one.files:
        assert_allclose(two[name], one[name], rtol=0, atol=1e-5)


def test_one_device_gets_all_batches_in_order():
    dataset = make_data("smoke --grid_size=8 --region=square:3-4")
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
