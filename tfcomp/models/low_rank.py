"""Forced rendering: matrices in pixel space, combined by convolutions.

`low_rank` is the network of section 4.1 and appendix C of the paper;
`hard_rendering` is ours.
"""

from collections.abc import Mapping, Sequence

import keras
from keras import ops

from tfcomp.config.model_config import ModelConfig
from tfcomp.config.run_config import RunConfig
from tfcomp.datasets import Dataset
from tfcomp.models.axis_embedding import AxisEmbedding
from tfcomp.models.encodings import make_encoding
from tfcomp.models.encodings.scalar_codes import FactorIndex
from tfcomp.models.low_rank_embedding import LowRankEmbedding
from tfcomp.models.model_rules import parse_axes
from tfcomp.models.regularizers import EntropyRegularizer, VarianceRegularizer
from tfcomp.models.value_embedding import ValueEmbedding

PRELU_START = 0.25
KERNEL_SIZE = 3


def build_low_rank(config: RunConfig, dataset: Dataset) -> keras.Model:
    """Two matrices in pixel space, combined by a few convolutions.

    Each factor's matrix is a channel of `stage_0`; `--depth` times a PReLU
    and a 3 x 3 transposed convolution follow (`stage_1`, ...), and one more
    makes the image. There are as many channels as factors. At grid 32, rank
    32 and depth 2 there are 133,218 weights.
    """
    return _build(config, dataset, {}, len(dataset.space))


def build_hard_rendering(config: RunConfig, dataset: Dataset) -> keras.Model:
    """A profile along an axis of the image for every value of a factor.

    As `build_low_rank`, with `--width` channels in the hidden layers. A
    factor without an axis has low-rank matrices, see `--axes`.
    """
    axes = parse_axes(config.model.axes, dataset.space)
    return _build(config, dataset, axes, config.model.width)


def _build(
    config: RunConfig,
    dataset: Dataset,
    axes: Mapping[str, Sequence[str]],
    channels: int,
) -> keras.Model:
    space, depth = dataset.space, config.model.depth
    if config.model.encoding == "one_hot":
        # A one-hot code times all matrices selects one of them; looking it
        # up by its index is the same at a fraction of the cost.
        encoding, inputs = FactorIndex(space, name="code"), "index"
    else:
        encoding, inputs = make_encoding(config, space), "code"
    factors = keras.Input((len(space),), dtype="float32", name="factors")
    parts = encoding.split(encoding(factors))
    images = []
    for factor, part in zip(space, parts, strict=True):
        known = (factor.size, dataset.image_shape[:2])
        named = {"inputs": inputs, "name": f"embedding_{factor.name}"}
        if found := axes.get(factor.name):
            weight = config.model.axis_weight
            layer = AxisEmbedding(*known, found, weight, **named)
        else:
            layer = _make_low_rank(config.model, *known, **named)
        images.append(layer(part))
    hidden = Stack(name="stage_0")(images)  # [n, rows, columns, F]
    for index in range(1, depth + 1):
        convolve = _make_convolution(channels, f"stage_{index}")
        hidden = convolve(_make_prelu(index)(hidden))
    colors = dataset.image_shape[2]
    draw = _make_convolution(colors, "image", dtype="float32")
    image = draw(_make_prelu(depth + 1)(hidden))
    return keras.Model(factors, image, name=config.model.model)


def list_embeddings(model: keras.Model) -> dict[str, ValueEmbedding]:
    """The layers in which values own images, by the name of their factor."""
    prefix = "embedding_"
    return {
        layer.name.removeprefix(prefix): layer
        for layer in model.layers
        if isinstance(layer, ValueEmbedding)
    }


@keras.saving.register_keras_serializable(package="tfcomp")
class Stack(keras.layers.Layer):
    """Stacks images [n, H, W] as the channels of one, [n, H, W, C]."""

    def call(self, inputs: list) -> keras.KerasTensor:
        # Twice as fast as to interleave single numbers.
        return ops.transpose(ops.stack(inputs), (1, 2, 3, 0))

    def compute_output_shape(self, input_shape: list) -> tuple:
        return (*input_shape[0], len(input_shape))


@keras.saving.register_keras_serializable(package="tfcomp")
class NarrowConvolution(keras.layers.Conv2DTranspose):
    """A linear transposed convolution to very few channels.

    Its bias is added to whole rows of an image: TensorFlow adds one number
    for each channel at a time, which costs as much as the convolution.
    """

    def call(self, inputs: keras.KerasTensor) -> keras.KerasTensor:
        drawn = ops.conv_transpose(
            inputs, self.kernel, self.strides, self.padding
        )  # [n, H, W, C]
        rows, columns, channels = drawn.shape[1:]
        lines = ops.reshape(drawn, (-1, rows, columns * channels))
        lines = lines + ops.tile(self.bias, (columns,))
        return ops.reshape(lines, (-1, rows, columns, channels))


def _make_low_rank(
    model: ModelConfig, num_values: int, size: tuple[int, int], **kwargs
) -> LowRankEmbedding:
    reduction = model.penalty_reduction
    entropy = variance = None
    if model.entropy_weight:
        entropy = EntropyRegularizer(model.entropy_weight, reduction)
    if model.variance_weight:
        variance = VarianceRegularizer(
            model.variance_weight, model.penalty_basis, reduction
        )
    return LowRankEmbedding(
        num_values,
        size,
        model.rank,
        orthogonal=model.orthogonal,
        coefficient_regularizer=entropy,
        left_regularizer=variance,
        right_regularizer=variance,
        **kwargs,
    )


def _make_convolution(filters: int, name: str, **kwargs) -> NarrowConvolution:
    # The published start. So few channels depend on it: from the default of
    # Keras, OOD errors are ten times larger on some seeds.
    bound = (filters * KERNEL_SIZE**2) ** -0.5

    def uniform() -> keras.initializers.Initializer:
        return keras.initializers.RandomUniform(-bound, bound)

    return NarrowConvolution(
        filters,
        KERNEL_SIZE,
        padding="same",
        kernel_initializer=uniform(),
        bias_initializer=uniform(),
        name=name,
        **kwargs,
    )


def _make_prelu(index: int) -> keras.layers.PReLU:
    return keras.layers.PReLU(
        alpha_initializer=keras.initializers.Constant(PRELU_START),
        shared_axes=[1, 2, 3],
        name=f"prelu_{index}",
    )
