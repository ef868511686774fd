"""Callbacks that users register: what they see, and what is refused."""

import json
from collections.abc import Callable
from pathlib import Path

import keras
import pytest

import tfcomp
from tfcomp.config.errors import RunError
from tfcomp.config.run_config import RunConfig
from tfcomp.training.experiment import train_and_evaluate


class Recorder(keras.callbacks.Callback):
    """Keeps all that it is told."""

    def __init__(self, config: RunConfig) -> None:
        super().__init__()
        self.config, self.epochs, self.metrics = config, [], []

    def on_epoch_end(self, epoch: int, logs: dict | None = None) -> None:
        self.epochs.append((epoch, dict(logs)))

    def on_run_end(self, metrics: dict) -> None:
        self.metrics.append(metrics)


@pytest.fixture
def made() -> list[Recorder]:
    """All that were made; a callback without `on_run_end` is another one."""
    found: list[Recorder] = []

    @tfcomp.register_callback("recorder")
    def make(config: RunConfig) -> Recorder:
        found.append(Recorder(config))
        return found[-1]

    tfcomp.register_callback("plain")(lambda _: keras.callbacks.Callback())
    return found


def test_they_see_losses_scores_and_the_end(
    made: list[Recorder], make_smoke: Callable[..., RunConfig]
) -> None:
    flags = ("--epochs=3", "--steps_per_epoch=5", "--nopictures", "--noexport")
    config = make_smoke(*flags, "--eval_every=2", "--layerwise_every=0")
    metrics = train_and_evaluate(config)
    (recorder,) = made
    assert recorder.config == config
    assert [epoch for epoch, _ in recorder.epochs] == [0, 1, 2]
    assert all(logs["loss"] > 0 for _, logs in recorder.epochs)
    # The last epoch is scored after training, as `on_run_end` is told.
    scored = [epoch for epoch, logs in recorder.epochs if "id/mse" in logs]
    assert scored == [1] and "ood/relative_mse" in recorder.epochs[1][1]
    (end,) = recorder.metrics
    assert end["ood"] == metrics["ood"]
    history = Path(config.run_dir, "history.csv").read_text().splitlines()
    column = history[0].split(",").index("ood/mse")
    shown = float(history[2].split(",")[column])
    assert shown == pytest.approx(recorder.epochs[1][1]["ood/mse"], rel=1e-5)
    assert train_and_evaluate(config) == json.loads(json.dumps(metrics))
    assert len(made) == 1  # a finished run trains nothing


def test_what_is_no_callback_is_refused(
    make_smoke: Callable[..., RunConfig],
) -> None:
    tfcomp.register_callback("wrong")(lambda config: print)
    config = make_smoke("--epochs=1", "--steps_per_epoch=1")
    with pytest.raises(RunError, match="'wrong' must be a Keras callback"):
        train_and_evaluate(config)
    assert not Path(config.run_dir, "metrics.json").exists()
