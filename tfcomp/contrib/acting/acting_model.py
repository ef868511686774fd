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
import numpy as np
import tensorflow as tf

from tfcomp.contrib.acting import canvas
from tfcomp.contrib.acting.transforms import FactorTransforms

BLUR = 2.5 / 16  # first width, in sides of the image
SHARP = 0.35  # share of training after which nothing is blurred
HALVING = 0.45  # share after which a quarter of the candidates goes on
BRIGHT = 0.5  # share in which the error is after the best brightness
SHRINKING = (0.2, 0.4, 0.75)  # shares: from, in full, to
MEMORY = 0.98  # of the running training error


def list_transforms(model: keras.Model) -> tuple[FactorTransforms, ...]:
    """Returns the layer of each object, from front to back."""
    return tuple(x for x in model.layers if isinstance(x, FactorTransforms))


class Plan(NamedTuple):
    """State of a training; a tuple, so that Keras does not track or save it."""

    steps: int
    shrink: float
    price: float
    acts: tuple[FactorTransforms, ...]
    codes: keras.Model
    draw: canvas.Draw


@keras.saving.register_keras_serializable(package="tfcomp")
class ActingModel(keras.Model):
    """A functional model that trains its candidates side by side."""

    def plan(self, steps: int, shrink: float, price: float) -> None:
        """Sets the number of steps and the weights of pose terms."""
        acts = list_transforms(self)
        codes = keras.Model(self.inputs[0], [layer.input for layer in acts])
        draw = self.get_layer("image")
        self._plan = Plan(steps, shrink, price, acts, codes, draw)

    def train_step(self, data: tuple) -> dict[str, tf.Tensor]:
        """Takes a step of Adam, then one of shrinking."""
        factors, images, _ = keras.utils.unpack_x_y_sample_weight(data)
        plan = self._plan
        step = tf.cast(self.optimizer.iterations, tf.float32)
        done = step / float(plan.steps)
        is_early = done < HALVING

        # Early on, images are blurred, and subpixels would change nothing.
        every = tf.range(plan.acts[0].candidates)
        left = tf.cast(plan.acts[0].left, tf.int32)
        errors, gradients = tf.cond(
            is_early,
            lambda: self._differentiate(every, factors, images, done, 1),
            lambda: self._differentiate(left, factors, images, done),
        )
        self.optimizer.apply(gradients, self.trainable_variables)

        start, full, end = SHRINKING
        rate = tf.convert_to_tensor(self.optimizer.learning_rate)
        rising = tf.clip_by_value((done - start) / (full - start), 0.0, 1.0)
        is_over = done >= end
        amount = tf.where(is_over, 0.0, rate * plan.shrink * rising)
        for layer in plan.acts:
            layer.shrink(amount, is_over)

        self._loss_tracker.update_state(self._choose(errors, is_early))
        return self.get_metrics_result()

    def _differentiate(
        self,
        candidates: tf.Tensor,
        factors: tf.Tensor,
        truth: tf.Tensor,
        done: tf.Tensor,
        subpixels: int | None = None,
    ) -> tuple[tf.Tensor, list[tf.Tensor]]:
        """Returns errors [R], old ones for pruned candidates, and gradients."""
        with tf.GradientTape() as tape:
            errors = self._measure_errors(
                candidates, factors, truth, done, subpixels
            )
        gradients = tape.gradient(
            errors, self.trainable_variables, unconnected_gradients="zero"
        )

        before = tf.convert_to_tensor(self._plan.acts[0].errors)
        errors = tf.tensor_scatter_nd_update(
            before, candidates[:, None], errors
        )
        return errors, [tf.convert_to_tensor(g) for g in gradients]

    def _choose(self, errors: tf.Tensor, is_early: tf.Tensor) -> tf.Tensor:
        """Updates running errors [R]; returns the chosen candidate's one."""
        acts = self._plan.acts
        state = acts[0]
        before = tf.convert_to_tensor(state.errors)
        running = before + (1 - MEMORY) * (errors - before)

        used = tf.add_n([layer.count_terms() for layer in acts])
        length = running + self._plan.price * used
        best = tf.math.top_k(-length, state.left.shape[0]).indices
        left = tf.where(is_early, best, tf.cast(state.left, tf.int32))
        chosen = tf.gather(left, tf.argmin(tf.gather(length, left)))

        state.errors.assign(running)
        state.left.assign(tf.cast(left, tf.float32))
        for layer in acts:
            layer.chosen.assign(tf.cast(chosen, tf.float32))
        return tf.gather(running, chosen)

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
        codes = keras.tree.flatten(plan.codes(factors))
        acts = [
            layer.act(code, candidates)
            for layer, code in zip(plan.acts, codes, strict=True)
        ]
        objects = tf.stack(acts, axis=2)  # [R, n, G, D]
        flat = tf.reshape(objects, (-1, *objects.shape[2:]))
        drawn = plan.draw.call(flat, subpixels)

        width = BLUR * min(truth.shape[1:3]) * (1 - done / SHARP)
        background = tf.constant(plan.draw.background, tf.float32)
        pixels = int(np.prod(truth.shape[1:]))
        drawn = canvas.blur(drawn - background, width)
        truth = canvas.blur(truth - background, width)
        count, batch = tf.unstack(tf.shape(objects)[:2])
        drawn = tf.reshape(drawn, (count, batch, pixels))
        truth = tf.reshape(truth, (-1, pixels))

        power = tf.reduce_sum(drawn**2, axis=-1, keepdims=True)
        best = tf.reduce_sum(drawn * truth, axis=-1, keepdims=True)
        drawn = drawn * tf.where(done < BRIGHT, best / (power + 1e-3), 1.0)

        error = tf.reduce_sum((drawn - truth) ** 2, axis=-1)
        blank = tf.reduce_sum(truth**2, axis=-1) + 1e-3
        return tf.reduce_mean(error / blank, axis=1)
