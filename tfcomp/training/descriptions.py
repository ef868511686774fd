"""What a run is in words, and how TensorBoard should arrange its charts."""

from __future__ import annotations

import textwrap

import keras
from tensorboard.plugins.custom_scalar import layout_pb2

from tfcomp.config.run_config import RunConfig
from tfcomp.datasets import Dataset

LAYER_GROUPS = (
    "factorization",
    "cosine_factorization",
    "log_volume_id",
    "log_volume_ood",
    "probe_r2_id",
    "probe_r2_ood",
)


def describe_run(
    config: RunConfig, dataset: Dataset, model: keras.Model, header: str
) -> str:
    """What the run is, in Markdown.

    Args:
        config: The run.
        dataset: Its data.
        model: Its network.
        header: The versions that it is made with, a line each.
    """
    splits = dataset.splits
    notes = "".join(f"\n**Note:** {n}\n" for n in dataset.announcements())
    flags = "\n".join(f"    --{k}={v}" for k, v in config.identity().items())
    code = textwrap.indent(header.rstrip(), "    ")
    return (
        f"A **{config.model.model}** decoder ({model.count_params():,} "
        f"weights) draws **{config.data.dataset}** from a "
        f"**{config.model.encoding}** code. Region **{config.data.region}** "
        f"is held out: {splits.is_id.sum()} ID and {splits.is_ood.sum()} OOD "
        f"combinations, {len(splits.train)} training examples.\n{notes}\n"
        f"Made with\n\n{code}\n\nFlags\n\n{flags}\n"
    )


def make_layout() -> layout_pb2.Layout:
    """Charts that show together what belongs together.

    It is the same for all runs: TensorBoard shows the charts of different
    layouts one below the other.
    """
    scores = ("relative_mse", "position_accuracy", "num_peaks")
    score_charts = [_make_chart(name, f"^(id|ood)/{name}$") for name in scores]
    layer_charts = [_make_chart(group, f"^{group}/") for group in LAYER_GROUPS]
    return layout_pb2.Layout(
        category=[
            layout_pb2.Category(title="ID and OOD", chart=score_charts),
            layout_pb2.Category(title="all stages", chart=layer_charts),
        ]
    )


def _make_chart(title: str, pattern: str) -> layout_pb2.Chart:
    lines = layout_pb2.MultilineChartContent(tag=[pattern])
    return layout_pb2.Chart(title=title, multiline=lines)
