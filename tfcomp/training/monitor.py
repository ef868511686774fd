"""What a run shows while it is trained: TensorBoard, `history.csv`, outputs.

TensorBoard smooths curves: the last of a few points is drawn far from its value
(by a factor of two in a short run). So scores that are computed less than
`MIN_POINTS` times are written at the last epoch alone; the picture
`answer/errors` has their curve. docs/tutorials/donut.md shows all of them.
"""

import contextlib
import sys
from collections.abc import Iterator, Mapping, Sequence, Set
from pathlib import Path
from typing import Any

import keras
import numpy as np
import pandas as pd
import tensorflow as tf
from matplotlib.figure import Figure
from tensorboard.compat.proto.summary_pb2 import Summary
from tensorboard.plugins.hparams import api as hparams
from tensorboard.plugins.scalar.summary_v2 import scalar_pb

from tfcomp.config.errors import describe_plugin_error, is_exhausted
from tfcomp.config.run_config import RunConfig
from tfcomp.datasets import Dataset, solvable
from tfcomp.datasets.grid_maps import list_curves
from tfcomp.datasets.views import subsample_levels
from tfcomp.figures import image_files, pictures
from tfcomp.figures.curve_plots import draw_curves
from tfcomp.figures.exhibits import (
    figure_to_array,
    fit_width,
    stack_to_png,
    use_own_style,
)
from tfcomp.metrics.embeddings import EmbeddingAnalysis
from tfcomp.metrics.interaction import WATCHED_POINTS
from tfcomp.metrics.point_scores import Evaluation, compute_error_ratio
from tfcomp.metrics.references import score_certified, score_references
from tfcomp.metrics.registry import list_metrics
from tfcomp.metrics.run_analysis import LayerAnalysis, RunAnalysis
from tfcomp.storage.files import (
    DamagedFileError,
    open_log,
    write_bytes,
    write_csv,
)
from tfcomp.storage.run_folder import (
    HISTORY_FILE,
    SAMPLES_FILE,
    TRIALS,
    read_history,
)
from tfcomp.training.prepared_models import PreparedModels, count_steps

ERRORS = {"ID": "id/relative_mse", "OOD": "ood/relative_mse"}
MIN_POINTS = 20  # the donut has 50 scores, a smoke 6
ERROR = "relative error"  # the whole label is longer than a card is high
CARD = (3.25, 1.55)  # inches, without the legend
CARD_DPI = 200
CARD_SAMPLES = 4
# Flags of HParams, beside those that do not have their default.
SETTINGS = "dataset region encoding model depth width epochs seed".split()


