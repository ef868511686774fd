"""Trains the candidates of the acting decoder (see `tfcomp.contrib.acting`).

Candidates are R decoders that differ in their initial poses and are trained
side by side. Their cost is the training error plus `--channel_price` for each
pose term that a factor uses. From the share `HALVING` of the steps on, only the
quarter with the lowest costs is trained, and the best one is the result.

Early on, images are blurred, and the error is measured after each output is
scaled to the brightness that fits best; without this, candidates end blank.
While `SHRINKING`, each step shrinks the pose terms of a factor towards their
mean (the proximal step of a group penalty). Terms that are still in use are
then trained without it.
"""

import functools
from typing import NamedTuple

import keras
import tensorflow as tf

from tfcomp.contrib.acting import acting_layers
from tfcomp.contrib.acting.acting_layers import FactorTransforms

# The width of the first blur, as a share of the side of an image.
BLUR = 2.5 / 16
# Shares of the steps of a training:
SHARP = 0.35  # after which nothing is blurred
HALVING = 0.45  # after which a quarter of the candidates goes on
BRIGHT = 0.5  # after which the brightness of an output counts
SHRINKING = (0.2, 0.4, 0.75)  # where shrinking begins, is in full, and ends
# The weight of earlier steps in the running training error.
MEMORY = 0.98
# Squared length that is added to divisors, as blank images have the length 0.
EPSILON = 1e-3


class Plan(NamedTuple):
    """State of a training; a tuple, so that Keras does not track or save it.

    Attributes:
        steps: The number of steps.
        shrink: How strongly pose terms shrink.
        price: What a pose term in use adds to the cost of a candidate.
        acts: The layer of each object, from front to back. The first one also
            has the state of all candidates: their running errors, `errors` [R],
            and the numbers of the candidates that are trained to the end,
            `left`, and of the best one, `chosen`.
        codes: The model from factors to the units of each object.
        draw: The layer that renders objects.
    """

    steps: int
    shrink: float
    price: float
    acts: tuple[FactorTransforms, ...]
    codes: keras.Model
    draw: acting_layers.Draw


