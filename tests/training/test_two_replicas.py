"""Two replicas train on the same batches as one, to the same weights."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tests.training.two_replicas import SMOKE
from tfcomp.config.run_flags import parse_config
from tfcomp.datasets import make_dataset
from tfcomp.datasets.batches import make_batches
from tfcomp.training.fit import give_to_devices
from tfcomp.training.prepared_models import make_strategy

SCRIPT = Path(__file__).with_name("two_replicas.py")


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, np.ndarray]:
    """Results of one process for all tests here."""
    folder = tmp_path_factory.mktemp("replicas")
    subprocess.run([sys.executable, SCRIPT, folder], check=True)
    with np.load(folder / "replicas.npz") as arrays:
        return dict(arrays)


def test_the_loss_of_a_training_is_the_same(
    found: dict[str, np.ndarray],
) -> None:
    assert found["losses 1"].shape == (5,)
    np.testing.assert_allclose(found["losses 2"], found["losses 1"], rtol=1e-5)


def test_a_low_rank_layer_is_the_same(found: dict[str, np.ndarray]) -> None:
    """With penalties, which must be counted once and not for each replica."""
    one, two = (
        {k.removesuffix(n): v for k, v in found.items() if k.endswith(n)}
        for n in (" 1", " 2")
    )
    names = [name for name in one if name.startswith("layer_")]
    assert len(names) == 4  # losses, and three weights
    np.testing.assert_allclose(
        two["layer_losses"], one["layer_losses"], rtol=1e-6
    )
    for name in names:
        np.testing.assert_allclose(two[name], one[name], rtol=0, atol=1e-6)


def test_one_device_gets_all_batches_in_order() -> None:
    dataset = make_dataset(parse_config(SMOKE))
    batches = make_batches(dataset, 16, seed=3, first_step=5, num_steps=7)
    given = list(give_to_devices(batches, make_strategy()))
    assert len(given) == 7
    for some, others in zip(given, batches, strict=True):
        for one, other in zip(some, others, strict=True):
            np.testing.assert_array_equal(one, other)