class Monitor(keras.callbacks.Callback):
    """Scores every `eval_every` epochs, layers every `layerwise_every`.

    Args:
        config: The run.
        models: Its models, of which the observed one is evaluated.
        dataset: Its data.
    """

    def __init__(
        self,
        config: RunConfig,
        models: PreparedModels,
        dataset: Dataset,
    ) -> None:
        super().__init__()
        self._config = config
        self._models = models
        self._dataset = dataset
        self._folder = Path(config.run_dir)
        self._summaries = RunSummaries(config, dataset)
        self._summaries.write_settings()
        self.history = History(self._folder)
        training = config.training
        self._examples = count_steps(training, dataset) * training.batch_size
        self._kept = _spread_epochs(training.epochs, config.keep_outputs)

    def reads_weights(self, done: int) -> bool:
        """Returns True if the network is evaluated after `done` epochs."""
        return (
            done in self._kept
            or _is_due(done, self._config.eval_every)
            or _is_due(done, self._config.layerwise_every)
        )

    def on_epoch_end(self, epoch: int, logs: dict[str, Any]) -> None:
        """Writes the loss, and the scores that are due, which join `logs`."""
        done = epoch + 1
        numbers = {"train/loss": logs["loss"]}
        speed = {"train/examples_per_second": self._examples / logs["seconds"]}
        self._summaries.write_scalars(done, numbers | speed)
        if done == self._config.training.epochs:  # `finish` evaluates
            self.history.add(done, numbers)
            return

        if done in self._kept:
            self._keep_outputs(done)
        layers_due = _is_due(done, self._config.layerwise_every)
        if layers_due or _is_due(done, self._config.eval_every):
            _, evaluation = self._evaluate(done, layers_due)
            numbers |= evaluation.tagged
            logs |= evaluation.tagged  # for user callbacks, which come after
        self.history.add(done, numbers)

    def _keep_outputs(self, epoch: int) -> None:
        """Writes the present outputs, for the explorer."""
        self._models.observe()
        dataset = subsample_levels(self._dataset)
        points = dataset.splits.grid
        images = self._models.traced.predict(points)
        evaluation = Evaluation(images, dataset.grid_images, {})
        errors = compute_error_ratio(dataset, evaluation)
        image_files.write_outputs(self._folder, epoch, points, images, errors)

    def _analyze(self) -> RunAnalysis:
        """Makes the analysis of the network as it is now."""
        models = self._models
        models.observe()
        return RunAnalysis(models.traced, self._dataset, seed=models.seed)

    def score_errors(self) -> dict[str, float | None]:
        """Computes the relative errors of the network by subset."""
        scores = self._analyze().evaluation.scores
        return {subset: row["relative_mse"] for subset, row in scores.items()}

    def finish(self) -> dict[str, Any]:
        """Returns metrics of the trained network and reference predictors."""
        epochs = self._config.training.epochs
        dataset = self._dataset
        metrics, evaluation = self._evaluate(epochs, with_layers=True)
        self.history.add(epochs, evaluation.tagged)
        self._write_preview(evaluation)
        self._summaries.close()

        metrics["reference"] = dataset.reference_label
        metrics["references"] = score_references(dataset, evaluation.truth)
        certificates = solvable.certify_dataset(dataset)
        metrics["certificate"] = solvable.summarize_certificates(
            dataset, certificates
        )
        metrics["explained"] = solvable.explain_training(dataset)
        metrics["r2"] = score_certified(dataset, evaluation, certificates[1])
        channels = measure_factors(self._models.trained)
        if channels:
            metrics["channels"] = channels
        return metrics

    def _write_preview(self, evaluation: Evaluation) -> None:
        """Writes held-out images and outputs for the page of a sweep."""
        dataset = self._dataset
        subset = dataset.splits.is_ood
        if not subset.any():
            subset = dataset.splits.is_id
        rows = pictures.choose_spread(np.flatnonzero(subset))
        if not len(rows):
            return

        strips = []
        for images in (evaluation.truth, evaluation.images):
            strip = dataset.to_pictures(images[rows])
            if dataset.first_row == "bottom":
                strip = strip[:, ::-1]
            strips.append(strip)
        titles = pictures.title_points(dataset, rows)
        image_files.write_preview(self._folder, titles, strips)

    def _evaluate(
        self,
        epoch: int,
        with_layers: bool,
    ) -> tuple[dict[str, Any], Evaluation]:
        """Writes scores and embeddings; `with_layers` stages and pictures."""
        analysis = self._analyze()
        evaluation = analysis.evaluation
        summaries = self._summaries
        tagged = evaluation.tagged
        summaries.write_scalars(epoch, tagged, self._config.eval_every)
        metrics: dict[str, Any] = dict(evaluation.scores)
        if with_layers:
            summaries.write_pictures(epoch, evaluation, self.history.rows)
            summaries.write_layers(epoch, analysis.layers)
            if self._config.layerwise_every:
                shares = analysis.measure_interactions(WATCHED_POINTS)
                summaries.write_stages(epoch, shares)
            metrics["layers"] = analysis.layers.summary
            if analysis.nondifferentiable:
                metrics["differences"] = analysis.nondifferentiable

        embeddings = analysis.embeddings
        summaries.write_embeddings(epoch, embeddings, with_layers)
        if embeddings:
            metrics["embeddings"] = {
                name: embedding.summary
                for name, embedding in embeddings.items()
            }
        return metrics, evaluation


def _spread_epochs(epochs: int, count: int) -> set[int]:
    """Chooses epochs whose outputs are kept; the network has the last ones."""
    spread = {round(k * epochs / count) for k in range(1, count)}
    return spread - {0, epochs}


def _is_due(done: int, every: int) -> bool:
    return every > 0 and done % every == 0


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


