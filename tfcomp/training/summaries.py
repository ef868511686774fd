"""Writes the TensorBoard summaries of a run (docs/tutorials/donut.md).

Groups: `answer`, which the first tab shows; `train`; scores in `id`, `ood` and
others; `stage_<metric>` with a tag for each stage; `embedding_<number>`; images
of stages and embeddings; and the layout of combined charts.
"""

import sys
import textwrap
from collections.abc import Mapping
from pathlib import Path

import keras
import numpy as np
import tensorflow as tf
from matplotlib.figure import Figure
from numpy.typing import NDArray
from tensorboard.compat.proto.summary_pb2 import Summary
from tensorboard.plugins.custom_scalar import layout_pb2
from tensorboard.plugins.custom_scalar import summary as custom_scalar
from tensorboard.plugins.hparams import api as hparams
from tensorboard.plugins.scalar.summary_v2 import scalar_pb

from tfcomp.config.run_config import RunConfig
from tfcomp.datasets import Dataset
from tfcomp.datasets.grid_maps import list_curves
from tfcomp.evaluation import pictures
from tfcomp.evaluation.evaluator import EmbeddingAnalysis, LayerAnalysis
from tfcomp.evaluation.metrics import list_metrics
from tfcomp.evaluation.point_scores import Evaluation
from tfcomp.figures.exhibits import figure_to_array, stack_to_png
from tfcomp.storage.files import write_bytes
from tfcomp.storage.run_folder import SAMPLES_FILE

# TensorBoard opens on the first group of the alphabet.
ANSWER = {f"{s}/relative_mse": f"answer/error_{s}" for s in ("id", "ood")}
LARGEST = float(np.finfo(np.float32).max)


class RunSummaries:
    """Writes the summaries of one run into its folder."""

    def __init__(self, config: RunConfig, dataset: Dataset) -> None:
        self._writer = tf.summary.create_file_writer(config.run_dir)
        self._config = config
        self._dataset = dataset
        is_complete = dataset.splits.is_complete
        self._has_maps = is_complete and bool(dataset.planes)
        self._has_curves = is_complete and bool(list_curves(dataset.space))

    def write_description(self, model: keras.Model, header: str) -> None:
        """Writes text, hyperparameters and the layout of combined charts."""
        text = describe_run(self._config, self._dataset, model, header)
        layout = custom_scalar.pb(make_layout())
        settings, name = self._config.identity(), self._config.run_name
        with self._writer.as_default(step=0):
            tf.summary.text("run", text)
            hparams.hparams(settings, trial_id=name)
            tf.summary.experimental.write_raw_pb(layout.SerializeToString())

    def write_scalars(
        self, epoch: int, numbers: Mapping[str, float | None]
    ) -> None:
        """Writes numbers by tag, such as `ood/mse`; skips None."""
        known = {tag: v for tag, v in numbers.items() if v is not None}
        large = [tag for tag, v in known.items() if abs(v) > LARGEST]
        if large:
            rule = "is beyond what TensorBoard's files hold, and left out"
            print(f"note: {', '.join(large)} {rule}", file=sys.stderr)
        summary = Summary()
        for tag in (t for t in known if t not in large):
            for name in filter(None, (tag, ANSWER.get(tag))):
                summary.MergeFrom(scalar_pb(name, known[tag]))
        # `tf.summary.scalar` takes 3 ms for each number.
        with self._writer.as_default(step=epoch):
            content = summary.SerializeToString()
            tf.summary.experimental.write_raw_pb(content)

    def write_pictures(self, epoch: int, evaluation: Evaluation) -> None:
        """Writes samples with the true position, and the error landscape.

        The samples are also written as a PNG file.
        """
        if not self._config.pictures:
            return
        samples, dataset, splits = [], self._dataset, self._dataset.splits
        with self._writer.as_default(step=epoch):
            for name, chosen in (("id", splits.is_id), ("ood", splits.is_ood)):
                if chosen.any():
                    title = f"{self._config.run_name}, {name.upper()}"
                    figure = pictures.picture_samples(
                        dataset, evaluation, name, title
                    )
                    samples.append(
                        write_figure(f"answer/samples_{name}", figure)
                    )
            path = Path(self._config.run_dir, SAMPLES_FILE)
            write_bytes(path, stack_to_png(samples))
            if self._has_maps:
                figure = pictures.picture_landscape(dataset, evaluation)
                write_figure("answer/map", figure)
            if self._has_curves:
                figure = pictures.picture_error_curve(dataset, evaluation)
                write_figure("answer/curve", figure)

    def write_layers(self, epoch: int, analysis: LayerAnalysis) -> None:
        """Writes geometry and probes of all stages, and log-volume maps."""
        self.write_stages(epoch, analysis.summary)
        if not (self._has_maps and self._config.pictures):
            return
        centered = pictures.center_volumes(analysis.log_volume)
        largest = pictures.find_largest(centered)
        with self._writer.as_default(step=epoch):
            for stage, values in analysis.log_volume.items():
                named = {f"log volume, {stage}": values}
                figure = pictures.picture_volumes(
                    self._dataset, named, limit=largest
                )
                write_figure(f"stage_log_volume_map/{stage}", figure)

    def write_stages(
        self, epoch: int, summary: Mapping[str, Mapping[str, float | None]]
    ) -> None:
        """Writes numbers by stage, of metrics with a chart."""
        numbers = {
            f"stage_{name}/{stage}": found.get(name)
            for name in list_charted()
            for stage, found in summary.items()
        }
        self.write_scalars(epoch, numbers)

    def write_embeddings(
        self, epoch: int, embeddings: dict[str, EmbeddingAnalysis], drawn: bool
    ) -> None:
        """Writes rank and penalties of embeddings; pictures if `drawn`."""
        numbers = {
            f"embedding_{number}/{name}": value
            for name, embedding in embeddings.items()
            for number, value in embedding.summary.items()
        }
        self.write_scalars(epoch, numbers)
        if not (drawn and self._config.pictures):
            return
        with self._writer.as_default(step=epoch):
            for name, embedding in embeddings.items():
                factor = self._dataset.space[name]
                figures = pictures.picture_embedding(factor, embedding)
                for kind, figure in figures.items():
                    write_figure(f"{kind}/{name}", figure)

    def close(self) -> None:
        self._writer.close()