@keras.saving.register_keras_serializable(package="tfcomp")
class ActingModel(keras.Model):
    """A functional model that trains its candidates side by side."""

    def plan(
        self,
        steps: int,
        shrink: float,
        price: float,
    ) -> None:
        """Sets the number of steps and the weights of pose terms.

        Args:
            steps: Steps of the training.
            shrink: `--shrink`.
            price: `--channel_price`.
        """
        acts = []
        for layer in self.layers:
            if isinstance(layer, FactorTransforms):
                acts.append(layer)
        units = [layer.input for layer in acts]
        factors = self.inputs[0]
        codes = keras.Model(factors, units)
        self._plan = Plan(
            steps=steps,
            shrink=shrink,
            price=price,
            acts=tuple(acts),
            codes=codes,
            draw=self.get_layer("image"),
        )

    def train_step(self, data: tuple) -> dict[str, tf.Tensor]:
        """Takes a step of Adam, then one of shrinking.

        Args:
            data: A batch: factors [n, F] and images [n, H, W, C].

        Returns:
            The logs of Keras, with the running error of the best candidate as
            the loss.
        """
        batch = keras.utils.unpack_x_y_sample_weight(data)
        factors, images, _ = batch
        plan = self._plan
        step = tf.cast(self.optimizer.iterations, tf.float32)
        done = step / float(plan.steps)  # share of the training, 0 to 1
        is_early = done < HALVING

        # Early on, all candidates are trained with one sample for each pixel:
        # images are blurred, and more samples would change nothing.
        state = plan.acts[0]
        candidates = tf.range(state.candidates)
        left = tf.cast(state.left, tf.int32)
        differentiate = functools.partial(
            self._differentiate,
            factors=factors,
            truth=images,
            done=done,
        )
        errors, gradients = tf.cond(
            is_early,
            lambda: differentiate(candidates, subpixels=1),
            lambda: differentiate(left, subpixels=None),
        )
        self.optimizer.apply(gradients, self.trainable_variables)
        self._shrink(done)

        error = self._choose(errors, is_early)
        self._loss_tracker.update_state(error)
        return self.get_metrics_result()

    def _shrink(self, done: tf.Tensor) -> None:
        """Shrinks the pose terms of all candidates by one proximal step.

        Args:
            done: The share of training that is over.
        """
        start, full, end = SHRINKING
        learning_rate = self.optimizer.learning_rate
        rate = tf.convert_to_tensor(learning_rate)
        rising = (done - start) / (full - start)
        rising = tf.clip_by_value(rising, 0.0, 1.0)
        amount = rate * self._plan.shrink * rising
        is_over = done >= end
        amount = tf.where(is_over, 0.0, amount)
        for layer in self._plan.acts:
            layer.shrink(amount, is_over)

    def _differentiate(
        self,
        candidates: tf.Tensor,
        factors: tf.Tensor,
        truth: tf.Tensor,
        done: tf.Tensor,
        subpixels: int | None,
    ) -> tuple[tf.Tensor, list[tf.Tensor]]:
        """Computes errors of candidates, and their gradients.

        Args:
            candidates: Numbers of the candidates that are trained, [r].
            factors: Factors, [n, F].
            truth: Images, [n, H, W, C].
            done: The share of training that is over.
            subpixels: As for `_measure_errors`.

        Returns:
            Errors of all candidates, [R], which are the running errors where a
            candidate is not trained; and a gradient for each trainable
            variable.
        """
        with tf.GradientTape() as tape:
            errors = self._measure_errors(
                candidates,
                factors,
                truth,
                done,
                subpixels,
            )
        gradients = tape.gradient(
            errors,
            self.trainable_variables,
            unconnected_gradients="zero",
        )

        state = self._plan.acts[0]
        errors = tf.tensor_scatter_nd_update(
            tf.convert_to_tensor(state.errors),
            candidates[:, None],
            errors,
        )
        tensors = []
        for gradient in gradients:
            tensors.append(tf.convert_to_tensor(gradient))
        return errors, tensors

    def _choose(self, errors: tf.Tensor, is_early: tf.Tensor) -> tf.Tensor:
        """Updates the running errors, and finds the best candidates by cost.

        Args:
            errors: Errors of all candidates in this step, [R].
            is_early: Whether all candidates are still trained; later, the best
                one is found among those that are left.

        Returns:
            The running error of the best candidate.
        """
        acts = self._plan.acts
        state = acts[0]
        earlier = tf.convert_to_tensor(state.errors)
        change = errors - earlier
        running = earlier + (1 - MEMORY) * change

        counts = [layer.count_terms() for layer in acts]
        num_terms = tf.add_n(counts)  # [R]
        costs = running + self._plan.price * num_terms
        left = tf.cast(state.left, tf.int32)
        cheapest = tf.math.top_k(-costs, left.shape[0])
        left = tf.where(is_early, cheapest.indices, left)
        left_costs = tf.gather(costs, left)
        place = tf.argmin(left_costs)
        best = tf.gather(left, place)

        state.errors.assign(running)
        # Variables of layers are floats.
        left_numbers = tf.cast(left, tf.float32)
        state.left.assign(left_numbers)
        for layer in acts:
            number = tf.cast(best, tf.float32)
            layer.chosen.assign(number)
        return tf.gather(running, best)

    def _measure_errors(
        self,
        candidates: tf.Tensor,
        factors: tf.Tensor,
        truth: tf.Tensor,
        done: tf.Tensor,
        subpixels: int | None,
    ) -> tf.Tensor:
        """Computes the relative MSE of candidates, means over the batch.

        A blank image has the error 1.

        Args:
            candidates: Numbers of candidates, [R].
            factors: Factors, [n, F].
            truth: Images, [n, H, W, C].
            done: The share of training that is over.
            subpixels: Samples along a side of a pixel; None takes the layer's.

        Returns:
            The errors, [R].
        """
        plan = self._plan
        objects = self._pose_objects(candidates, factors)  # [R, n, G, D]
        object_shape = objects.shape[2:]
        flat_shape = (-1, *object_shape)
        flat = tf.reshape(objects, flat_shape)
        images = plan.draw.call(flat, subpixels)  # [R * n, H, W, C]

        # The blur narrows until `SHARP`; a negative width does not blur.
        rows, columns, channels = truth.shape[1:]
        side = min(rows, columns)
        blurred = 1 - done / SHARP
        width = BLUR * side * blurred
        background = plan.draw.background
        background = tf.constant(background, tf.float32)
        contrast = images - background
        images = acting_layers.blur(contrast, width)
        true_contrast = truth - background
        truth = acting_layers.blur(true_contrast, width)

        pixels = rows * columns * channels
        sizes = tf.shape(objects)
        count, batch = tf.unstack(sizes[:2])
        stack_shape = (count, batch, pixels)
        images = tf.reshape(images, stack_shape)
        truth_shape = (-1, pixels)
        truth = tf.reshape(truth, truth_shape)
        is_corrected = done < BRIGHT
        images = _correct_brightness(images, truth, is_corrected)
        return _compare_images(images, truth)

    def _pose_objects(
        self, candidates: tf.Tensor, factors: tf.Tensor
    ) -> tf.Tensor:
        """Computes what candidates draw, for each of G objects.

        Args:
            candidates: Numbers of candidates, [R].
            factors: Factors, [n, F].

        Returns:
            Pose, color and template of the objects, [R, n, G, D].
        """
        plan = self._plan
        codes = plan.codes(factors)
        codes = keras.tree.flatten(codes)
        poses = []
        for layer, code in zip(plan.acts, codes, strict=True):
            pose = layer.act(code, candidates)
            poses.append(pose)
        return tf.stack(poses, axis=2)


def _correct_brightness(
    images: tf.Tensor, truth: tf.Tensor, is_corrected: tf.Tensor
) -> tf.Tensor:
    """Scales each image to the brightness that fits its true image best.

    Args:
        images: Contrasts to the background, [R, n, pixels].
        truth: Contrasts of the true images, [n, pixels].
        is_corrected: Whether images are scaled at all.

    Returns:
        The images, [R, n, pixels].
    """
    power = tf.reduce_sum(
        images**2,
        axis=-1,
        keepdims=True,
    )
    match = tf.reduce_sum(
        images * truth,
        axis=-1,
        keepdims=True,
    )
    best = match / (power + EPSILON)
    brightness = tf.where(is_corrected, best, 1.0)
    return images * brightness


def _compare_images(images: tf.Tensor, truth: tf.Tensor) -> tf.Tensor:
    """Computes errors relative to blank images, means over the batch, [R].

    Args:
        images: Contrasts to the background, [R, n, pixels].
        truth: Contrasts of the true images, [n, pixels].
    """
    difference = images - truth
    squares = difference**2
    error = tf.reduce_sum(squares, axis=-1)  # [R, n]
    true_squares = truth**2
    blank_error = tf.reduce_sum(true_squares, axis=-1)  # [n]
    ratio = error / (blank_error + EPSILON)
    return tf.reduce_mean(ratio, axis=1)
