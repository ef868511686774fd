"""Layers that draw pixels.

Row r and column c of a pixel are known as coordinates x_p, y_p in [-1, 1], or
as sinusoids:

    PE(p) = [sin w_k r, cos w_k r, sin w_k c, cos w_k c],  w_k = 10000^(-k / K)

with k = 0 .. K - 1 and 4 K features (Vaswani et al. 2017, in two dimensions).
"""

import functools
from typing import Any

import keras
import numpy as np
from keras import KerasTensor, ops

from tfcomp.models.registry import HEADS

WAVELENGTH = 10000.0
PRELU_START = 0.25
KERNEL_SIZE = 3


def make_coordinates(rows: int, columns: int) -> np.ndarray:
    """Makes x_p and y_p of every pixel.

    Args:
        rows: Rows of the image.
        columns: Columns of the image.

    Returns:
        Coordinates, float32 [rows, columns, 2].
    """
    x_axis = np.linspace(-1.0, 1.0, columns)
    y_axis = np.linspace(-1.0, 1.0, rows)
    grids = np.meshgrid(x_axis, y_axis)  # of x_p and of y_p
    coordinates = np.stack(grids, axis=-1)
    return coordinates.astype(np.float32)


def make_sinusoids(rows: int, columns: int, features: int) -> np.ndarray:
    """Makes PE(p) of every pixel.

    Args:
        rows: Rows of the image.
        columns: Columns of the image.
        features: Numbers for each pixel, a multiple of 4.

    Returns:
        Sinusoids, float32 [rows, columns, features].
    """
    count = features // 4
    exponents = -np.arange(count) / count
    frequencies = WAVELENGTH**exponents  # [K]

    waves = []
    indices = np.indices((rows, columns))
    for index in indices:
        places = index[..., np.newaxis]
        phases = places * frequencies
        waves.append(np.sin(phases))
        waves.append(np.cos(phases))
    sinusoids = np.concatenate(waves, axis=-1)
    return sinusoids.astype(np.float32)


