"""Layers of forced rendering: images of values, and what combines them."""

from typing import Any

import keras
from keras import KerasTensor, ops

from tfcomp.models.value_embedding import ValueEmbedding

PRELU_START = 0.25
KERNEL_SIZE = 3


def list_embeddings(model: keras.Model) -> dict[str, ValueEmbedding]:
    """Returns the layers in which values own images, by their factor."""
    return {
        layer.name.removeprefix("embedding_"): layer
        for layer in model.layers
        if isinstance(layer, ValueEmbedding)
    }


@keras.saving.register_keras_serializable(package="tfcomp")
class Stack(keras.layers.Layer):
    """Stacks images [n, H, W] as the channels of one, [n, H, W, C]."""

    def call(self, inputs: list) -> KerasTensor:
        # Twice as fast as to interleave single numbers.
        return ops.transpose(ops.stack(inputs), (1, 2, 3, 0))


@keras.saving.register_keras_serializable(package="tfcomp")
class NarrowConvolution(keras.layers.Conv2DTranspose):
    """A linear transposed convolution to very few channels.

    Its bias is added to whole rows of an image: TensorFlow adds one number
    for each channel at a time, which costs as much as the convolution.
    """

    def call(self, inputs: KerasTensor) -> KerasTensor:
        drawn = ops.conv_transpose(
            inputs, self.kernel, self.strides, self.padding
        )  # [n, H, W, C]
        rows, columns, channels = drawn.shape[1:]
        lines = ops.reshape(drawn, (-1, rows, columns * channels))
        lines = lines + ops.tile(self.bias, (columns,))
        return ops.reshape(lines, (-1, rows, columns, channels))


def make_convolution(
    filters: int, name: str, **kwargs: Any
) -> NarrowConvolution:
    """Returns a convolution with the published start."""
    # So few channels depend on it: from the default of
    # Keras, OOD errors are ten times larger on some seeds.
    bound = (filters * KERNEL_SIZE**2) ** -0.5
    return NarrowConvolution(
        filters,
        KERNEL_SIZE,
        padding="same",
        kernel_initializer=keras.initializers.RandomUniform(-bound, bound),
        bias_initializer=keras.initializers.RandomUniform(-bound, bound),
        name=name,
        **kwargs,
    )


def make_prelu(index: int) -> keras.layers.PReLU:
    """Returns a PReLU of one slope for each channel."""
    return keras.layers.PReLU(
        alpha_initializer=keras.initializers.Constant(PRELU_START),
        shared_axes=[1, 2, 3],
        name=f"prelu_{index}",
    )
