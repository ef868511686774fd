"""Evaluation during training: a Keras callback that writes summaries."""

from __future__ import annotations

from typing import Any

import keras

from tfcomp.config.run_config import RunConfig
from tfcomp.datasets import Dataset
from tfcomp.evaluation.embedding_analysis import EmbeddingAnalysis
from tfcomp.evaluation.evaluator import Evaluation
from tfcomp.evaluation.evaluator import Evaluator
from tfcomp.evaluation.evaluator import LayerAnalysis
from tfcomp.training.fit import count_steps
from tfcomp.training.history import History
from tfcomp.training.summaries import RunSummaries


class Monitor(keras.callbacks.Callback):
    """Scores every `eval_every` epochs, layers every `layerwise_every`.

    The last epoch is left to `finish`, so that a run that is resumed after
    its last epoch is evaluated all the same.

    Args:
        config: The run.
        dataset: Its data.
        observed: A float32 model of the same architecture; it receives the
            weights in training. Geometry in bfloat16 would be noise.
        summaries: Where all results go.
        history: Where loss and scores go.
    """

    def __init__(
        self,
        config: RunConfig,
        dataset: Dataset,
        observed: keras.Model,
        summaries: RunSummaries,
        history: History,
    ) -> None:
        super().__init__()
        self._config = config
        self._observed = observed
        self._summaries = summaries
        self._history = history
        training = config.training
        self._evaluator = Evaluator(observed, dataset, training.seed)
        steps = count_steps(training, dataset)
        self._examples = steps * training.batch_size

    def on_epoch_end(self, epoch: int, logs: dict | None = None) -> None:
        done = epoch + 1
        speed = self._examples / logs["seconds"]
        self._summaries.write_training(done, logs["loss"], speed)
        self._history.add(done, {"train/loss": logs["loss"]})
        if done == self._config.training.epochs:
            return
        layers_due = _is_due(done, self._config.layerwise_every)
        if layers_due or _is_due(done, self._config.eval_every):
            self._observed.set_weights(self.model.get_weights())
            evaluation = self._evaluator.evaluate()
            self._write_scores(done, evaluation)
            embeddings = self._evaluator.analyze_embeddings()
            self._summaries.write_embeddings(done, embeddings, layers_due)
            if layers_due:
                self._summaries.write_pictures(done, evaluation)
                analysis = self._evaluator.analyze_layers()
                self._summaries.write_layers(done, analysis)

    def finish(self, model: keras.Model) -> dict[str, Any]:
        """Evaluates and shows the trained model; returns its metrics."""
        epochs = self._config.training.epochs
        self._observed.set_weights(model.get_weights())
        evaluation = self._evaluator.evaluate()
        analysis = self._evaluator.analyze_layers()
        self._write_scores(epochs, evaluation)
        self._summaries.write_pictures(epochs, evaluation)
        self._summaries.write_layers(epochs, analysis)
        embeddings = self._evaluator.analyze_embeddings()
        self._summaries.write_embeddings(epochs, embeddings, pictures=True)
        return make_metrics(evaluation, analysis, embeddings)

    def _write_scores(self, epoch: int, evaluation: Evaluation) -> None:
        scores = {
            f"{subset}/{name}": value
            for subset, values in evaluation.scores.items()
            for name, value in values.items()
        }
        self._summaries.write_scores(epoch, scores)
        self._history.add(epoch, scores)


def make_metrics(
    evaluation: Evaluation,
    analysis: LayerAnalysis,
    embeddings: dict[str, EmbeddingAnalysis],
) -> dict[str, Any]:
    """All numbers of an evaluation, as `metrics.json` has them."""
    metrics = {**evaluation.scores, "layers": analysis.summary}
    if embeddings:
        metrics["embeddings"] = {k: e.summary for k, e in embeddings.items()}
    return metrics


def _is_due(done: int, every: int) -> bool:
    return every > 0 and done % every == 0
