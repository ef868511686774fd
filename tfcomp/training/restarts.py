"""Trainings that miss an ID target start again, from another seed.

Which training a killed run was in need not be saved: those that ended are
restored from their last checkpoints, and miss the target once more.
"""

import dataclasses
import shutil
import sys
from collections.abc import Sequence
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

    The models end with the weights of the best training: of those with all axes
    decided, if any, the lowest ID error. Each has the monitor and the user's
    `own` callbacks. Returns what `fit_model` gives, with the `seconds` of all
    trainings; with a target also all `attempts` (`seed`, `id_relative_mse`,
    and whether axes are `decided`), and the `seed` of the best.
    """
    callbacks = [monitor, *own]
    target, most = config.training.id_target, config.training.restarts
    if not target:
        folder = str(Path(config.run_dir) / "checkpoints")
        return fit_model(models.trained, dataset, config, folder, callbacks)

    def train(number: int) -> tuple[dict[str, Any], dict[str, float]]:
        """Trains, or restores a training that has ended; what it came to."""
        seed = derive_seed(config.training.seed, number)
        training = dataclasses.replace(config.training, seed=seed)
        restarted = dataclasses.replace(config, training=training)
        run = Path(config.run_dir)
        folder = run / "checkpoints" / (f"restart_{number}" * bool(number))
        models.restart(restarted, dataset)
        monitor.history.copy(run)
        cost = fit_model(
            models.trained, dataset, restarted, str(folder), callbacks
        )
        # The file of the run goes on with the curves of the next training.
        if not (folder / HISTORY_FILE).exists():
            shutil.copyfile(run / HISTORY_FILE, folder / HISTORY_FILE)
        monitor.history.copy(folder)
        models.observed.set_weights(models.trained.get_weights())
        error = models.evaluator.evaluate().scores["id"]["relative_mse"]
        layers = models.trained.layers
        axes = (x for x in layers if isinstance(x, AxisEmbedding))
        # Whether an axis is left for every factor that has any.
        decided = all(layer.find_axis() is not None for layer in axes)
        found = {"seed": seed, "id_relative_mse": error, "decided": decided}
        return found, cost

    attempts, costs = [], []
    for number in range(most + 1):
        found, cost = train(number)
        attempts.append(found)
        costs.append(cost)
        if found["decided"] and found["id_relative_mse"] <= target:
            break
        if number < most:
            error = f"ID relative MSE {found['id_relative_mse']:.3g}"
            axes = "" if found["decided"] else ", axes not decided"
            goes_on = f"restart {number + 1} of at most {most}"
            print(f"note: {error}{axes}: {goes_on}", file=sys.stderr)
    ranks = [(not a["decided"], a["id_relative_mse"]) for a in attempts]
    best = ranks.index(min(ranks))
    if best < number:
        train(best)
    return {
        **costs[best],
        "seconds": sum(cost["seconds"] for cost in costs),
        "seed": attempts[best]["seed"],
        "attempts": attempts,
    }
