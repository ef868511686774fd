"""Writes the TensorBoard summaries of a run (docs/tutorials/donut.md).

TensorBoard smooths curves: the last of a few points is drawn far from its value
(by a factor of two in a short run). So scores that are computed less than
`MIN_POINTS` times are written at the last epoch alone; the picture
`answer/errors` has their curve.
"""

import contextlib
import math
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
import pandas as pd
import tensorflow as tf
from matplotlib.figure import Figure
from tensorboard.compat.proto.summary_pb2 import Summary
from tensorboard.plugins.hparams import api as hparams
from tensorboard.plugins.scalar.summary_v2 import scalar_pb

from tfcomp.config.errors import describe_plugin_error, is_exhausted
from tfcomp.config.run_config import RunConfig
from tfcomp.datasets import Dataset
from tfcomp.datasets.grid_maps import list_curves
from tfcomp.figures import pictures
from tfcomp.figures.curve_plots import draw_curves
from tfcomp.figures.exhibits import (
    figure_to_array,
    fit_width,
    stack_to_png,
    use_own_style,
)
from tfcomp.metrics.embeddings import EmbeddingAnalysis
from tfcomp.metrics.point_scores import Evaluation
from tfcomp.metrics.registry import list_metrics
from tfcomp.metrics.run_analysis import LayerAnalysis
from tfcomp.storage.files import write_bytes
from tfcomp.storage.run_folder import SAMPLES_FILE, TRIALS

ERRORS = {"ID": "id/relative_mse", "OOD": "ood/relative_mse"}
MIN_POINTS = 20  # the donut has 50 scores, a smoke 6
ERROR = "relative error"  # the whole label is longer than a card is high
CARD = 3.25, 1.55  # inches, without the legend
CARD_DPI, CARD_SAMPLES = 200, 4
# Flags of HParams, beside those that do not have their default.
SETTINGS = "dataset region encoding model depth width epochs seed".split()


