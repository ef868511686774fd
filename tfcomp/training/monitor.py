"""What a run shows while it is trained: TensorBoard, `history.csv`, outputs.

Every number that an evaluation computes is a scalar at its epoch. Pictures show
the trained network alone: to draw them takes longer than to compute numbers.
docs/tutorials/donut.md shows all of them.
"""

import contextlib
import sys
from collections.abc import Iterator, Mapping, Sequence, Set
from pathlib import Path
from typing import Any

import keras
import numpy as np
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
from tfcomp.metrics.run_analysis import RunAnalysis
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

# TensorBoard shows the first group of its alphabet on top.
ANSWERS = {
    "id/relative_mse": "answer/id_error",
    "ood/relative_mse": "answer/ood_error",
}
ERROR = "relative MSE"  # the whole label is longer than a card is high
CARD = (3.25, 1.55)  # inches, without the legend
CARD_DPI = 200
CARD_SAMPLES = 4
# Flags of HParams, beside those that do not have their default.
SETTINGS = "dataset region encoding model depth width epochs seed".split()


class Monitor(keras.callbacks.Callback):
    """Scores every `eval_every` epochs, layers every `layerwise_every`.

    Args:
        config: The run.
        models: Its models; the observed one is evaluated.
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
        num_steps = count_steps(training, dataset)
        self._num_examples = num_steps * training.batch_size
        self._kept = _spread_epochs(training.epochs, config.keep_outputs)

    def reads_weights(self, done: int) -> bool:
        """Returns True if the network is evaluated after `done` epochs.

        Args:
            done: The number of epochs that are trained.
        """
        if done in self._kept:
            return True
        if _is_due(done, self._config.eval_every):
            return True
        return _is_due(done, self._config.layerwise_every)

    def on_epoch_end(self, epoch: int, logs: dict[str, Any]) -> None:
        """Writes the loss, and the scores that are due, which join `logs`.

        Args:
            epoch: The epoch, counted from 0.
            logs: The logs of Keras, with `loss` and `seconds`.
        """
        done = epoch + 1
        numbers = {"train/loss": logs["loss"]}
        speed = self._num_examples / logs["seconds"]
        scalars = {**numbers, "train/examples_per_second": speed}
        self._summaries.write_scalars(done, scalars)
        if done == self._config.training.epochs:  # `finish` evaluates
            self.history.add(done, numbers)
            return

        if done in self._kept:
            self._keep_outputs(done)
        layers_due = _is_due(done, self._config.layerwise_every)
        scores_due = _is_due(done, self._config.eval_every)
        if layers_due or scores_due:
            analysis = self._analyze()
            self._write_numbers(done, analysis, layers_due)
            scores = analysis.evaluation.tagged
            numbers |= scores
            logs |= scores  # for user callbacks, which come after
        self.history.add(done, numbers)

    def _keep_outputs(self, epoch: int) -> None:
        """Writes the present outputs, for the explorer."""
        self._models.observe()
        dataset = subsample_levels(self._dataset)
        points = dataset.splits.grid
        images = self._models.traced.predict(points)
        evaluation = Evaluation(
            images=images,
            truth=dataset.grid_images,
            scores={},
        )
        errors = compute_error_ratio(dataset, evaluation)
        image_files.write_outputs(
            self._folder,
            epoch,
            points,
            images,
            errors,
        )

    def _analyze(self) -> RunAnalysis:
        """Makes the analysis of the network as it is now."""
        models = self._models
        models.observe()
        return RunAnalysis(
            models.traced,
            self._dataset,
            seed=models.seed,
        )

    def score_errors(self) -> dict[str, float | None]:
        """Computes the relative errors of the network by subset."""
        evaluation = self._analyze().evaluation
        errors = {}
        for subset, row in evaluation.scores.items():
            errors[subset] = row["relative_mse"]
        return errors

    def finish(self) -> dict[str, Any]:
        """Returns metrics of the trained network and reference predictors."""
        epochs = self._config.training.epochs
        analysis = self._analyze()
        evaluation = analysis.evaluation
        self._write_numbers(epochs, analysis, with_layers=True)
        self.history.add(epochs, evaluation.tagged)
        if self._config.pictures:
            self._summaries.write_pictures(analysis)
        self._write_preview(evaluation)
        self._summaries.close()

        metrics = _collect_numbers(analysis)
        metrics |= self._describe_task(evaluation)
        channels = measure_factors(self._models.trained)
        if channels:
            metrics["channels"] = channels
        return metrics

    def _describe_task(self, evaluation: Evaluation) -> dict[str, Any]:
        """Returns what `metrics.json` says of references and certificates."""
        dataset = self._dataset
        truth = evaluation.truth
        certificates = solvable.certify_dataset(dataset)
        summary = solvable.summarize_certificates(dataset, certificates)
        first = certificates[1]
        facts: dict[str, Any] = {"reference": dataset.reference_label}
        facts["references"] = score_references(dataset, truth)
        facts["certificate"] = summary
        facts["explained"] = solvable.explain_training(dataset)
        facts["r2"] = score_certified(dataset, evaluation, first)
        return facts

    def _write_preview(self, evaluation: Evaluation) -> None:
        """Writes held-out images and outputs for the page of a sweep."""
        dataset = self._dataset
        subset = dataset.splits.is_ood
        if not subset.any():
            subset = dataset.splits.is_id
        points = np.flatnonzero(subset)
        rows = pictures.choose_spread(points)
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

    def _write_numbers(
        self,
        epoch: int,
        analysis: RunAnalysis,
        with_layers: bool,
    ) -> None:
        """Writes scores and embeddings as scalars; `with_layers` stages."""
        summaries = self._summaries
        summaries.write_scores(epoch, analysis.evaluation.tagged)
        summaries.write_embeddings(epoch, analysis.embeddings)
        if not with_layers:
            return
        summaries.write_stages(epoch, analysis.layers.summary)
        if self._config.layerwise_every:
            shares = analysis.measure_interactions(WATCHED_POINTS)
            summaries.write_stages(epoch, shares)


def _collect_numbers(analysis: RunAnalysis) -> dict[str, Any]:
    """Returns what `metrics.json` says of outputs, stages and embeddings."""
    metrics: dict[str, Any] = dict(analysis.evaluation.scores)
    metrics["layers"] = analysis.layers.summary
    if analysis.nondifferentiable:
        metrics["differences"] = analysis.nondifferentiable

    embeddings = {}
    for name, embedding in analysis.embeddings.items():
        embeddings[name] = embedding.summary
    if embeddings:
        metrics["embeddings"] = embeddings
    return metrics


def _spread_epochs(epochs: int, count: int) -> set[int]:
    """Chooses epochs whose outputs are kept; the network has the last ones."""
    spread = set()
    for part in range(1, count):
        epoch = round(part * epochs / count)
        spread.add(epoch)
    return spread - {0, epochs}


def _is_due(done: int, every: int) -> bool:
    return every > 0 and done % every == 0


def measure_factors(model: keras.Model) -> dict[str, dict[str, float]]:
    """Returns what layers with a method `measure_factors` say of factors.

    Args:
        model: A model; any of its layers may have the method
            `measure_factors()`: a dictionary of numbers by factor.
    """
    numbers: dict[str, dict[str, float]] = {}
    for layer in model.layers:
        measure = getattr(layer, "measure_factors", None)
        if measure is not None:
            numbers |= measure()
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
        """Replaces the curves by the ones of a folder.

        Args:
            source: The folder with `history.csv`.
        """
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
                single = np.float32(number)
                row[tag] = float(single)

        last_epoch = max(self.rows, default=epoch)
        is_new_epoch = epoch > last_epoch
        if is_new_epoch and self._tags >= row.keys():
            self.rows[epoch] = row
            self._append_row(epoch)
            return

        kept_rows = {}
        for earlier, old_row in self.rows.items():
            if earlier <= epoch:
                kept_rows[earlier] = old_row
        old_numbers = kept_rows.get(epoch, {})
        kept_rows[epoch] = old_numbers | row
        self.rows = kept_rows
        self._write_rows()

    def _append_row(self, epoch: int) -> None:
        """Appends, since to write all of a thousand rows takes seconds."""
        row = self.rows[epoch]
        cells = [str(epoch)]
        for tag in self._tags:
            cell = row.get(tag, "")
            cells.append(str(cell))
        line = ",".join(cells)
        with open_log(self._path) as file:
            file.write(f"{line}\n".encode())

    def _write_rows(self) -> None:
        empty: dict[str, Any] = {}
        for row in self.rows.values():
            empty |= dict.fromkeys(row)
        self._tags = empty.keys()

        table = []
        for epoch, row in self.rows.items():
            cells = {"epoch": epoch, **empty, **row}
            table.append(cells)
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
        self._has_maps = False
        self._has_curves = False
        if dataset.splits.is_complete:
            self._has_maps = bool(dataset.planes)
            self._has_curves = bool(list_curves(dataset.space))

    def write_settings(self) -> None:
        """Writes hyperparameters off their defaults, and errors to show."""
        config = self._config
        defaults = RunConfig().identity()
        settings = {}
        for flag, value in config.identity().items():
            is_default = value == defaults.get(flag)
            if flag in SETTINGS or not is_default:
                settings[flag] = value

        columns = []
        for name, value in settings.items():
            domain = hparams.Discrete([value])
            columns.append(hparams.HParam(name, domain))
        errors = [hparams.Metric(tag) for tag in ANSWERS]
        log_folder = Path(config.log_dir).name
        is_trial = log_folder == TRIALS

        with self._writer.as_default(step=0):
            hparams.hparams(settings, trial_id=config.run_name)
            if not is_trial:  # a sweep describes its trials
                hparams.hparams_config(columns, errors)

    def write_scalars(
        self,
        epoch: int,
        numbers: Mapping[str, float | None],
    ) -> None:
        """Writes numbers by tag, such as `ood/mse`.

        Args:
            epoch: The number of epochs that are trained.
            numbers: Numbers by tag; those that are None are left out.
        """
        summary = Summary()
        for tag, value in numbers.items():
            if value is not None:
                scalar = scalar_pb(tag, value)
                summary.MergeFrom(scalar)
        # `tf.summary.scalar` takes 3 ms for each number.
        with self._writer.as_default(step=epoch):
            content = summary.SerializeToString()
            tf.summary.experimental.write_raw_pb(content)

    def write_scores(
        self,
        epoch: int,
        scores: Mapping[str, float | None],
    ) -> None:
        """Writes scores, and the errors again as the answer, on top.

        Args:
            epoch: The number of epochs that are trained.
            scores: Scores by tag.
        """
        answers = {}
        for tag, answer in ANSWERS.items():
            answers[answer] = scores.get(tag)
        self.write_scalars(epoch, answers)
        self.write_scalars(epoch, scores)

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
        metrics = list_metrics("stage", "stages")
        for metric in metrics:
            if metric.chart is None:
                continue
            for stage, row in summary.items():
                tag = f"stage_{metric.name}/{stage}"
                numbers[tag] = row.get(metric.name)
        self.write_scalars(epoch, numbers)

    def write_embeddings(
        self,
        epoch: int,
        embeddings: Mapping[str, EmbeddingAnalysis],
    ) -> None:
        """Writes rank and penalties of embeddings.

        Args:
            epoch: The number of epochs that are trained.
            embeddings: Results by factor.
        """
        numbers = {}
        for name, embedding in embeddings.items():
            for number, value in embedding.summary.items():
                numbers[f"embedding_{number}/{name}"] = value
        self.write_scalars(epoch, numbers)

    def write_pictures(self, analysis: RunAnalysis) -> None:
        """Writes samples, also as a file, and maps of the trained network.

        Args:
            analysis: Results of the trained network.
        """
        evaluation = analysis.evaluation
        splits = self._dataset.splits
        subsets = []
        if splits.is_id.any():
            subsets.append("id")
        if splits.is_ood.any():
            subsets.append("ood")

        with self._plot_cards("the answer"):
            self._plot_answer(evaluation, subsets)
        with self._plot_cards("the stages"):
            self._plot_volumes(analysis.layers.log_volume)
        with self._plot_cards("the embeddings"):
            self._plot_embeddings(analysis.embeddings)
        with go_on_without_pictures("samples"), use_own_style():
            self._write_samples(evaluation, subsets)

    @contextlib.contextmanager
    def _plot_cards(self, subject: str) -> Iterator[None]:
        """Makes figures of the block fit TensorBoard's cards."""
        last_epoch = self._config.training.epochs
        with (
            go_on_without_pictures(subject),
            self._writer.as_default(step=last_epoch),
            use_own_style(),
            fit_width(*CARD),
        ):
            yield

    def _plot_answer(
        self,
        evaluation: Evaluation,
        subsets: Sequence[str],
    ) -> None:
        dataset = self._dataset
        if self._has_maps:
            landscape = pictures.picture_landscape(
                dataset,
                evaluation,
                planes=dataset.planes[:1],
                label=ERROR,
            )
            write_figure("answer/map", landscape)
        if self._has_curves:
            curve = pictures.picture_error_curve(dataset, evaluation)
            write_figure("answer/curve", curve)
        for subset in subsets:
            # Without a title, which the tag has; images are larger.
            samples = pictures.picture_samples(
                dataset,
                evaluation,
                subset,
                title="",
                count=CARD_SAMPLES,
            )
            write_figure(f"answer/samples_{subset}", samples)

    def _plot_volumes(self, log_volume: Mapping[str, np.ndarray]) -> None:
        if not self._has_maps:
            return
        for stage, values in log_volume.items():
            named = {f"log volume, {stage}": values}
            figure = pictures.picture_volumes(self._dataset, named)
            write_figure(f"stage_log_volume_map/{stage}", figure)

    def _plot_embeddings(
        self,
        embeddings: Mapping[str, EmbeddingAnalysis],
    ) -> None:
        for name, embedding in embeddings.items():
            factor = self._dataset.space[name]
            figures = pictures.picture_embedding(factor, embedding)
            for kind, figure in figures.items():
                write_figure(f"{kind}/{name}", figure)

    def _write_samples(
        self,
        evaluation: Evaluation,
        subsets: Sequence[str],
    ) -> None:
        samples = []
        for subset in subsets:
            title = f"{self._config.run_name}, {subset.upper()}"
            figure = pictures.picture_samples(
                self._dataset,
                evaluation,
                subset,
                title,
            )
            array = figure_to_array(figure)
            samples.append(array)
        path = Path(self._config.run_dir, SAMPLES_FILE)
        content = stack_to_png(samples)
        write_bytes(path, content)

    def close(self) -> None:
        """Closes the file."""
        self._writer.close()


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
    images = image[np.newaxis]
    tf.summary.image(tag, images)
