"""AdamW that updates every variable by one kernel."""

from __future__ import annotations

import keras
import tensorflow as tf
from keras import ops


@keras.saving.register_keras_serializable(package="tfcomp")
class FusedAdamW(keras.optimizers.AdamW):
    """`keras.optimizers.AdamW` with fewer passes over memory.

    Keras updates a variable by a dozen operations, each of which passes over
    it; TensorFlow's kernel for Adam passes once. Variables have the same names,
    so that checkpoints fit both, and numbers agree up to rounding. There is
    one exception: of a row that a batch looks up twice, without a penalty,
    Keras sums the squares of two gradients; this class squares their sum, as
    AdamW is defined.
    """

    def apply(
        self, grads: list, trainable_variables: list | None = None
    ) -> None:
        dense = [None if g is None else tf.convert_to_tensor(g) for g in grads]
        super().apply(dense, trainable_variables)

    def _backend_update_step(
        self, grads: list, trainable_variables: list, learning_rate: tf.Tensor
    ) -> None:
        # These scalars are the same for all variables.
        step = ops.cast(self.iterations + 1, "float32")
        powers = [ops.power(beta, step) for beta in (self.beta_1, self.beta_2)]
        super()._backend_update_step(
            grads, trainable_variables, (learning_rate, *powers)
        )

    def _apply_weight_decay(self, variables: list) -> None:
        """Does nothing: `update_step` decays the variable that it updates."""

    def update_step(
        self,
        gradient: tf.Tensor,
        variable: tf.Variable,
        learning_rate: tuple[tf.Tensor, tf.Tensor, tf.Tensor],
    ) -> None:
        rate, power_1, power_2 = learning_rate
        if self._use_weight_decay(variable):
            # Not `assign_sub`, which copies a variable that has been read.
            rest = variable - variable * (self.weight_decay * rate)
            variable.assign(rest)
        index = self._get_variable_index(variable)
        tf.raw_ops.ResourceApplyAdam(
            var=variable.handle,
            m=self._momentums[index].value.handle,
            v=self._velocities[index].value.handle,
            beta1_power=power_1,
            beta2_power=power_2,
            lr=rate,
            beta1=self.beta_1,
            beta2=self.beta_2,
            epsilon=self.epsilon,
            grad=gradient,
        )
