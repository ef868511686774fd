"""The card of a model, `card.md` beside its SavedModel."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import jinja2

from tfcomp import __version__
from tfcomp.config.run_config import RunConfig
from tfcomp.datasets import Dataset
from tfcomp.models.acting_rules import describe_channels
from tfcomp.statistics.seed_statistics import Statistics
from tfcomp.storage.run_folder import select_scores

CARD_FILE = "card.md"
TEMPLATE = Path(__file__).with_name("templates") / CARD_FILE


def format_card(
    config: RunConfig,
    dataset: Dataset,
    metrics: Mapping[str, Any],
    calls: Sequence[str] = (),
    seeds: Mapping[str, Statistics] | None = None,
) -> str:
    """What a model is, its data, split, scores, limits and use, in Markdown.

    It says nothing of the machine and of the time: the same run has the same
    card. The metrics are the content of `metrics.json`; the calls are how the
    formats beside the card are called, by default the SavedModel; `seeds` has
    scores of the same training with other seeds.
    """
    template = jinja2.Template(
        TEMPLATE.read_text("utf-8"),
        trim_blocks=True,
        keep_trailing_newline=True,
    )
    return template.render(
        config=config,
        dataset=dataset,
        num_ood=int(dataset.splits.all.is_ood.sum()),
        scores=select_scores(metrics),
        coverage=metrics.get("coverage", {}),
        channels=describe_channels(metrics.get("channels", {})),
        version=__version__,
        calls=calls,
        seeds=seeds,
        r2=metrics.get("r2", {}),
    )
