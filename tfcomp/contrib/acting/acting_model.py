"""Trains the candidates of the acting decoder (see `tfcomp.contrib.acting`).

After `HALVING` of the steps, a quarter of them goes on, and one is kept: the
lowest training error plus `--channel_price` for each pose term that a factor
uses. Early on, images are blurred, and the error is taken after the best factor
of brightness, else candidates end blank. While `SHRINKING`, each step shrinks
the pose terms of a factor towards their mean (the proximal step of a group
penalty). The remaining terms are then trained without it.
"""

from typing import NamedTuple

import keras
import tensorflow as tf

from tfcomp.contrib.acting import canvas
from tfcomp.contrib.acting.transforms import FactorTransforms

BLUR = 2.5 / 16  # first width, in sides of the image
SHARP = 0.35  # share of training after which nothing is blurred
HALVING = 0.45  # share after which a quarter of the candidates goes on
BRIGHT = 0.5  # share in which the error is after the best brightness
SHRINKING = (0.2, 0.4, 0.75)  # shares: from, in full, to
MEMORY = 0.98  # of the running training error


class Plan(NamedTuple):
    """State of a training; a tuple, so that Keras does not track or save it.

    Attributes:
        steps: The number of steps.
        shrink: How strongly pose terms shrink.
        price: The price of a pose term in use.
        acts: The layer of each object, from front to back.
        codes: The model from factors to the units of each object.
        draw: The layer that renders objects.
    """

    steps: int
    shrink: float
    price: float
    acts: tuple[FactorTransforms, ...]
    codes: keras.Model
    draw: canvas.Draw


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
        """
        batch = keras.utils.unpack_x_y_sample_weight(data)
        factors, images, _ = batch
        plan = self._plan
        step = tf.cast(self.optimizer.iterations, tf.float32)
        done = step / float(plan.steps)
        is_early = done < HALVING

        # Early on, images are blurred, and subpixels would change nothing.
        state = plan.acts[0]
        candidates = tf.range(state.candidates)
        left = tf.cast(state.left, tf.int32)
        errors, gradients = tf.cond(
            is_early,
            lambda: self._differentiate(
                candidates,
                factors,
                images,
                done,
                1,
            ),
            lambda: self._differentiate(
                left,
                factors,
                images,
                done,
                None,
            ),
        )
        self.optimizer.apply(gradients, self.trainable_variables)
        self._shrink(done)

        error = self._choose(errors, is_early)
        self._loss_tracker.update_state(error)
        return self.get_metrics_result()

    def _shrink(self, done: tf.Tensor) -> None:
        """Shrinks pose terms at a share of the training."""
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
        """Returns errors [R], old ones for pruned candidates, and gradients."""
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
        """Updates running errors [R]; returns the chosen candidate's one."""
        acts = self._plan.acts
        state = acts[0]
        before = tf.convert_to_tensor(state.errors)
        change = errors - before
        running = before + (1 - MEMORY) * change

        counts = [layer.count_terms() for layer in acts]
        used = tf.add_n(counts)
        length = running + self._plan.price * used
        left = tf.cast(state.left, tf.int32)
        best = tf.math.top_k(-length, left.shape[0])
        left = tf.where(is_early, best.indices, left)
        left_lengths = tf.gather(length, left)
        shortest = tf.argmin(left_lengths)
        candidate = tf.gather(left, shortest)

        state.errors.assign(running)
        left_numbers = tf.cast(left, tf.float32)
        state.left.assign(left_numbers)
        for layer in acts:
            number = tf.cast(candidate, tf.float32)
            layer.chosen.assign(number)
        return tf.gather(running, candidate)

    def _measure_errors(
        self,
        candidates: tf.Tensor,
        factors: tf.Tensor,
        truth: tf.Tensor,
        done: tf.Tensor,
        subpixels: int | None,
    ) -> tf.Tensor:
        """Returns relative errors of candidates [R], means over the batch.

        Args:
            candidates: Numbers of candidates, [R].
            factors: Factors [n, F].
            truth: Images [n, H, W, C].
            done: The share of training that is over.
            subpixels: Samples along a side of a pixel; None takes the layer's.
        """
        plan = self._plan
        codes = plan.codes(factors)
        codes = keras.tree.flatten(codes)
        coded_acts = zip(plan.acts, codes, strict=True)
        poses = []
        for layer, code in coded_acts:
            pose = layer.act(code, candidates)
            poses.append(pose)
        objects = tf.stack(poses, axis=2)  # [R, n, G, D]
        depths = objects.shape[2:]
        flat = tf.reshape(objects, (-1, *depths))
        images = plan.draw.call(flat, subpixels)

        rows, columns, channels = truth.shape[1:]
        side = min(rows, columns)
        blurred = 1 - done / SHARP
        width = BLUR * side * blurred
        background = plan.draw.background
        background = tf.constant(background, tf.float32)
        contrast = images - background
        images = canvas.blur(contrast, width)
        true_contrast = truth - background
        truth = canvas.blur(true_contrast, width)

        pixels = rows * columns * channels
        sizes = tf.shape(objects)
        count, batch = tf.unstack(sizes[:2])
        stack_shape = (count, batch, pixels)
        images = tf.reshape(images, stack_shape)
        truth = tf.reshape(truth, (-1, pixels))

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
        best = match / (power + 1e-3)
        is_corrected = done < BRIGHT
        brightness = tf.where(is_corrected, best, 1.0)
        images = images * brightness

        difference = images - truth
        squares = difference**2
        error = tf.reduce_sum(squares, axis=-1)
        true_squares = truth**2
        blank = tf.reduce_sum(true_squares, axis=-1)
        ratio = error / (blank + 1e-3)
        return tf.reduce_mean(ratio, axis=1)
