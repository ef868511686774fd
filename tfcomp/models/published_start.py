"""The initial weights of the published code: the defaults of PyTorch."""

from __future__ import annotations

import math

import keras


def apply_published_start(model: keras.Model) -> None:
    """Draws kernels and biases anew, uniform up to 1 / sqrt(fan-in).

    For dense layers and convolutions, where the fan-in counts the weights of
    a kernel for each entry of its last dimension. In a transposed convolution
    that is an input channel, in PyTorch and in Keras alike.
    """
    for layer in model.layers:
        kernel = getattr(layer, "kernel", None)
        if kernel is None:
            continue
        bound = math.prod(kernel.shape[:-1]) ** -0.5
        for variable in (kernel, getattr(layer, "bias", None)):
            if variable is not None:
                draw = keras.initializers.RandomUniform(-bound, bound)
                variable.assign(draw(variable.shape, variable.dtype))
