"""The loss of a run: squared error, with some absolute error if asked."""

from __future__ import annotations

from collections.abc import Callable

import keras
from keras import ops


def make_loss(l1_weight: float) -> str | Callable:
    """Mean over pixels of (t - p)^2 + `l1_weight` |t - p|."""
    if not l1_weight:
        return "mean_squared_error"

    def squared_and_absolute_error(
        truth: keras.KerasTensor, images: keras.KerasTensor
    ) -> keras.KerasTensor:
        error = images - truth
        return ops.mean(ops.square(error) + l1_weight * ops.abs(error), axis=-1)

    return squared_and_absolute_error
