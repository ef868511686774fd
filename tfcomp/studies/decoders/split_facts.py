"""What a split says of itself: size, certificate, pixels, simple predictors.

Computed from the flags of a run, so that runs of any version have it.
"""

import functools
import json
from dataclasses import dataclass
from typing import Any

import numpy as np

from tfcomp.config.errors import ConfigError, RunError
from tfcomp.config.run_config import LOCATION_FLAGS
from tfcomp.config.run_flags import parse_config
from tfcomp.datasets.dataset import Dataset
from tfcomp.studies.claims.evidence import Run

SUBSETS = ("id", "ood")
# Of a predictor, where `metrics.json` has its relative MSE.
PREDICTORS = {"additive": "additive", "nearest": "nearest_id"}


@dataclass(frozen=True)
class SplitFacts:
    """Numbers of a split."""

    num_train: int  # images
    # By order, the share of held-out combinations that training determines;
    # None where it was not computed, or nothing is held out.
    certified: dict[int, float | None]
    missing: float | None  # further images, at least, that certify all, order 1
    # Of the pixels that change over the data, the share whose range in training
    # is at least half of that.
    lit: float
    # For `id` and `ood`, the mean squared deviation from the mean image over
    # the mean squared error of a blank one.
    spread: dict[str, float]

    def convert(self, relative: float | None, subset: str) -> float | None:
        """R^2 about the mean image of a subset, from a relative MSE."""
        spread = self.spread.get(subset)
        if relative is None or not spread:
            return None
        return 1 - relative / spread


def find_facts(run: Run) -> SplitFacts | None:
    """The split of a run, as recorded if it is; None without its data."""
    known = _list_defaults()
    flags = tuple(
        f"--{name}={value}"
        for name, value in sorted(run.flags.items())
        if name in known
        and name not in LOCATION_FLAGS
        and name not in ("seed", "model", "width", "depth", "resume")
        and value != known[name]
    )
    recorded = [run.metrics.get(name) for name in ("certificate", "coverage")]
    return _find_facts(flags, json.dumps([*recorded, _find_spread(run)]))


@functools.cache
def _list_defaults() -> dict[str, Any]:
    return parse_config([]).to_flags()


def _find_spread(run: Run) -> dict[str, float] | None:
    """The spread that follows from errors and R^2 of a run; None without."""
    pairs = {
        name: (run.get(f"{name}/relative_mse"), run.get(f"r2/{name}"))
        for name in SUBSETS
    }
    if any(not error or r2 in (None, 1.0) for error, r2 in pairs.values()):
        return None
    return {name: error / (1 - r2) for name, (error, r2) in pairs.items()}


@functools.cache
def _find_facts(flags: tuple[str, ...], recorded: str) -> SplitFacts | None:
    """Looks at the split of a run, and at its images if it has to."""
    from tfcomp.datasets import make_dataset
    from tfcomp.datasets.solvable import (
        certify_dataset,
        measure_coverage,
        summarize_certificates,
    )

    orders, coverage, spread = json.loads(recorded)
    try:
        dataset = make_dataset(parse_config(list(flags)))
        if orders is None:
            orders = summarize_certificates(dataset, certify_dataset(dataset))
        return SplitFacts(
            len(np.unique(dataset.splits.train, axis=0)),
            {int(order): found["certified"] for order, found in orders.items()},
            orders["1"]["missing_rank"],
            (coverage or measure_coverage(dataset))["pixels"],
            spread or _measure_spread(dataset),
        )
    except (ConfigError, RunError):
        return None


def _measure_spread(dataset: Dataset) -> dict[str, float]:
    points = dataset.splits.scored
    truth = dataset.render_array(points.factors).astype(np.float64)
    blank = np.broadcast_to(dataset.reference, truth.shape)
    spread = {}
    for name, rows in points.subsets.items():
        if name in SUBSETS and rows.any():
            around = truth[rows] - truth[rows].mean(axis=0)
            error = np.square(truth[rows] - blank[rows]).sum()
            spread[name] = float(np.square(around).sum() / error)
    return spread


def get_r2(run: Run, subset: str) -> float | None:
    """R^2 of a run over `id`, `ood`, `certified` or `others`, about their mean.

    Runs of earlier versions have it of `id` and `ood` alone, from their errors.
    """
    value = run.get(f"r2/{subset}")
    if value is not None or "r2" in run.metrics or subset not in SUBSETS:
        return value
    facts = find_facts(run)
    relative = run.get(f"{subset}/relative_mse")
    return facts.convert(relative, subset) if facts else None


def get_predictors(run: Run) -> dict[str, float | None]:
    """R^2 of held-out images of predictors without a network, and of blank."""
    facts = find_facts(run)
    if facts is None:
        return {}
    found = {
        name: facts.convert(run.get(f"references/{key}/ood"), "ood")
        for name, key in PREDICTORS.items()
    }
    return found | {"blank": facts.convert(1.0, "ood")}
