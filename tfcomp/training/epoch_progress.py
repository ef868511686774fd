"""One progress bar for the whole training, with the time that is left."""

from __future__ import annotations

import sys

import keras
from tqdm import tqdm


class ProgressBar(keras.callbacks.Callback):
    """Shows epochs, loss and the estimated end.

    On a terminal the line is redrawn; elsewhere (a log file) a line is
    written every 30 seconds. (`tqdm.keras.TqdmCallback` asks Keras for the
    numbers of every batch, which slows short steps down.)

    Args:
        epochs: Total number of epochs.
        name: What is shown in front, the name of the run.
    """

    def __init__(self, epochs: int, name: str) -> None:
        super().__init__()
        self._epochs = epochs
        self._name = name

    def on_epoch_begin(self, epoch: int, logs: dict | None = None) -> None:
        if getattr(self, "_bar", None) is None:
            self._bar = tqdm(
                total=self._epochs,
                initial=epoch,
                desc=self._name,
                unit="epoch",
                mininterval=0.1 if sys.stderr.isatty() else 30.0,
                dynamic_ncols=True,
            )

    def on_epoch_end(self, epoch: int, logs: dict | None = None) -> None:
        loss = (logs or {}).get("loss", float("nan"))
        self._bar.set_postfix_str(f"loss {loss:.3g}", refresh=False)
        self._bar.update(1)

    def on_train_end(self, logs: dict | None = None) -> None:
        if getattr(self, "_bar", None) is not None:
            self._bar.close()
