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
from tfcomp.datasets.views import subsample_levels
from tfcomp.figures import image_files, pictures
from tfcomp.figures.curve_plots import title_stage
from tfcomp.figures.exhibits import (
    figure_to_array,
    fit_width,
    stack_to_png,
    use_own_style,
)
from tfcomp.metrics.embeddings import EmbeddingAnalysis
from tfcomp.metrics.interaction import WATCHED_POINTS
from tfcomp.metrics.references import score_certified, score_references
from tfcomp.metrics.registry import list_metrics
from tfcomp.metrics.run_analysis import RunAnalysis
from tfcomp.metrics.scores import Evaluation, compute_error_ratio
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

# The errors that answer a run's question, and their second tags. TensorBoard
# sorts groups of tags, so that `answer` is on top.
ANSWERS = {
    "id/relative_mse": "answer/id_error",
    "ood/relative_mse": "answer/ood_error",
}
ERROR = "relative MSE"  # the complete label is longer than a card is high
CARD = (3.25, 1.55)  # inches, without the legend
CARD_DPI = 200
CARD_SAMPLES = 4
# Flags that TensorBoard's page HParams always has; it also has every flag with
# a value other than its default.
SETTINGS = "dataset region encoding model depth width epochs seed".split()


class Monitor(keras.callbacks.Callback):
    """Evaluates the network while it is trained, and writes the results.

    Images are scored every `eval_every` epochs, stages every `layerwise_every`.

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
        self._examples_per_epoch = num_steps * training.batch_size
        # The epochs whose outputs are kept, except for the last one.
        self._output_epochs = _spread_epochs(
            training.epochs,
            config.keep_outputs,
        )

    def reads_weights(self, done: int) -> bool:
        """Checks whether the network is evaluated after `done` epochs.

        Between these epochs `fit_model` may train several in one program.

        Args:
            done: The number of epochs that are trained.
        """
        if done in self._output_epochs:
            return True
        if _is_due(done, self._config.eval_every):
            return True
        return _is_due(done, self._config.layerwise_every)

    def on_epoch_end(self, epoch: int, logs: dict[str, Any]) -> None:
        """Writes the loss, and the scores that are due.

        Args:
            epoch: The epoch, counted from 0.
            logs: The logs of Keras, with `loss` and `seconds`; the scores are
                added to them.
        """
        done = epoch + 1
        numbers = {"train/loss": logs["loss"]}
        speed = self._examples_per_epoch / logs["seconds"]
        scalars = {**numbers, "train/examples_per_second": speed}
        self._summaries.write_scalars(done, scalars)
        if done == self._config.training.epochs:  # `finish` evaluates
            self.history.add(done, numbers)
            return

        if done in self._output_epochs:
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
        """Writes the outputs of the network as it is now, for the explorer.

        Args:
            epoch: The number of epochs that are trained.
        """
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
        """Computes the relative MSE of the network by subset."""
        evaluation = self._analyze().evaluation
        errors = {}
        for subset, row in evaluation.scores.items():
            errors[subset] = row["relative_mse"]
        return errors

    def finish(self) -> dict[str, Any]:
        """Evaluates the trained network and writes all results but metrics.

        Returns:
            The metrics of the network and of reference predictors, for
            `metrics.json`.
        """
        epochs = self._config.training.epochs
        analysis = self._analyze()
        self._write_numbers(epochs, analysis, with_layers=True)
        self.history.add(epochs, analysis.evaluation.tagged)
        if self._config.pictures:
            self._summaries.write_pictures(analysis)
        self._summaries.close()

        metrics = _describe_results(analysis, self._dataset)
        numbers_by_factor = measure_factors(self._models.trained)
        if numbers_by_factor:
            metrics["channels"] = numbers_by_factor
        return metrics

    def _write_numbers(
        self,
        epoch: int,
        analysis: RunAnalysis,
        with_layers: bool,
    ) -> None:
        """Writes numbers of an evaluation as scalars.

        Args:
            epoch: The number of epochs that are trained.
            analysis: Results of the network as it is now.
            with_layers: Whether numbers of stages are written, too.
        """
        numbers = dict(analysis.evaluation.tagged)
        for tag, answer in ANSWERS.items():
            numbers[answer] = numbers.get(tag)
        self._summaries.write_scalars(epoch, numbers)

        numbers = {}
        for name, embedding in analysis.embeddings.items():
            for number, value in embedding.summary.items():
                numbers[f"embedding_{number}/{name}"] = value
        if with_layers:
            numbers |= _tag_stages(analysis.layers.summary)
        if with_layers and self._config.layerwise_every:
            shares = analysis.measure_interactions(WATCHED_POINTS)
            numbers |= _tag_stages(shares)
        self._summaries.write_scalars(epoch, numbers)


def _tag_stages(
    summary: Mapping[str, Mapping[str, float | None]],
) -> dict[str, float | None]:
    """Gives tags to numbers by stage and metric, of metrics with a chart."""
    numbers = {}
    for metric in list_metrics("stage", "stages"):
        for stage, row in summary.items():
            if metric.chart is not None and metric.name in row:
                tag = f"stage_{metric.name}/{stage}"
                numbers[tag] = row[metric.name]
    return numbers


def _describe_results(
    analysis: RunAnalysis,
    dataset: Dataset,
) -> dict[str, Any]:
    """Describes what a network does, and how hard its task is.

    Args:
        analysis: Results of the trained network.
        dataset: Its data.

    Returns:
        Entries of `metrics.json`: scores of outputs, stages and embeddings,
        references and certificates.
    """
    evaluation = analysis.evaluation
    metrics: dict[str, Any] = dict(evaluation.scores)
    metrics["layers"] = analysis.layers.summary
    if analysis.nondifferentiable:
        metrics["differences"] = analysis.nondifferentiable

    embeddings = {}
    for name, embedding in analysis.embeddings.items():
        embeddings[name] = embedding.summary
    if embeddings:
        metrics["embeddings"] = embeddings

    certificates = solvable.certify_dataset(dataset)
    summary = solvable.summarize_certificates(dataset, certificates)
    metrics["reference"] = dataset.reference_label
    metrics["references"] = score_references(dataset, evaluation.truth)
    metrics["certificate"] = summary
    metrics["explained"] = solvable.explain_training(dataset)
    metrics["r2"] = score_certified(dataset, evaluation, certificates[1])
    return metrics


def _spread_epochs(epochs: int, count: int) -> set[int]:
    """Chooses epochs, evenly spread, whose outputs are kept.

    The last one is left out: the trained network has its outputs.

    Args:
        epochs: The number of epochs of the training.
        count: The number of epochs with outputs, the last one included.
    """
    spread = set()
    for part in range(1, count):
        epoch = round(part * epochs / count)
        spread.add(epoch)
    return spread - {0, epochs}


def _is_due(done: int, every: int) -> bool:
    """Checks whether `done` is a multiple of `every`, where 0 means never."""
    return every > 0 and done % every == 0


def measure_factors(model: keras.Model) -> dict[str, dict[str, float]]:
    """Collects the numbers by factor that layers of a model report.

    Args:
        model: A model; any of its layers may have a method
            `measure_factors()` that returns numbers by name for each factor.

    Returns:
        Numbers by name for each factor; empty if no layer has the method.
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
        """Replaces the rows in memory by the rows in a folder.

        Args:
            source: A folder; without `history.csv` there are no rows then.
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
        """Adds numbers of an epoch to the file, and drops rows of later epochs.

        Later rows are of a training that was interrupted after its checkpoint.
        Numbers are rounded to float32, as TensorBoard has them.

        Args:
            epoch: The number of epochs that are trained.
            numbers: Numbers by tag; those that are None are left out.
        """
        row = {}
        for tag, number in numbers.items():
            if number is not None:
                single = np.float32(number)
                row[tag] = float(single)

        kept_rows = {}
        for earlier, old_row in self.rows.items():
            if earlier <= epoch:
                kept_rows[earlier] = old_row
        is_next = epoch not in kept_rows and len(kept_rows) == len(self.rows)
        old_numbers = kept_rows.get(epoch, {})
        kept_rows[epoch] = old_numbers | row
        self.rows = kept_rows
        if is_next and self._tags >= row.keys():
            self._append_row(epoch)
        else:
            self._write_rows()

    def _append_row(self, epoch: int) -> None:
        """Appends the row of an epoch to the file.

        To write a file of a thousand rows again in every epoch takes seconds.
        """
        row = self.rows[epoch]
        cells = [str(epoch)]
        for tag in self._tags:
            cell = row.get(tag, "")
            cells.append(str(cell))
        line = ",".join(cells)
        with open_log(self._path) as file:
            file.write(f"{line}\n".encode())

    def _write_rows(self) -> None:
        """Writes all rows, with a column for each tag that any row has."""
        table = []
        tags: dict[str, None] = {}
        for epoch, row in self.rows.items():
            table.append({"epoch": epoch, **row})
            tags |= dict.fromkeys(row)
        self._tags = tags.keys()
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

    def write_settings(self) -> None:
        """Writes the settings of the run for TensorBoard's page HParams.

        It has columns for settings (`SETTINGS`, and all that differ from their
        defaults) and for the errors of `ANSWERS`.
        """
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

    def write_pictures(self, analysis: RunAnalysis) -> None:
        """Draws the trained network for TensorBoard, and `samples.png`.

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
            self._plot_answer(analysis, subsets)
        with self._plot_cards("the stages"):
            self._plot_volumes(analysis)
        with self._plot_cards("the embeddings"):
            self._plot_embeddings(analysis.embeddings)
        with go_on_without_pictures("samples"), use_own_style():
            self._write_samples(evaluation, subsets)

    @contextlib.contextmanager
    def _plot_cards(self, subject: str) -> Iterator[None]:
        """Makes figures of the block fit TensorBoard's cards.

        An error in the block is a note (see `go_on_without_pictures`).

        Args:
            subject: What the figures show, for this note.
        """
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
        analysis: RunAnalysis,
        subsets: Sequence[str],
    ) -> None:
        """Draws the errors as a map and a curve, and images of each subset."""
        dataset = self._dataset
        evaluation = analysis.evaluation
        if analysis.has_map and dataset.splits.is_complete:
            landscape = pictures.picture_errors(
                dataset,
                {"error landscape": analysis.error_ratio},
                planes=dataset.planes[:1],
                label=ERROR,
            )
            write_figure("answer/map", landscape)
        if analysis.curves:
            curve = pictures.picture_error_curve(dataset, analysis.error)
            write_figure("answer/curve", curve)
        for subset in subsets:
            # Without a title, which the tag repeats, images are larger.
            samples = pictures.picture_samples(
                dataset,
                evaluation,
                subset,
                title="",
                count=CARD_SAMPLES,
            )
            write_figure(f"answer/samples_{subset}", samples)

    def _plot_volumes(self, analysis: RunAnalysis) -> None:
        """Draws log-volumes by stage as maps, if the data have maps."""
        if not analysis.has_map or not self._dataset.splits.is_complete:
            return
        for stage, values in analysis.log_volume.items():
            named = {f"log-volume, {title_stage(stage)}": values}
            figure = pictures.picture_volumes(self._dataset, named)
            write_figure(f"stage_log_volume_map/{stage}", figure)

    def _plot_embeddings(
        self,
        embeddings: Mapping[str, EmbeddingAnalysis],
    ) -> None:
        """Draws the embedding of each factor."""
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
        """Writes `samples.png`, in which subsets lie one below the other."""
        samples = []
        for subset in subsets:
            title = f"{self._config.run_name}, {subset.upper()}"
            figure = pictures.picture_samples(
                self._dataset,
                evaluation,
                subset,
                title,
            )
            samples.append(figure)
        path = Path(self._config.run_dir, SAMPLES_FILE)
        content = stack_to_png(samples)
        write_bytes(path, content)

    def close(self) -> None:
        """Closes the file."""
        self._writer.close()


@contextlib.contextmanager
def go_on_without_pictures(subject: str) -> Iterator[None]:
    """Prints a note if pictures cannot be drawn, rather than stop the run.

    Args:
        subject: What the pictures show.

    Raises:
        OSError, MemoryError: If disk or memory are full, so that the numbers
            of the run cannot be kept either.
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
