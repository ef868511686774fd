"""Hard rendering: a profile along an axis of the image for every value."""

from collections.abc import Sequence

import keras
import numpy as np
from keras import KerasTensor, ops

from tfcomp.models.registry import AXES
from tfcomp.models.value_embedding import Size, ValueEmbedding, take_rows

# Norms below it get no gradient, which is infinite at 0.
_NORM_FLOOR = 1e-12


@keras.saving.register_keras_serializable(package="tfcomp")
class AxisEmbedding(ValueEmbedding):
    """Looks up stripes: profiles that are broadcast along the other axes.

    They are what the penalties of section 4.1 of the paper lead to at best.
    The value i owns a profile `a_i` with a number for every row, and `b_i`
    with one for every column, as far as they are in `axes`:

        M_i[r, c] = a_i[r] / sqrt(columns) + b_i[c] / sqrt(rows)

    Of two axes, the group penalty `group_weight (|a| + |b|)`, of the norms of
    all profiles along an axis, lets one survive. `prune` then removes the
    other, and with it the penalty.
    """

    def __init__(
        self,
        num_values: int,
        size: Size,
        axes: Sequence[str] = AXES,
        group_weight: float = 0.0,
        inputs: str = "index",
        **kwargs,
    ) -> None:
        super().__init__(num_values, size, inputs, **kwargs)
        self.axes = tuple(axes)
        self.rank = len(self.axes)
        self.group_weight = float(group_weight)

    def build(self, input_shape: tuple) -> None:
        self.kept = self.add_weight(
            (len(self.axes),), "ones", trainable=False, name="kept"
        )
        is_choice = len(self.axes) > 1 and self.group_weight > 0
        self._profiles = []
        for axis in self.axes:
            length = self.size[AXES.index(axis)]
            weight = self.add_weight(
                (self.num_values, length),
                keras.initializers.RandomNormal(stddev=length**-0.5),
                regularizer=self._penalize if is_choice else None,
                name=axis,
            )
            self._profiles.append(weight)

    def look_up(self, rows: KerasTensor, valid: KerasTensor) -> KerasTensor:
        chosen = (take_rows(p, rows) for p in self._profiles)
        return self._draw([ops.where(valid[:, None], p, 0.0) for p in chosen])

    def matrices(self) -> KerasTensor:
        return self._draw([ops.convert_to_tensor(p) for p in self._profiles])

    def profiles(self) -> dict[str, np.ndarray]:
        """Profiles [V, length] by axis; a pruned axis keeps its last ones."""
        arrays = map(ops.convert_to_numpy, self._profiles)
        return dict(zip(self.axes, arrays, strict=True))

    def measure_ratio(self) -> float | None:
        """Returns the ratio of the norms of both axes, if there are two."""
        norms = self._measure_norms()
        is_ratio = len(norms) > 1 and min(norms) > 0
        return float(max(norms) / min(norms)) if is_ratio else None

    def find_axis(self) -> str | None:
        """Returns the only axis in use; None if there are more."""
        left = np.flatnonzero(ops.convert_to_numpy(self.kept))
        return self.axes[left[0]] if len(left) == 1 else None

    def prune(self, below: float) -> None:
        """Removes an axis that is weaker than `below` times the other."""
        norms = self._measure_norms()
        if self.find_axis() is None and min(norms) < below * max(norms):
            self.kept.assign([float(n == max(norms)) for n in norms])

    def _measure_norms(self) -> list[float]:
        return [float(np.linalg.norm(p)) for p in self.profiles().values()]

    def get_config(self) -> dict:
        own = {"axes": list(self.axes), "group_weight": self.group_weight}
        return super().get_config() | own

    def _draw(self, profiles: Sequence[KerasTensor]) -> KerasTensor:
        """Sums the profiles [n, length] in use to [n, rows, columns]."""
        total = ops.zeros(self.size)
        for index, axis in enumerate(self.axes):
            other = 1 - AXES.index(axis)  # along which it is broadcast
            scale = self.kept[index] * self.size[other] ** -0.5
            total = total + ops.expand_dims(profiles[index] * scale, 1 + other)
        return total

    def _penalize(self, profiles: KerasTensor) -> KerasTensor:
        # A product: it ends for both axes when one is pruned.
        weight = self.group_weight * ops.prod(self.kept)
        squares = ops.sum(ops.square(profiles))
        return weight * ops.sqrt(ops.maximum(squares, _NORM_FLOOR))
