"""Restarts trainings that miss an ID target, with another seed.

On resume, finished attempts are replayed from their last checkpoints, so the
number of the attempt is not stored.
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

Attempt = dict[str, Any]


def derive_seed(seed: int, number: int) -> int:
    """Returns the seed of the initial weights and batches of an attempt."""
    if not number:
        return seed
    return int(np.random.SeedSequence([seed, number]).generate_state(1)[0] >> 1)


def train_to_target(
    config: RunConfig,
    dataset: Dataset,
    models: PreparedModels,
    monitor: Monitor,
    user_callbacks: Sequence[keras.callbacks.Callback] = (),
) -> dict[str, Any]:
    """Trains until the ID target is met, or as often as is allowed.

    The models end with the weights of the best attempt: the lowest ID error,
    if possible among attempts in which all axes are decided.

    Returns:
        The result of `fit_model`, with the `seconds` of all attempts; with a
        target also the `seed` of the best and all `attempts` (`seed`,
        `id_relative_mse`, `decided`).
    """
    run, callbacks = Path(config.run_dir), [monitor, *user_callbacks]
    target, most = config.training.id_target, config.training.restarts
    checkpoints = run / "checkpoints"
    if not target:
        model, folder = models.trained, str(checkpoints)
        return fit_model(model, dataset, config, folder, callbacks)

    def train(number: int) -> tuple[Attempt, dict[str, float]]:
        seed = derive_seed(config.training.seed, number)
        training = dataclasses.replace(config.training, seed=seed)
        restarted = dataclasses.replace(config, training=training)
        folder = checkpoints / (f"restart_{number}" * bool(number))
        models.restart(restarted, dataset)
        monitor.history.copy(run)
        cost = fit_model(
            models.trained, dataset, restarted, str(folder), callbacks
        )
        # The next attempt overwrites the history file of the run.
        if not (folder / HISTORY_FILE).exists():
            shutil.copyfile(run / HISTORY_FILE, folder / HISTORY_FILE)
        monitor.history.copy(folder)
        return _score(models, seed), cost

    attempts, costs = [], []
    for number in range(most + 1):
        attempt, cost = train(number)
        attempts.append(attempt)
        costs.append(cost)
        if attempt["decided"] and attempt["id_relative_mse"] <= target:
            break
        if number < most:
            error = f"ID relative MSE {attempt['id_relative_mse']:.3g}"
            axes = "" if attempt["decided"] else ", axes not decided"
            again = f"restart {number + 1} of at most {most}"
            print(f"note: {error}{axes}: {again}", file=sys.stderr)
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


def _score(models: PreparedModels, seed: int) -> Attempt:
    """Returns the ID error, and whether every factor has one axis left."""
    models.observed.set_weights(models.trained.get_weights())
    error = models.evaluator.evaluate().scores["id"]["relative_mse"]
    layers = models.trained.layers
    axes = (x.find_axis() for x in layers if isinstance(x, AxisEmbedding))
    is_decided = all(axis is not None for axis in axes)
    return {"seed": seed, "id_relative_mse": error, "decided": is_decided}
