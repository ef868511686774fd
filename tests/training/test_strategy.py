"""What devices get to train on."""

import types

import numpy as np
import tensorflow as tf

from tfcomp.config.run_flags import parse_config
from tfcomp.datasets import make_dataset
from tfcomp.datasets.batches import make_batches
from tfcomp.training.strategy import give_to_devices, make_strategy


def make_smoke_batches() -> tf.data.Dataset:
    dataset = make_dataset(parse_config(["--flagfile=smoke.flags"]))
    return make_batches(dataset, 16, seed=3, first_step=5, num_steps=7)


def test_one_device_gets_all_batches_in_order() -> None:
    given = list(give_to_devices(make_smoke_batches(), make_strategy()))
    expected = list(make_smoke_batches())
    assert len(given) == len(expected) == 7
    for some, others in zip(given, expected, strict=True):
        for one, other in zip(some, others, strict=True):
            np.testing.assert_array_equal(one, other)


def test_several_devices_share_batches() -> None:
    """`fit` divides a dataset that has not been given to devices yet."""
    several = types.SimpleNamespace(num_replicas_in_sync=2)
    batches = make_smoke_batches()
    assert give_to_devices(batches, several) is batches


def test_nothing_tunes_the_pipeline() -> None:
    assert make_smoke_batches().options().autotune.enabled is False