class History:
    """`history.csv`, loss and scores by epoch; a resumed run continues it.

    Args:
        folder: The folder of the run.
    """

    def __init__(self, folder: Path) -> None:
        self._path = folder / HISTORY_FILE
        self.copy(folder)

    def copy(self, source: Path) -> None:
        """Replaces the curves by the ones of a folder."""
        self.rows: dict[int, dict[str, float]] = {}
        self._tags: Set[str] = frozenset()  # columns of the written file
        path = source / HISTORY_FILE
        if not path.exists():
            return
        try:
            self.rows = read_history(path)
        except DamagedFileError as error:
            print(f"note: no curves from {path} ({error})", file=sys.stderr)

    def add(self, epoch: int, numbers: Mapping[str, float | None]) -> None:
        """Adds the float32 numbers of TensorBoard, and drops later rows.

        Args:
            epoch: The number of epochs that are trained.
            numbers: Numbers by tag; those that are None are left out.
        """
        row = {}
        for tag, number in numbers.items():
            if number is not None:
                row[tag] = float(np.float32(number))
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
        empty: dict[str, Any] = {}
        for row in self.rows.values():
            empty |= dict.fromkeys(row)
        self._tags = empty.keys()
        table = [{"epoch": e, **empty, **row} for e, row in self.rows.items()]
        write_csv(self._path, table)


class RunSummaries:
    """Writes the TensorBoard summaries of one run into its folder.

    Args:
        config: The run.
        dataset: Its data.
    """

    def __init__(self, config: RunConfig, dataset: Dataset) -> None:
        self._writer = tf.summary.create_file_writer(config.run_dir)
        self._config = config
        self._dataset = dataset
        is_complete = dataset.splits.is_complete
        self._has_maps = is_complete and bool(dataset.planes)
        self._has_curves = is_complete and bool(list_curves(dataset.space))

    def write_settings(self) -> None:
        """Writes hyperparameters off their defaults, and errors to show."""
        defaults = RunConfig().identity()
        settings = {}
        for flag, value in self._config.identity().items():
            if flag in SETTINGS or value != defaults.get(flag):
                settings[flag] = value
        with self._writer.as_default(step=0):
            hparams.hparams(settings, trial_id=self._config.run_name)
            if Path(self._config.log_dir).name == TRIALS:
                return  # the sweep describes them
            columns = []
            for name, value in settings.items():
                columns.append(hparams.HParam(name, hparams.Discrete([value])))
            errors = [hparams.Metric(tag) for tag in ERRORS.values()]
            hparams.hparams_config(columns, errors)

    def write_scalars(
        self,
        epoch: int,
        numbers: Mapping[str, float | None],
        every: int = 0,
    ) -> None:
        """Writes numbers by tag, such as `ood/mse`.

        Args:
            epoch: The number of epochs that are trained.
            numbers: Numbers by tag; those that are None are left out.
            every: Epochs from one of these numbers to the next.
        """
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
        """Writes errors so far, samples (at the end a file), and landscapes.

        Args:
            epoch: The number of epochs that are trained.
            evaluation: The outputs, and their scores.
            history: Numbers of earlier epochs, by epoch and tag.
        """
        if not self._config.pictures:
            return
        dataset = self._dataset
        subsets = []
        if dataset.splits.is_id.any():
            subsets.append("id")
        if dataset.splits.is_ood.any():
            subsets.append("ood")

        with self._plot_cards(epoch):
            errors = plot_errors(epoch, evaluation, history)
            write_figure("answer/errors", errors)
            for subset in subsets:
                # Without a title, which the tag has; images are larger.
                samples = pictures.picture_samples(
                    dataset, evaluation, subset, "", CARD_SAMPLES
                )
                write_figure(f"answer/samples_{subset}", samples)
            if self._has_maps:
                landscape = pictures.picture_landscape(
                    dataset, evaluation, dataset.planes[:1], ERROR
                )
                write_figure("answer/map", landscape)
            if self._has_curves:
                curve = pictures.picture_error_curve(dataset, evaluation)
                write_figure("answer/curve", curve)
        if epoch == self._config.training.epochs:
            with go_on_without_pictures("samples"), use_own_style():
                self._write_samples(evaluation, subsets)

    def _write_samples(
        self,
        evaluation: Evaluation,
        subsets: Sequence[str],
    ) -> None:
        samples = []
        for subset in subsets:
            title = f"{self._config.run_name}, {subset.upper()}"
            figure = pictures.picture_samples(
                self._dataset, evaluation, subset, title
            )
            samples.append(figure_to_array(figure))
        path = Path(self._config.run_dir, SAMPLES_FILE)
        write_bytes(path, stack_to_png(samples))

    @contextlib.contextmanager
    def _plot_cards(self, epoch: int) -> Iterator[None]:
        """Makes figures of the block fit TensorBoard's cards."""
        with (
            go_on_without_pictures(f"epoch {epoch}"),
            self._writer.as_default(step=epoch),
            use_own_style(),
            fit_width(*CARD),
        ):
            yield

    def write_layers(self, epoch: int, analysis: LayerAnalysis) -> None:
        """Writes geometry and probes of all stages, and log-volume maps.

        Args:
            epoch: The number of epochs that are trained.
            analysis: Numbers and log-volumes of the stages.
        """
        self.write_stages(epoch, analysis.summary)
        if not (self._has_maps and self._config.pictures):
            return
        with self._plot_cards(epoch):
            for stage, values in analysis.log_volume.items():
                named = {f"log volume, {stage}": values}
                figure = pictures.picture_volumes(self._dataset, named)
                write_figure(f"stage_log_volume_map/{stage}", figure)

    def write_stages(
        self,
        epoch: int,
        summary: Mapping[str, Mapping[str, float | None]],
    ) -> None:
        """Writes numbers by stage, of metrics with a chart.

        Args:
            epoch: The number of epochs that are trained.
            summary: Numbers by stage and metric.
        """
        numbers = {}
        for metric in list_metrics("stage", "stages"):
            if metric.chart is None:
                continue
            for stage, row in summary.items():
                tag = f"stage_{metric.name}/{stage}"
                numbers[tag] = row.get(metric.name)
        self.write_scalars(epoch, numbers, self._config.layerwise_every)

    def write_embeddings(
        self,
        epoch: int,
        embeddings: dict[str, EmbeddingAnalysis],
        with_pictures: bool,
    ) -> None:
        """Writes rank and penalties of embeddings.

        Args:
            epoch: The number of epochs that are trained.
            embeddings: Results by factor.
            with_pictures: Writes pictures, too.
        """
        numbers = {}
        for name, embedding in embeddings.items():
            for number, value in embedding.summary.items():
                numbers[f"embedding_{number}/{name}"] = value
        self.write_scalars(epoch, numbers, self._config.eval_every)
        if not (with_pictures and self._config.pictures):
            return
        with self._plot_cards(epoch):
            for name, embedding in embeddings.items():
                factor = self._dataset.space[name]
                figures = pictures.picture_embedding(factor, embedding)
                for kind, figure in figures.items():
                    write_figure(f"{kind}/{name}", figure)

    def close(self) -> None:
        """Closes the file."""
        self._writer.close()


