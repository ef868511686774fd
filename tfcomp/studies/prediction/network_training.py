"""One network of a study: trained to an ID error, measured on the way.

How long the training is shows at its end; the weights nearest to each share of
it, kept at every look at the ID error, are measured then: over all points, and
over a grid that has the ID points alone.
"""

import dataclasses
import math
from typing import Any

import keras
import numpy as np

from tfcomp.analysis.scores import average_scores
from tfcomp.config.run_config import RunConfig
from tfcomp.datasets import make_dataset
from tfcomp.datasets.dataset import Dataset
from tfcomp.evaluation.evaluator import Evaluator
from tfcomp.evaluation.loading import LoadedRun
from tfcomp.evaluation.point_scores import score_points
from tfcomp.evaluation.run_analysis import RunAnalysis
from tfcomp.evaluation.run_metrics import compute_metrics
from tfcomp.studies.prediction.networks import ALL_POINTS, ID_ONLY
from tfcomp.training.fit import count_steps, fit_without_pause
from tfcomp.training.prepared_models import prepare_models
from tfcomp.training.strategy import make_strategy

Weights = list[np.ndarray]
# When networks are measured, as shares of the steps to the target.
TIMES = (0.0, 0.05, 0.1, 0.25, 1.0)
OUTCOMES = ("relative_mse", "position_accuracy")


class TrainToTarget(keras.callbacks.Callback):
    """Ends a training at an ID error.

    It keeps weights, and their ID relative MSE, from before the first epoch on.
    """

    def __init__(self, dataset: Dataset, target: float) -> None:
        super().__init__()
        self.kept: list[Weights] = []
        self.errors: list[float] = []
        self._dataset, self._target = dataset, target
        points = dataset.splits.points
        self._factors = points.factors[points.subsets["id"]]
        self._truth = dataset.render_array(self._factors)

    @property
    def has_reached(self) -> bool:
        """Whether the last error is at most the target."""
        return self.errors[-1] <= self._target

    def on_train_begin(self, logs: dict | None = None) -> None:
        self._look()

    def on_epoch_end(self, epoch: int, logs: dict | None = None) -> None:
        self._look()
        if self.has_reached or not math.isfinite(self.errors[-1]):
            self.model.stop_training = True

    def _look(self) -> None:
        images = np.asarray(self.model.predict_on_batch(self._factors))
        found = score_points(self._dataset, images, self._truth, self._factors)
        error = average_scores(found)["relative_mse"]
        self.errors.append(math.inf if error is None else error)
        self.kept.append(self.model.get_weights())


def train_network(config: RunConfig, target: float) -> dict[str, Any]:
    """Trains one network and measures it.

    Returns:
        `reached`, whether it met the target; the number of `steps`;
        `id_relative_mse`, `ood_relative_mse` and, of positions,
        `ood_position_accuracy` at the end; and `measures`, by time (see
        `TIMES`) the `share` of training at which they were taken, and all
        numbers by name, `id.` or `all.` first. Without the target there are
        no measures.
    """
    dataset = make_dataset(config)
    strategy = make_strategy(config.training.num_replicas)
    steps = count_steps(config.training, dataset)
    with prepare_models(config, dataset, strategy) as models:
        watch = TrainToTarget(dataset, target)
        fit_without_pause(models.trained, dataset, config, [watch])
        last, error = len(watch.errors) - 1, watch.errors[-1]
        record: dict[str, Any] = {
            "reached": watch.has_reached,
            "steps": last * steps,
            "id_relative_mse": error if math.isfinite(error) else None,
        }
        if math.isfinite(error):
            models.observed.set_weights(watch.kept[-1])
            scores = models.evaluator.evaluate().scores["ood"]
            record |= {f"ood_{n}": scores[n] for n in OUTCOMES if n in scores}
        if watch.has_reached:
            record["measures"] = {}
            for time in TIMES:
                index = int(math.floor(time * last + 0.5))  # the nearest look
                models.observed.set_weights(watch.kept[index])
                record["measures"][f"{time:g}"] = {
                    "share": index / last,
                    "id_relative_mse": watch.errors[index],
                    **_measure(config, dataset, models.evaluator),
                }
    return record


def forget_held_out(dataset: Dataset) -> Dataset:
    """The data as if held-out combinations did not exist."""
    splits = dataset.splits
    splits = dataclasses.replace(
        splits,
        points=splits.points[splits.is_id],
        is_complete=False,
        existing=None,
        is_streamed=False,
    )
    return dataclasses.replace(dataset, splits=splits)


def _measure(
    config: RunConfig, dataset: Dataset, evaluator: Evaluator
) -> dict[str, float]:
    """All numbers by name; what was traced serves all networks alike."""
    views = {ID_ONLY: forget_held_out(dataset), ALL_POINTS: dataset}
    numbers: dict[str, float] = {}
    for prefix, view in views.items():
        run = LoadedRun(None, config, view, evaluator.model, {}, "")
        metrics = compute_metrics(RunAnalysis(run, evaluator, is_repeated=True))
        stages = metrics.pop("stages")
        for name, value in metrics.items():
            # Where there are ID points alone, those of ID points are all.
            is_double = name.removesuffix("_id") in metrics.keys() - {name}
            if view.splits.is_ood.any() or not is_double:
                numbers |= _flatten(prefix + name, value, stages)
    # Six digits are what a file of a thousand networks has room for.
    return {name: float(f"{value:.6g}") for name, value in numbers.items()}


def _flatten(name: str, value: Any, stages: list[str]) -> dict[str, float]:
    if isinstance(value, int | float):
        return {name: value}
    if not isinstance(value, list) or len(value) != len(stages):
        return {}
    pairs = zip(stages, value, strict=True)
    hidden = [v for s, v in pairs if s.startswith("stage_") and v is not None]
    if not hidden:
        return {}
    return {f"{name}.mean": np.mean(hidden), f"{name}.last": hidden[-1]}
