"""Keras callbacks that users have registered: one of each for every run.

    @tfcomp.register_callback("mine")
    def make_mine(config): ...

In `on_epoch_end`, `logs` have the loss and, in epochs that were scored, ID and
OOD scores by the names of TensorBoard (`id/mse`). One that has `on_run_end` is
called once more, with the content of `metrics.json`, after the last scores.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import keras

from tfcomp.config.callbacks import CALLBACKS
from tfcomp.config.errors import RunError
from tfcomp.config.run_config import RunConfig


def make_callbacks(config: RunConfig) -> list[keras.callbacks.Callback]:
    """Makes what is registered, in the order of its names.

    Raises:
        RunError: If something is no callback.
    """
    made = [CALLBACKS.get(n).load()(config) for n in CALLBACKS.names()]
    for name, found in zip(CALLBACKS.names(), made, strict=True):
        if not isinstance(found, keras.callbacks.Callback):
            raise RunError(
                f"--plugins: the callback {name!r} must be a Keras callback, "
                f"it is a {type(found).__name__}"
            )
    return made


def end_run(
    callbacks: Sequence[keras.callbacks.Callback], metrics: Mapping[str, Any]
) -> None:
    """Tells the callbacks that want to know what the run came to."""
    for callback in callbacks:
        if end := getattr(callback, "on_run_end", None):
            end(metrics)