def plot_errors(
    epoch: int,
    evaluation: Evaluation,
    history: Mapping[int, Mapping[str, float]],
) -> Figure:
    """Plots ID and OOD errors in two colors, with their last values.

    Args:
        epoch: The number of epochs that are trained.
        evaluation: The scores at this epoch.
        history: Numbers of earlier epochs, by epoch and tag.
    """
    scores = evaluation.tagged
    tags = [tag for tag in ERRORS.values() if tag in scores]
    rows: dict[int, Mapping[str, float | None]] = {}
    for earlier in sorted(history):
        if earlier < epoch and history[earlier].keys() >= set(tags):
            rows[earlier] = history[earlier]
    rows[epoch] = scores

    series = {}
    for subset, tag in ERRORS.items():
        if tag in tags:
            values = np.array([row[tag] for row in rows.values()], float)
            series[f"{subset} {values[-1]:.3g}"] = values
    table = pd.DataFrame(series, list(rows))
    return draw_curves(table, xlabel="epoch", ylabel=ERROR, logy=True)


@contextlib.contextmanager
def go_on_without_pictures(subject: str) -> Iterator[None]:
    """Makes a picture that fails a note: the numbers of a run are kept.

    Args:
        subject: What the pictures show.

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
    """Writes a matplotlib figure as an image summary.

    Args:
        tag: The name of the summary.
        figure: The figure.
    """
    image = figure_to_array(figure, CARD_DPI)
    tf.summary.image(tag, image[np.newaxis])
