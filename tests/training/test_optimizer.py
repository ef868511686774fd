"""The fused AdamW against the one of Keras."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from tfcomp.training.optimizer import FusedAdamW


def train(
    optimizer: keras.optimizers.Optimizer, sparse: bool
) -> list[keras.Variable]:
    """The variables after some steps with gradients drawn from a seed."""
    dense, table = (
        keras.Variable(np.ones(shape, "float32"), name=name)
        for shape, name in (((3, 2), "dense"), ((5, 4), "table"))
    )
    optimizer.build([dense, table])

    @tf.function
    def step(first: tf.Tensor, second: tf.Tensor, rows: tf.Tensor) -> None:
        # As that of a lookup: a row may be there twice, others not at all.
        slices = tf.IndexedSlices(second, rows, dense_shape=(5, 4))
        other = slices if sparse else tf.convert_to_tensor(slices)
        optimizer.apply_gradients([(first, dense), (other, table)])

    rng = np.random.default_rng(0)
    for number in range(20):
        first, second = (rng.normal(size=s) for s in ((3, 2), (3, 4)))
        step(
            tf.constant(first, tf.float32),
            tf.constant(second, tf.float32),
            tf.constant([number % 5, 3, 3]),
        )
        optimizer.learning_rate = 0.1 / (1 + number)
    return [dense, table, *optimizer.variables]


@pytest.mark.parametrize("clip", [None, 0.1])
@pytest.mark.parametrize("decay", [0.0, 0.3])
def test_numbers_and_names_are_those_of_keras(
    clip: float | None, decay: float
) -> None:
    flags = {"weight_decay": decay, "global_clipnorm": clip}
    found = train(FusedAdamW(0.1, **flags), sparse=True)
    # Of rows that are there twice, Keras would sum squares of gradients.
    expected = train(keras.optimizers.AdamW(0.1, **flags), sparse=False)
    for one, other in zip(found, expected, strict=True):
        assert one.path.split("/")[1:] == other.path.split("/")[1:]
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)
