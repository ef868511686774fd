"""Penalties that make rendered factors low in rank and smooth.

Section 4.1 and appendix C of the paper, equations 9 to 11. As regularizers of
weights they count once per step, whatever the batch and the replicas.
"""

import keras
from keras import KerasTensor, ops

# Rows whose largest coefficient is below it have no distribution: entropy 0.
_COEFFICIENT_FLOOR = 1e-30
# Length up to which unit vectors are not of unit length, as in
# `tfcomp.models.value_embedding.LowRankEmbedding`.
_LENGTH_FLOOR = 1e-6


class _Penalty(keras.regularizers.Regularizer):
    def __init__(self, weight: float, reduction: str = "sum") -> None:
        self.weight = float(weight)
        self.reduction = reduction

    def __call__(self, values: KerasTensor) -> KerasTensor:
        measured = self.measure(ops.convert_to_tensor(values))
        return self.weight * getattr(ops, self.reduction)(measured)

    def get_config(self) -> dict:
        return {"weight": self.weight, "reduction": self.reduction}


@keras.saving.register_keras_serializable(package="tfcomp")
class EntropyRegularizer(_Penalty):
    """Entropy of the squared coefficients of every value, in nats.

    For coefficients `[V, R]`, `p_ir = lambda_ir^2 / sum_s lambda_is^2` and the
    penalty of the value i is `-sum_r p_ir log p_ir`: 0 if one mode carries
    everything, log R if all R carry the same. A row of zeros counts as 0.

    The weight is `alpha` of equation 12, 0.1 in the paper's experiments. The
    reduction over values is a `"sum"`, as in the paper, or a `"mean"`.
    """

    def measure(self, values: KerasTensor) -> KerasTensor:
        # Entropy ignores the scale of a row, so dividing by a constant changes
        # neither value nor gradient, and squares neither under- nor overflow.
        scale = ops.max(ops.abs(values), axis=-1, keepdims=True)
        scale = ops.where(scale > _COEFFICIENT_FLOOR, scale, 1.0)  # [V, 1]
        squares = ops.square(values / ops.stop_gradient(scale))
        total = ops.sum(squares, axis=-1, keepdims=True)
        p = squares / ops.where(total > 0.0, total, 1.0)  # [V, R]
        # p log p tends to 0 with p, but 0 * log 0 is NaN.
        return -ops.sum(p * ops.log(ops.where(p > 0.0, p, 1.0)), axis=-1)


@keras.saving.register_keras_serializable(package="tfcomp")
class VarianceRegularizer(_Penalty):
    """Sample variance over the entries of every vector.

    `Var_n(u_irn) = sum_n (u_irn - mean_n u_irn)^2 / (N - 1)`: 0 for a vector
    of equal entries, at most 1 / (N - 1) for a vector of unit length.

    The weight is `beta` of equation 12, 0.01 in the paper's experiments. The
    basis `"raw"` (the published code) takes the vectors `[V, R, N]` as they
    are: short ones evade the penalty and change no image. `"unit"` (the paper's
    text) scales them to unit length. The reduction is as for
    `EntropyRegularizer`.
    """

    def __init__(
        self, weight: float, basis: str = "raw", reduction: str = "sum"
    ) -> None:
        super().__init__(weight, reduction)
        self.basis = basis

    def measure(self, values: KerasTensor) -> KerasTensor:
        # The sum is smallest at the mean, so its derivative by the mean is 0,
        # and leaving that out halves the backward pass.
        mean = ops.stop_gradient(ops.mean(values, axis=-1, keepdims=True))
        # Not the mean square minus the squared mean: what the penalty aims at,
        # entries that are almost equal, is where that difference loses digits.
        spread = ops.sum(ops.square(values - mean), axis=-1)  # [V, R]
        if self.basis == "unit":
            squares = ops.sum(ops.square(values), axis=-1)
            spread = spread / ops.maximum(squares, _LENGTH_FLOOR**2)
        return spread / (values.shape[-1] - 1)

    def get_config(self) -> dict:
        return {**super().get_config(), "basis": self.basis}
