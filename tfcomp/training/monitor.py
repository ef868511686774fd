"""Evaluation during training: a Keras callback that writes summaries."""

import sys
from collections.abc import Mapping, Set
from pathlib import Path
from typing import Any

import keras
import numpy as np

from tfcomp.config.run_config import RunConfig
from tfcomp.datasets import Dataset, solvable
from tfcomp.datasets.views import subsample_levels
from tfcomp.figures import kept_outputs, pictures
from tfcomp.metrics.interaction import WATCHED_POINTS
from tfcomp.metrics.point_scores import Evaluation, compute_error_ratio
from tfcomp.metrics.references import score_certified, score_references
from tfcomp.metrics.run_analysis import RunAnalysis
from tfcomp.storage.files import DamagedFileError, open_log, write_csv
from tfcomp.storage.run_folder import HISTORY_FILE, read_history
from tfcomp.training.fit import count_steps
from tfcomp.training.prepared_models import PreparedModels
from tfcomp.training.summaries import RunSummaries


class History:
    """`history.csv`, loss and scores by epoch; a resumed run continues it."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / HISTORY_FILE
        self.copy(folder)

    def copy(self, source: Path) -> None:
        """Replaces the curves by the ones of a folder."""
        self.rows = _read_rows(source / HISTORY_FILE)
        self._tags: Set[str] = frozenset()  # columns of the written file

    def add(self, epoch: int, numbers: Mapping[str, float | None]) -> None:
        """Adds the float32 numbers of TensorBoard, and drops later rows."""
        known = {tag: x for tag, x in numbers.items() if x is not None}
        row = {tag: float(np.float32(x)) for tag, x in known.items()}
        # Writing all rows after each of a thousand epochs would take seconds.
        is_next = epoch > max(self.rows, default=epoch)
        if is_next and self._tags >= row.keys():
            self.rows[epoch] = row
            cells = [str(row.get(tag, "")) for tag in self._tags]
            with open_log(self._path) as file:
                file.write(f"{epoch},{','.join(cells)}\n".encode())
            return
        self.rows = {e: old for e, old in self.rows.items() if e <= epoch}
        self.rows[epoch] = self.rows.get(epoch, {}) | row
        tags = (tag for row in self.rows.values() for tag in row)
        empty = dict.fromkeys(tags)
        self._tags = empty.keys()
        table = [{"epoch": e, **empty, **row} for e, row in self.rows.items()]
        write_csv(self._path, table)


def _read_rows(path: Path) -> dict[int, dict[str, float]]:
    """Reads numbers by epoch and tag; prints a note if they are damaged."""
    if not path.exists():
        return {}
    try:
        return read_history(path)
    except DamagedFileError as error:
        print(f"note: no curves from {path} ({error})", file=sys.stderr)
        return {}


class Monitor(keras.callbacks.Callback):
    """Scores every `eval_every` epochs, layers every `layerwise_every`."""

    def __init__(
        self,
        config: RunConfig,
        models: PreparedModels,
        dataset: Dataset,
        summaries: RunSummaries,
    ) -> None:
        super().__init__()
        self._config, self._dataset = config, dataset
        self._models, self._observed = models, models.observed
        self._summaries = summaries
        self.history = History(Path(config.run_dir))
        training = config.training
        self._examples = count_steps(training, dataset) * training.batch_size
        # Evenly spread; the trained network has the last outputs.
        epochs, count = training.epochs, config.keep_outputs
        kept = {round(k * epochs / count) for k in range(1, count)}
        self._kept = kept - {0, epochs}

    def reads_weights(self, done: int) -> bool:
        """Returns True if the network is evaluated after `done` epochs."""
        return done in self._kept or any(
            _is_due(done, every)
            for every in (self._config.eval_every, self._config.layerwise_every)
        )

    def on_epoch_end(self, epoch: int, logs: dict[str, Any]) -> None:
        done = epoch + 1
        loss, scores = {"train/loss": logs["loss"]}, {}
        speed = {"train/examples_per_second": self._examples / logs["seconds"]}
        self._summaries.write_scalars(done, loss | speed)
        if done == self._config.training.epochs:
            self.history.add(done, loss)
            return
        if done in self._kept:
            self._observed.set_weights(self.model.get_weights())
            shown = subsample_levels(self._dataset)
            points, folder = shown.splits.grid, Path(self._config.run_dir)
            images = self._models.traced.predict(points)
            found = Evaluation(images, shown.grid_images, {})
            errors = compute_error_ratio(shown, found)
            kept_outputs.write_outputs(folder, done, points, images, errors)
        layers_due = _is_due(done, self._config.layerwise_every)
        if layers_due or _is_due(done, self._config.eval_every):
            _, evaluation = self._evaluate(done, self.model, layers_due)
            scores = evaluation.tagged
            logs |= scores  # for user callbacks, which come after
        self.history.add(done, loss | scores)

    def _analyze(self) -> RunAnalysis:
        """Returns the analysis of the observed model as it is now."""
        models = self._models
        return RunAnalysis(models.traced, self._dataset, seed=models.seed)

    def score_errors(self, model: keras.Model) -> dict[str, float | None]:
        """Returns the relative errors of a model by subset."""
        self._observed.set_weights(model.get_weights())
        scores = self._analyze().evaluation.scores
        return {
            subset: found["relative_mse"] for subset, found in scores.items()
        }

    def finish(self, model: keras.Model) -> dict[str, Any]:
        """Returns metrics of the trained model and of reference predictors."""
        epochs, dataset = self._config.training.epochs, self._dataset
        metrics, found = self._evaluate(epochs, model, True)
        self.history.add(epochs, found.tagged)
        self._write_preview(found)
        metrics["reference"] = dataset.reference_label
        metrics["references"] = score_references(dataset, found.truth)
        certificates = solvable.certify_dataset(dataset)
        metrics["certificate"] = solvable.summarize_certificates(
            dataset, certificates
        )
        metrics["explained"] = solvable.explain_training(dataset)
        metrics["r2"] = score_certified(dataset, found, certificates[1])
        if channels := measure_factors(model):
            metrics["channels"] = channels
        return metrics

    def _write_preview(self, evaluation: Evaluation) -> None:
        """Writes held-out images and outputs for the page of a sweep."""
        dataset, splits = self._dataset, self._dataset.splits
        shown = splits.is_ood if splits.is_ood.any() else splits.is_id
        rows = pictures.choose_spread(np.flatnonzero(shown))
        if not len(rows):
            return
        pair = [
            dataset.to_pictures(images[rows])
            for images in (evaluation.truth, evaluation.images)
        ]
        if dataset.first_row == "bottom":
            pair = [images[:, ::-1] for images in pair]
        titles = pictures.title_points(dataset, rows)
        kept_outputs.write_preview(Path(self._config.run_dir), titles, pair)

    def _evaluate(
        self, epoch: int, model: keras.Model, with_layers: bool
    ) -> tuple[dict[str, Any], Evaluation]:
        """Writes scores and embeddings; `with_layers` stages and pictures."""
        self._observed.set_weights(model.get_weights())
        analysis = self._analyze()
        evaluation = analysis.evaluation
        every = self._config.eval_every
        self._summaries.write_scalars(epoch, evaluation.tagged, every)
        metrics: dict[str, Any] = dict(evaluation.scores)
        if with_layers:
            self._summaries.write_pictures(epoch, evaluation, self.history.rows)
            self._summaries.write_layers(epoch, analysis.layers)
            if self._config.layerwise_every:
                shares = analysis.measure_interactions(WATCHED_POINTS)
                self._summaries.write_stages(epoch, shares)
            metrics["layers"] = analysis.layers.summary
            if analysis.nondifferentiable:
                metrics["differences"] = analysis.nondifferentiable
        embeddings = analysis.embeddings
        self._summaries.write_embeddings(epoch, embeddings, with_layers)
        if embeddings:
            metrics["embeddings"] = {
                n: e.summary for n, e in embeddings.items()
            }
        return metrics, evaluation


def measure_factors(model: keras.Model) -> dict[str, dict[str, float]]:
    """Returns what layers with a method `measure_factors` say of factors.

    Args:
        model: A model, of which any layers may have the method
            `measure_factors()`: a dictionary of numbers by factor.
    """
    numbers: dict[str, dict[str, float]] = {}
    for layer in model.layers:
        if hasattr(layer, "measure_factors"):
            numbers |= layer.measure_factors()
    return numbers


def _is_due(done: int, every: int) -> bool:
    return every > 0 and done % every == 0