def write_figure(tag: str, figure: Figure) -> NDArray[np.uint8]:
    """Writes a matplotlib figure as an image summary; returns its pixels."""
    pixels = figure_to_array(figure)
    tf.summary.image(tag, pixels[np.newaxis])
    return pixels


def describe_run(
    config: RunConfig, dataset: Dataset, model: keras.Model, header: str
) -> str:
    """Describes the run and its software versions in Markdown."""
    splits, num_ood = dataset.splits, dataset.splits.all.is_ood.sum()
    notes = "".join(f"\n**Note:** {n}\n" for n in dataset.announcements())
    flags = "\n".join(f"    --{k}={v}" for k, v in config.identity().items())
    code = textwrap.indent(header.rstrip(), "    ")
    return (
        f"A **{config.model.model}** decoder ({model.count_params():,} "
        f"weights) draws **{config.data.dataset}** from a "
        f"**{config.model.encoding}** code. Region **{config.data.region}** "
        f"is held out: {len(splits.all) - num_ood} ID and {num_ood} OOD "
        f"combinations, {len(splits.train)} training examples.\n{notes}\n"
        f"Made with\n\n{code}\n\nFlags\n\n{flags}\n"
    )


def make_layout() -> layout_pb2.Layout:
    """Returns the layout of combined charts, the same for all runs.

    TensorBoard shows the charts of different layouts one below the other.
    """
    scores = [measure.name for measure in list_metrics("image")]
    scores.sort(key=lambda name: name != "relative_mse")
    charts = {
        "ID and OOD": {name: f"^(id|ood)/{name}$" for name in scores},
        "all stages": {name: f"^stage_{name}/" for name in list_charted()},
    }
    layout = layout_pb2.Layout()
    for title, patterns in charts.items():
        category = layout.category.add(title=title)
        for name, pattern in patterns.items():
            category.chart.add(title=name).multiline.tag.append(pattern)
    return layout


def list_charted() -> list[str]:
    """Returns the names of stage metrics with a chart, in order."""
    return [
        m.name for m in list_metrics("stage", "stages") if m.chart is not None
    ]
