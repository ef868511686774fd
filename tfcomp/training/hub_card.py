"""README.md of exported formats, with the header that model hubs read."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from tfcomp.evaluation.loading import LoadedRun
from tfcomp.statistics.seed_statistics import Statistics
from tfcomp.storage.files import write_text
from tfcomp.storage.run_folder import select_scores
from tfcomp.training.card import format_card
from tfcomp.training.formats import FORMATS


def write_hub_card(
    run: LoadedRun, formats: Iterable[str], folder: Path
) -> None:
    """Writes README.md: the card, behind the header that model hubs read."""
    calls = [FORMATS[name].call for name in formats]
    write_text(folder / "README.md", format_hub_card(run, calls))


def format_hub_card(
    run: LoadedRun,
    calls: Sequence[str],
    seeds: Mapping[str, Statistics] | None = None,
) -> str:
    """The same as text; `seeds` are scores of the same training, repeated."""
    card = format_card(run.config, run.dataset, run.metrics, calls, seeds)
    header = yaml.safe_dump(make_header(run), sort_keys=False)
    return f"---\n{header}---\n\n{card}"


def make_header(run: LoadedRun) -> dict[str, Any]:
    """Library, tags, data and scores, in the terms of model hubs.

    No license is named: it is for the owner of the run to give one.
    """
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
