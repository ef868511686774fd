"""What a run shows in TensorBoard.

- `train/`: loss, speed
- `id/`, `ood/`: scores over the whole grid (and `id_test/` or comparisons
  with another truth, where they exist)
- `factorization/`, `cosine_factorization/`, `log_volume_id/`,
  `log_volume_ood/`, `probe_r2_id/`, `probe_r2_ood/`: one chart per stage
- `embedding_<number>/`: rank and penalties of low-rank embeddings
- images: `samples/`, `landscape/`, `log_volume_map/`, `embedding/`,
  `spectrum/`; with one ordered factor `error_curve/` instead of maps
- text: what the run is
- custom scalars: ID beside OOD, and all stages in one chart
- hparams: settings and final scores
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import keras
import numpy as np
import tensorflow as tf
from matplotlib.figure import Figure
from tensorboard.plugins.custom_scalar import summary as custom_scalar
from tensorboard.plugins.hparams import api as hparams

from tfcomp.config.run_config import RunConfig
from tfcomp.datasets import Dataset
from tfcomp.datasets.grid_curves import has_map
from tfcomp.datasets.grid_curves import list_curves
from tfcomp.evaluation.embedding_analysis import EmbeddingAnalysis
from tfcomp.evaluation.evaluator import Evaluation
from tfcomp.evaluation.evaluator import LayerAnalysis
from tfcomp.evaluation.pictures import VOLUME_LABEL
from tfcomp.evaluation.pictures import picture_embedding
from tfcomp.evaluation.pictures import picture_error_curve
from tfcomp.evaluation.pictures import picture_landscape
from tfcomp.evaluation.pictures import picture_maps
from tfcomp.evaluation.pictures import picture_samples
from tfcomp.figures.render import figure_to_array
from tfcomp.training.descriptions import LAYER_GROUPS
from tfcomp.training.descriptions import describe_run
from tfcomp.training.descriptions import make_layout


class RunSummaries:
    """Writes the summaries of one run into its folder.

    Args:
        folder: The run folder.
        config: The run.
        dataset: Its data.
    """

    def __init__(
        self, folder: Path, config: RunConfig, dataset: Dataset
    ) -> None:
        self._writer = tf.summary.create_file_writer(str(folder))
        self._config = config
        self._dataset = dataset
        self._has_maps = has_map(dataset.space)
        self._has_curves = bool(list_curves(dataset.space))

    def write_description(self, model: keras.Model, header: str) -> None:
        """Text, hyperparameters and the layout of the combined charts."""
        text = describe_run(self._config, self._dataset, model, header)
        layout = custom_scalar.pb(make_layout())
        settings, name = self._config.identity(), self._config.run_name
        with self._writer.as_default(step=0):
            tf.summary.text("run", text)
            hparams.hparams(settings, trial_id=name)
            tf.summary.experimental.write_raw_pb(layout.SerializeToString())

    def write_training(self, epoch: int, loss: float, speed: float) -> None:
        """Loss and examples per second of an epoch."""
        with self._writer.as_default(step=epoch):
            tf.summary.scalar("train/loss", loss)
            tf.summary.scalar("train/examples_per_second", speed)

    def write_scores(
        self, epoch: int, scores: Mapping[str, float | None]
    ) -> None:
        """Writes all scores that exist, by their tags, as `ood/mse`."""
        with self._writer.as_default(step=epoch):
            for tag, value in scores.items():
                write_scalar(tag, value)

    def write_pictures(self, epoch: int, evaluation: Evaluation) -> None:
        """Samples with the true position, and the error landscape."""
        if not self._config.pictures:
            return
        splits = self._dataset.splits
        with self._writer.as_default(step=epoch):
            for name, chosen in (("id", splits.is_id), ("ood", splits.is_ood)):
                if chosen.any():
                    title = f"{self._config.run_name}, {name.upper()}"
                    figure = picture_samples(
                        self._dataset, evaluation, name, title
                    )
                    write_figure(f"samples/{name}", figure)
            if self._has_maps:
                figure = picture_landscape(self._dataset, evaluation)
                write_figure("landscape/relative_mse", figure)
            if self._has_curves:
                figure = picture_error_curve(self._dataset, evaluation)
                write_figure("error_curve/mse", figure)

    def write_layers(self, epoch: int, analysis: LayerAnalysis) -> None:
        """Geometry and probes of every stage, and log-volume maps."""
        with self._writer.as_default(step=epoch):
            for stage, numbers in analysis.summary.items():
                for group in LAYER_GROUPS:
                    write_scalar(f"{group}/{stage}", numbers.get(group))
            if self._has_maps and self._config.pictures:
                for stage, values in analysis.log_volume.items():
                    title = f"log volume, {stage}"
                    figure = picture_maps(
                        self._dataset, {title: values}, VOLUME_LABEL
                    )
                    write_figure(f"log_volume_map/{stage}", figure)

    def write_embeddings(
        self,
        epoch: int,
        embeddings: dict[str, EmbeddingAnalysis],
        pictures: bool,
    ) -> None:
        """Rank and penalties of embeddings; with `pictures` also those."""
        with self._writer.as_default(step=epoch):
            for name, embedding in embeddings.items():
                for number, value in embedding.summary.items():
                    write_scalar(f"embedding_{number}/{name}", value)
                if pictures and self._config.pictures:
                    factor = self._dataset.space[name]
                    figures = picture_embedding(factor, embedding)
                    for kind, figure in figures.items():
                        write_figure(f"{kind}/{name}", figure)

    def close(self) -> None:
        """Flushes everything to disk."""
        self._writer.close()


def write_scalar(tag: str, value: float | None) -> None:
    """Writes a number that may not exist."""
    if value is not None:
        tf.summary.scalar(tag, value)


def write_figure(tag: str, figure: Figure) -> None:
    """Writes a matplotlib figure as an image summary."""
    tf.summary.image(tag, figure_to_array(figure)[np.newaxis])