@keras.saving.register_keras_serializable(package="tfcomp")
class PixelSum(keras.layers.Layer):
    """Adds the position of every pixel to a vector: z + PE(p).

    Args:
        image_size: Rows and columns of the image.

    Input shape:
        `(batch, k)`, with k a multiple of 4.

    Output shape:
        `(batch, rows, columns, k)`.

    Example:
        >>> tuple(PixelSum((2, 3))(np.zeros((1, 4))).shape)
        (1, 2, 3, 4)
    """

    def __init__(self, image_size: tuple[int, int], **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.image_size = image_size

    def call(self, inputs: KerasTensor) -> KerasTensor:
        """Adds positions to vectors.

        Args:
            inputs: Vectors, [batch, k].
        """
        rows, columns = self.image_size
        features = inputs.shape[-1]
        table = make_sinusoids(rows, columns, features)
        table = ops.cast(table, inputs.dtype)
        vectors = inputs[:, None, None]
        return vectors + table


@keras.saving.register_keras_serializable(package="tfcomp")
class PixelDense(keras.layers.Layer):
    """A linear layer of a vector and the position of every pixel.

        y_p = W (z + PE(p)) + b           of sinusoids
        y_p = W [z, x_p, y_p] + b         of coordinates

    It is computed as one product for each image and one for each pixel.

    Args:
        image_size: Rows and columns of the image.
        units: The number of outputs for each pixel.
        positions: `"sinusoids"` or `"coordinates"`.

    Input shape:
        `(batch, k)`, with k a multiple of 4 for sinusoids.

    Output shape:
        `(batch, rows, columns, units)`.

    Example:
        >>> layer = PixelDense((2, 3), units=5, positions="coordinates")
        >>> tuple(layer(np.zeros((1, 4))).shape)
        (1, 2, 3, 5)
    """

    def __init__(
        self,
        image_size: tuple[int, int],
        units: int,
        positions: str,
        **kwargs,
    ) -> None:
        super().__init__(**kwargs)
        self.image_size = image_size
        self.units = units
        self.positions = positions

    def build(self, input_shape: tuple) -> None:
        """Adds the kernel and the bias.

        Args:
            input_shape: Of the vectors, (batch, k).
        """
        rows, columns = self.image_size
        features = input_shape[-1]
        if self.positions == "coordinates":
            self._table = make_coordinates(rows, columns)
            features += self._table.shape[-1]
        else:
            self._table = make_sinusoids(rows, columns, features)

        self.kernel = self.add_weight(
            shape=(features, self.units),
            initializer="glorot_uniform",
            name="kernel",
        )
        self.bias = self.add_weight(
            shape=(self.units,),
            initializer="zeros",
            name="bias",
        )

    def call(self, inputs: KerasTensor) -> KerasTensor:
        """Maps a vector beside each position to units.

        Args:
            inputs: Vectors, [batch, k].
        """
        # The first rows of the kernel belong to the vector, the last ones to
        # the position; they are the same rows where both are summed.
        vector_size = inputs.shape[-1]
        position_size = self._table.shape[-1]
        vector_kernel = self.kernel[:vector_size]
        position_kernel = self.kernel[-position_size:]

        table = ops.cast(self._table, inputs.dtype)
        pixels = ops.matmul(table, position_kernel)
        pixels = pixels + self.bias  # [H, W, units]
        images = ops.matmul(inputs, vector_kernel)  # [n, units]
        images = images[:, None, None]
        return images + pixels


@keras.saving.register_keras_serializable(package="tfcomp")
class PixelTable(keras.layers.Layer):
    """The positions PE(p) of every pixel, whatever the input.

    Args:
        image_size: Rows and columns of the image.
        units: Numbers for each pixel, a multiple of 4.

    Input shape:
        Any: only its graph is used.

    Output shape:
        `(1, rows, columns, units)`.

    Example:
        >>> tuple(PixelTable((2, 3), units=4)(np.zeros((7, 1))).shape)
        (1, 2, 3, 4)
    """

    def __init__(
        self,
        image_size: tuple[int, int],
        units: int,
        **kwargs,
    ) -> None:
        super().__init__(**kwargs)
        self.image_size = image_size
        self.units = units

    def call(self, inputs: KerasTensor) -> KerasTensor:
        """Returns the table of positions.

        Args:
            inputs: Any tensor of the graph.
        """
        rows, columns = self.image_size
        table = make_sinusoids(rows, columns, self.units)
        images = table[None]
        return ops.cast(images, self.compute_dtype)


@keras.saving.register_keras_serializable(package="tfcomp")
class Modulate(keras.layers.Layer):
    """Scales and shifts channels (FiLM, Perez et al. 2018).

        y = relu((1 + gamma) h + beta)

    Input shape:
        A list of h, `(batch or 1, rows, columns, k)`, and of gamma and beta
        side by side, `(batch, 2 k)`.

    Output shape:
        `(batch, rows, columns, k)`.

    Example:
        >>> hidden, modulation = np.ones((1, 2, 3, 1)), np.array([[0.5, 1.0]])
        >>> image = Modulate()([hidden, modulation])
        >>> float(image[0, 0, 0, 0])
        2.5
    """

    def call(self, inputs: list) -> KerasTensor:
        """Scales and shifts the channels.

        Args:
            inputs: The list of h, and of gamma and beta.
        """
        hidden, modulation = inputs
        modulation = modulation[:, None, None]
        scale, shift = ops.split(
            modulation,
            indices_or_sections=2,
            axis=-1,
        )
        scaled = (1.0 + scale) * hidden
        return ops.relu(scaled + shift)


@keras.saving.register_keras_serializable(package="tfcomp")
class CrossAttention(keras.layers.Layer):
    """Every pixel attends to the tokens of an image (Brady et al. 2025).

        h_p = PE(p) + sum_heads sum_k A_pk V t_k,  A_pk = softmax_k PE(p) K t_k

    Args:
        image_size: Rows and columns of the image.
        weight: The weight of the interaction penalty
            mean_p sum_(i<j) A_pi A_pj, with A averaged over heads.

    Input shape:
        `(batch, K, k)`: K tokens of k numbers, k a multiple of 4.

    Output shape:
        `(batch, rows, columns, k)`.

    Example:
        >>> tuple(CrossAttention((2, 3))(np.zeros((1, 5, 4))).shape)
        (1, 2, 3, 4)
    """

    def __init__(
        self,
        image_size: tuple[int, int],
        weight: float = 0.0,
        **kwargs,
    ) -> None:
        super().__init__(**kwargs)
        self.image_size = image_size
        self.weight = weight

    def build(self, input_shape: tuple) -> None:
        """Adds the kernels of query, key, value and output.

        Args:
            input_shape: Of the tokens, (batch, K, k).
        """
        width = input_shape[-1]
        self.query = self._add_kernel("query", width)
        self.key = self._add_kernel("key", width)
        self.value = self._add_kernel("value", width)
        self.output_kernel = self._add_kernel("output", width)

    def _add_kernel(self, name: str, width: int) -> keras.Variable:
        head_width = width // HEADS
        return self.add_weight(
            shape=(HEADS, width, head_width),
            initializer="glorot_uniform",
            name=name,
        )

    def call(self, inputs: KerasTensor) -> KerasTensor:
        """Reads the tokens at every pixel.

        Args:
            inputs: Tokens, [batch, K, k].
        """
        rows, columns = self.image_size
        width = inputs.shape[-1]
        table = make_sinusoids(rows, columns, width)
        table = ops.cast(table, inputs.dtype)  # [H, W, k]

        keys = ops.einsum("njc,hcd->njhd", inputs, self.key)
        keys = ops.einsum("njhd,hcd->nhjc", keys, self.query)
        scores = ops.einsum("rsc,nhjc->nrshj", table, keys)
        # Attention of pixels to tokens, [n, H, W, heads, K].
        head_width = width // HEADS
        scale = head_width**-0.5
        scores = scores * scale
        attention = ops.softmax(scores)
        if self.weight:
            interaction = measure_interaction(attention)
            penalty = self.weight * interaction
            self.add_loss(penalty)

        values = ops.einsum("njc,hcd->njhd", inputs, self.value)
        values = ops.einsum("njhd,hcd->nhjc", values, self.output_kernel)
        attended = ops.einsum("nrshj,nhjc->nrsc", attention, values)
        return table + attended


def measure_interaction(attention: KerasTensor) -> KerasTensor:
    """Computes mean_p sum_(i<j) A_pi A_pj of attention [n, H, W, heads, K]."""
    attention = ops.cast(attention, "float32")
    shares = ops.mean(attention, axis=-2)  # [n, H, W, K]
    # Shares sum to 1: twice the products of pairs is 1 less the squares.
    squares = ops.square(shares)
    squares = ops.sum(squares, axis=-1)
    products = 1.0 - squares
    twice = ops.mean(products)
    return twice / 2.0


@keras.saving.register_keras_serializable(package="tfcomp")
class Composition(keras.layers.Layer):
    """Composes the images x_k of K groups to one.

        additive          sum_k x_k
        product           prod_k x_k
        low_rank_product  sum_r prod_k x_kr
        occlusion         s(m_1) x_1 + s(-m_1) (s(m_2) x_2 + s(-m_2) (... x_K))
        slots             sum_k softmax_k(m_k) x_k

    Args:
        method: A name of this list.
        channels: Channels C of the image.
        groups: The number K of images.

    Input shape:
        A list of K images, `(batch, rows, columns, R C)` with R terms of a sum
        of products (else R = 1), then of masks, `(batch, rows, columns, 1)`:
        K for slots, K - 1 for occlusion, else none.

    Output shape:
        `(batch, rows, columns, C)`.

    Example:
        >>> compose = Composition("product", channels=1, groups=2)
        >>> images = [np.full((1, 2, 3, 1), 2.0), np.full((1, 2, 3, 1), 3.0)]
        >>> float(compose(images)[0, 0, 0, 0])
        6.0
    """

    def __init__(
        self,
        method: str,
        channels: int,
        groups: int,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.method = method
        self.channels = channels
        self.groups = groups

    def call(self, inputs: list) -> KerasTensor:
        """Composes the images of groups.

        Args:
            inputs: The images of all groups, then masks.
        """
        parts = inputs[: self.groups]
        masks = inputs[self.groups :]
        if self.method == "occlusion":
            image = _occlude(parts, masks)
        elif self.method == "slots":
            image = _mix_slots(parts, masks)
        elif self.method == "additive":
            image = functools.reduce(ops.add, parts)
        else:
            image = functools.reduce(ops.multiply, parts)
        return self._sum_terms(image)

    def _sum_terms(self, image: KerasTensor) -> KerasTensor:
        """Sums the R terms of an image [n, rows, columns, R C]."""
        _, rows, columns, depth = image.shape
        if depth == self.channels:
            return image
        terms = depth // self.channels
        shape = (-1, rows, columns, terms, self.channels)
        images = ops.reshape(image, shape)
        return ops.sum(images, axis=-2)


def _occlude(parts: list, masks: list) -> KerasTensor:
    """Draws images over each other, from the last one to the first."""
    *front, image = parts
    layers = list(zip(front, masks, strict=True))
    for part, mask in reversed(layers):
        share = ops.sigmoid(mask)
        below = (1.0 - share) * image
        image = share * part + below
    return image


def _mix_slots(parts: list, masks: list) -> KerasTensor:
    """Averages images with the softmax of their masks as weights."""
    # A softmax of the stacked masks takes twice as long for copies.
    largest = functools.reduce(ops.maximum, masks)
    largest = ops.stop_gradient(largest)
    weights = []
    weighted = []
    for mask, part in zip(masks, parts, strict=True):
        difference = mask - largest
        weight = ops.exp(difference)
        weights.append(weight)
        weighted.append(weight * part)
    total = functools.reduce(ops.add, weights)
    image = functools.reduce(ops.add, weighted)
    return image / total


def convolve(
    hidden: KerasTensor,
    index: int,
    filters: int,
    **kwargs: Any,
) -> KerasTensor:
    """Applies a PReLU and a convolution, which start as published.

    Args:
        hidden: Channels, [n, rows, columns, C].
        index: Number of the PReLU in its name.
        filters: Channels of the result.
        **kwargs: More arguments of the convolution, such as its name.
    """
    # Initializers draw their seeds when they are made: keep this order.
    bound = (filters * KERNEL_SIZE**2) ** -0.5
    kernel_initializer = keras.initializers.RandomUniform(-bound, bound)
    bias_initializer = keras.initializers.RandomUniform(-bound, bound)
    layer = NarrowConvolution(
        filters,
        KERNEL_SIZE,
        padding="same",
        kernel_initializer=kernel_initializer,
        bias_initializer=bias_initializer,
        **kwargs,
    )
    alpha_initializer = keras.initializers.Constant(PRELU_START)
    prelu = keras.layers.PReLU(
        alpha_initializer=alpha_initializer,
        shared_axes=[1, 2, 3],
        name=f"prelu_{index}",
    )
    activations = prelu(hidden)
    return layer(activations)


@keras.saving.register_keras_serializable(package="tfcomp")
class Stack(keras.layers.Layer):
    """Stacks images as the channels of one.

    Input shape:
        A list of C images, `(batch, rows, columns)`.

    Output shape:
        `(batch, rows, columns, C)`.

    Example:
        >>> tuple(Stack()([np.zeros((1, 2, 3)), np.ones((1, 2, 3))]).shape)
        (1, 2, 3, 2)
    """

    def call(self, inputs: list) -> KerasTensor:
        """Stacks images as channels.

        Args:
            inputs: Images, [batch, rows, columns] each.
        """
        # Twice as fast as to interleave single numbers.
        images = ops.stack(inputs)  # [C, n, rows, columns]
        channels_last = (1, 2, 3, 0)
        return ops.transpose(images, channels_last)


@keras.saving.register_keras_serializable(package="tfcomp")
class NarrowConvolution(keras.layers.Conv2DTranspose):
    """A linear transposed convolution to very few channels.

    TensorFlow would add the bias to one number for each channel at a time.
    Arguments and shapes are as in `keras.layers.Conv2DTranspose`, without an
    activation. Do not use it for many channels, where Keras is as fast.

    Example:
        >>> layer = NarrowConvolution(2, kernel_size=3, padding="same")
        >>> tuple(layer(np.zeros((1, 4, 5, 3))).shape)
        (1, 4, 5, 2)
    """

    def call(self, inputs: KerasTensor) -> KerasTensor:
        """Convolves images, and adds the bias to whole lines.

        Args:
            inputs: Images, [batch, rows, columns, channels].
        """
        images = ops.conv_transpose(
            inputs,
            self.kernel,
            strides=self.strides,
            padding=self.padding,
        )
        _, rows, columns, channels = images.shape
        line = columns * channels
        line_shape = (-1, rows, line)
        lines = ops.reshape(images, line_shape)
        biases = ops.tile(self.bias, (columns,))
        lines = lines + biases
        image_shape = (-1, rows, columns, channels)
        return ops.reshape(lines, image_shape)
