"""Pruning of axes during training, by the weights alone."""

from __future__ import annotations

import keras

from tfcomp.models.axis_embedding import AxisEmbedding


class PruneAxes(keras.callbacks.Callback):
    """Prunes the weaker axis of a factor when it is far below the other.

    It looks at the end of every epoch. Held-out combinations have no part in
    that, and what was pruned is a weight of the layer, which checkpoints
    have. Must come before the callback that saves the training state.

    Args:
        below: See `AxisEmbedding.prune`.
    """

    def __init__(self, below: float) -> None:
        super().__init__()
        self._below = below

    def on_epoch_end(self, epoch: int, logs: dict | None = None) -> None:
        for layer in self.model.layers:
            if isinstance(layer, AxisEmbedding):
                layer.prune(self._below)
