"""Trainings that miss an ID target start again, from another seed.

Held-out combinations have no say in it. Which training a killed run was in
need not be saved: those that ended are restored from their last checkpoints,
without a step, and miss the target once more.
"""

import dataclasses
import shutil
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import keras
import numpy as np

from tfcomp.config.run_config import RunConfig
from tfcomp.datasets import Dataset
from tfcomp.models.axis_embedding import AxisEmbedding
from tfcomp.storage.run_folder import HISTORY_FILE
from tfcomp.training.fit import fit_model
from tfcomp.training.monitor import Monitor
from tfcomp.training.prepared_models import PreparedModels


@dataclass(frozen=True)
class Attempt:
    """A training that has ended.

    Attributes:
        number: Of the restart; 0 is the first training.
        seed: Of its initial weights and batches.
        id_relative_mse: Its error where it was allowed to look.
        decided: Whether an axis is left for every factor that has any.
        cost: What `fit_model` gives.
    """

    number: int
    seed: int
    id_relative_mse: float
    decided: bool
    cost: dict[str, float]

    def meets(self, target: float) -> bool:
        """Whether it needs no restart."""
        return self.decided and self.id_relative_mse <= target


def derive_seed(seed: int, number: int) -> int:
    """Seed of the initial weights and the batches of a restart."""
    if not number:
        return seed
    return int(np.random.SeedSequence([seed, number]).generate_state(1)[0] >> 1)


def train_to_target(
    config: RunConfig,
    dataset: Dataset,
    models: PreparedModels,
    monitor: Monitor,
    own: Sequence[keras.callbacks.Callback] = (),
) -> dict[str, Any]:
    """Trains until the ID target is met, or as often as is allowed.

    Args:
        config: The run. Restarts have its data, and seeds of their own.
        models: Its models; they end with the weights of the best training:
            of those with all axes decided, if any, the lowest ID error.
        monitor: The callback of every training.
        own: Those that users have registered.

    Returns:
        What `fit_model` gives, with the `seconds` of all trainings. With a
        target also `attempts`, the `seed`, `id_relative_mse` and `decided` of
        each, and the `seed` of the best.
    """
    callbacks = [monitor, *own]
    target, most = config.training.id_target, config.training.restarts
    if not target:
        folder = str(Path(config.run_dir) / "checkpoints")
        return fit_model(models.trained, dataset, config, folder, callbacks)
    ended: list[Attempt] = []
    while not ended or not (ended[-1].meets(target) or len(ended) > most):
        if ended:
            _announce(ended[-1], config)
        ended.append(_train(len(ended), config, dataset, models, callbacks))
    best = min(ended, key=lambda a: (not a.decided, a.id_relative_mse))
    if best is not ended[-1]:
        _train(best.number, config, dataset, models, callbacks)
    names = ("seed", "id_relative_mse", "decided")
    return {
        **best.cost,
        "seconds": sum(attempt.cost["seconds"] for attempt in ended),
        "seed": best.seed,
        "attempts": [{n: getattr(a, n) for n in names} for a in ended],
    }


def _train(
    number: int,
    config: RunConfig,
    dataset: Dataset,
    models: PreparedModels,
    callbacks: Sequence[Any],
) -> Attempt:
    """Trains, or restores a training that has ended, and judges it.

    The first of the callbacks is the monitor.
    """
    monitor = callbacks[0]
    seed = derive_seed(config.training.seed, number)
    training = dataclasses.replace(config.training, seed=seed)
    own, run = dataclasses.replace(config, training=training), config.run_dir
    folder = Path(run) / "checkpoints" / (f"restart_{number}" * bool(number))
    models.restart(own, dataset)
    monitor.history.copy(Path(run))
    cost = fit_model(models.trained, dataset, own, str(folder), callbacks)
    # The file of the run goes on with the curves of the next training.
    if not (folder / HISTORY_FILE).exists():
        shutil.copyfile(Path(run) / HISTORY_FILE, folder / HISTORY_FILE)
    monitor.history.copy(folder)
    models.observed.set_weights(models.trained.get_weights())
    error = models.evaluator.evaluate().scores["id"]["relative_mse"]
    axes = (x for x in models.trained.layers if isinstance(x, AxisEmbedding))
    decided = all(layer.find_axis() is not None for layer in axes)
    return Attempt(number, seed, error, decided, cost)


def _announce(missed: Attempt, config: RunConfig) -> None:
    found = f"ID relative MSE {missed.id_relative_mse:.3g}"
    undecided = "" if missed.decided else ", axes not decided"
    print(
        f"note: {found}{undecided}: restart {missed.number + 1} of at most "
        f"{config.training.restarts}",
        file=sys.stderr,
    )
