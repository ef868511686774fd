"""Formats model cards: `card.md` for a SavedModel, `README.md` for hubs."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import jinja2
import yaml

from tfcomp import __version__
from tfcomp.config.run_config import RunConfig
from tfcomp.datasets import Dataset
from tfcomp.evaluation.loading import LoadedRun
from tfcomp.models.model_rules import describe_pose_terms
from tfcomp.storage.run_folder import select_scores

CARD_FILE = "card.md"
TEMPLATE = Path(__file__).with_name("templates") / CARD_FILE


def format_card(
    config: RunConfig,
    dataset: Dataset,
    metrics: Mapping[str, Any],
    calls: Sequence[str] = (),
) -> str:
    """Formats the card of a model in Markdown.

    It names neither machine nor date: the same run has the same card.

    Args:
        config: The settings of the run.
        dataset: Its dataset.
        metrics: The content of its `metrics.json`.
        calls: Code that calls each format; by default the SavedModel's.
    """
    environment = jinja2.Environment(
        trim_blocks=True, keep_trailing_newline=True
    )
    environment.filters |= {"number": _format_number, "percent": _percent}
    template = environment.from_string(TEMPLATE.read_text("utf-8"))
    return template.render(
        config=config,
        dataset=dataset,
        num_ood=int(dataset.splits.all.is_ood.sum()),
        scores=select_scores(metrics),
        coverage=metrics.get("coverage", {}),
        channels=describe_pose_terms(metrics.get("channels", {})),
        version=__version__,
        calls=calls,
        r2=metrics.get("r2", {}),
    )


def _format_number(value: object) -> str:
    """Returns four digits of a number, and a dash for anything else."""
    return f"{value:.4g}" if isinstance(value, int | float) else "–"


def _percent(share: object) -> str:
    return f"{100 * share:.1f} %" if isinstance(share, int | float) else "–"


def format_hub_card(run: LoadedRun, calls: Sequence[str]) -> str:
    """Formats the card, below the header that model hubs read."""
    card = format_card(run.config, run.dataset, run.metrics, calls)
    header = yaml.safe_dump(make_header(run), sort_keys=False)
    return f"---\n{header}---\n\n{card}"


def make_header(run: LoadedRun) -> dict[str, Any]:
    """Returns the header for hubs; the license is left to the owner."""
    data, subsets = run.config.data, select_scores(run.metrics)
    results = [
        {
            "task": {"type": "other", "name": "decoding of factors"},
            "dataset": {
                "type": f"tfcomp/{data.dataset}",
                "name": f"{data.dataset}, {data.region} held out",
                "split": subset,
            },
            "metrics": [
                {"type": name, "value": value}
                for name, value in scores.items()
                if value is not None
            ],
        }
        for subset, scores in subsets.items()
    ]
    return {
        "library_name": "tfcomp",
        "tags": ["tfcomp", "compositional-generalization", "decoder"],
        "datasets": [f"tfcomp/{data.dataset}"],
        "metrics": sorted({n for s in subsets.values() for n in s}),
        "model-index": [{"name": run.name, "results": results}],
    }