class RunSummaries:
    """Writes the summaries of one run into its folder."""

    def __init__(self, config: RunConfig, dataset: Dataset) -> None:
        self._writer = tf.summary.create_file_writer(config.run_dir)
        self._config, self._dataset = config, dataset
        is_complete = dataset.splits.is_complete
        self._has_maps = is_complete and bool(dataset.planes)
        self._has_curves = is_complete and bool(list_curves(dataset.space))

    def write_settings(self) -> None:
        """Writes hyperparameters off their defaults, and errors to show."""
        defaults, config = RunConfig().identity(), self._config
        settings = {
            flag: value
            for flag, value in config.identity().items()
            if flag in SETTINGS or value != defaults.get(flag)
        }
        with self._writer.as_default(step=0):
            hparams.hparams(settings, trial_id=config.run_name)
            if Path(config.log_dir).name != TRIALS:  # which the sweep describes
                columns = [
                    hparams.HParam(name, hparams.Discrete([value]))
                    for name, value in settings.items()
                ]
                errors = [hparams.Metric(tag) for tag in ERRORS.values()]
                hparams.hparams_config(columns, errors)

    def write_scalars(
        self, epoch: int, numbers: Mapping[str, float | None], every: int = 0
    ) -> None:
        """Writes numbers by tag, such as `ood/mse`, that are not None."""
        epochs = self._config.training.epochs
        if epoch < epochs < MIN_POINTS * every:
            return
        summary = Summary()
        for tag, value in numbers.items():
            if value is not None:
                summary.MergeFrom(scalar_pb(tag, value))
        # `tf.summary.scalar` takes 3 ms for each number.
        with self._writer.as_default(step=epoch):
            content = summary.SerializeToString()
            tf.summary.experimental.write_raw_pb(content)

    def write_pictures(
        self,
        epoch: int,
        evaluation: Evaluation,
        history: Mapping[int, Mapping[str, float]],
    ) -> None:
        """Writes errors so far, samples (at the end a file), and landscapes."""
        if not self._config.pictures:
            return
        dataset, splits = self._dataset, self._dataset.splits
        subsets = {"id": splits.is_id, "ood": splits.is_ood}
        names = [name for name, chosen in subsets.items() if chosen.any()]
        with self._draw_cards(epoch):
            errors = self._draw_errors(epoch, evaluation, history)
            write_figure("answer/errors", errors)
            for name in names:
                # Without a title, which the tag has; images are larger.
                figure = pictures.picture_samples(
                    dataset, evaluation, name, "", CARD_SAMPLES
                )
                write_figure(f"answer/samples_{name}", figure)
            if self._has_maps:
                planes = dataset.planes[:1]
                figure = pictures.picture_landscape(
                    dataset, evaluation, planes, ERROR
                )
                write_figure("answer/map", figure)
            if self._has_curves:
                figure = pictures.picture_error_curve(dataset, evaluation)
                write_figure("answer/curve", figure)
        if epoch == self._config.training.epochs:
            with go_on_without_pictures("samples"), use_own_style():
                self._write_samples(evaluation, names)

    def _write_samples(
        self, evaluation: Evaluation, names: Sequence[str]
    ) -> None:
        samples = []
        for name in names:
            title = f"{self._config.run_name}, {name.upper()}"
            figure = pictures.picture_samples(
                self._dataset, evaluation, name, title
            )
            samples.append(figure_to_array(figure))
        path = Path(self._config.run_dir, SAMPLES_FILE)
        write_bytes(path, stack_to_png(samples))

    @contextlib.contextmanager
    def _draw_cards(self, epoch: int) -> Iterator[None]:
        """Makes figures of the block fit TensorBoard's cards."""
        with (
            go_on_without_pictures(f"epoch {epoch}"),
            self._writer.as_default(step=epoch),
            use_own_style(),
            fit_width(*CARD),
        ):
            yield

    def _draw_errors(
        self,
        epoch: int,
        evaluation: Evaluation,
        history: Mapping[int, Mapping[str, float]],
    ) -> Figure:
        """Draws ID and OOD errors in two colors, with their last values."""
        rows = {e: row for e, row in history.items() if e < epoch}
        rows[epoch] = {
            tag: math.nan if value is None else value
            for tag, value in evaluation.tagged.items()
        }
        tags = [tag for tag in ERRORS.values() if tag in rows[epoch]]
        scored = [e for e in sorted(rows) if set(tags) <= rows[e].keys()]
        series = {
            f"{subset} {rows[epoch][tag]:.3g}": [rows[e][tag] for e in scored]
            for subset, tag in ERRORS.items()
            if tag in tags
        }
        table = pd.DataFrame(series, scored)
        return draw_curves(table, xlabel="epoch", ylabel=ERROR, logy=True)

    def write_layers(self, epoch: int, analysis: LayerAnalysis) -> None:
        """Writes geometry and probes of all stages, and log-volume maps."""
        self.write_stages(epoch, analysis.summary)
        if not (self._has_maps and self._config.pictures):
            return
        with self._draw_cards(epoch):
            for stage, values in analysis.log_volume.items():
                named = {f"log volume, {stage}": values}
                figure = pictures.picture_volumes(self._dataset, named)
                write_figure(f"stage_log_volume_map/{stage}", figure)

    def write_stages(
        self, epoch: int, summary: Mapping[str, Mapping[str, float | None]]
    ) -> None:
        """Writes numbers by stage, of metrics with a chart."""
        metrics = list_metrics("stage", "stages")
        numbers = {
            f"stage_{metric.name}/{stage}": found.get(metric.name)
            for metric in metrics
            if metric.chart is not None
            for stage, found in summary.items()
        }
        self.write_scalars(epoch, numbers, self._config.layerwise_every)

    def write_embeddings(
        self, epoch: int, embeddings: dict[str, EmbeddingAnalysis], drawn: bool
    ) -> None:
        """Writes rank and penalties of embeddings; pictures if `drawn`."""
        numbers = {
            f"embedding_{number}/{name}": value
            for name, embedding in embeddings.items()
            for number, value in embedding.summary.items()
        }
        self.write_scalars(epoch, numbers, self._config.eval_every)
        if not (drawn and self._config.pictures):
            return
        with self._draw_cards(epoch):
            for name, embedding in embeddings.items():
                factor = self._dataset.space[name]
                figures = pictures.picture_embedding(factor, embedding)
                for kind, figure in figures.items():
                    write_figure(f"{kind}/{name}", figure)

    def close(self) -> None:
        self._writer.close()


@contextlib.contextmanager
def go_on_without_pictures(subject: str) -> Iterator[None]:
    """Makes a picture that fails a note: the numbers of a run are kept.

    Raises:
        OSError, MemoryError: There is no room left, for numbers either.
    """
    try:
        yield
    except Exception as error:
        if isinstance(error, MemoryError) or is_exhausted(error):
            raise
        reason = describe_plugin_error(error)
        print(f"note: no pictures of {subject}: {reason}", file=sys.stderr)


def write_figure(tag: str, figure: Figure) -> None:
    """Writes a matplotlib figure as an image summary."""
    tf.summary.image(tag, figure_to_array(figure, CARD_DPI)[np.newaxis])
