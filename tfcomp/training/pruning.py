"""Pruning of axes during training."""

import keras
import numpy as np

from tfcomp.datasets import Dataset
from tfcomp.models.axis_embedding import AxisEmbedding

# Before the loss is below this share of the error of a blank image, axes may
# be apart because a factor has not found its own yet.
FITTED = 0.5
SAMPLE = 1024


class PruneAxes(keras.callbacks.Callback):
    """Prunes the weaker axis of a factor when it is far below the other.

    It looks at the weights at the end of every epoch, once the training
    examples are fitted in part. Held-out combinations have no say, and what
    was pruned is a weight of the layer, which checkpoints have. Must come
    before the callback that saves the training state. `below` is that of
    `AxisEmbedding.prune`.
    """

    def __init__(self, below: float, dataset: Dataset) -> None:
        super().__init__()
        self._below = below
        self._dataset = dataset

    def on_train_begin(self, logs: dict | None = None) -> None:
        layers = self.model.layers
        self._found = [x for x in layers if isinstance(x, AxisEmbedding)]
        if self._found:
            # The loss has the noise of the examples, too, until they are
            # learned by heart.
            blank = FITTED * measure_blank(self._dataset)
            self._enough = blank + self._dataset.noise**2

    def on_epoch_end(self, epoch: int, logs: dict | None = None) -> None:
        if self._found and logs["loss"] < self._enough:
            for layer in self._found:
                layer.prune(self._below)


def measure_blank(dataset: Dataset) -> float:
    """MSE of an image of the background on a sample of training examples."""
    table = dataset.splits.train
    images = dataset.render_array(table[:: len(table) // SAMPLE + 1])
    return float(np.square(images - dataset.background).mean())
