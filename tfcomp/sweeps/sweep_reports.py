"""What is made of the numbers of a sweep once its trials have ended.

summary.csv  every setting and score: mean, sd, low, high, n
paired.csv   every pair of settings at equal seeds
figures/     curves and scores (PNG, PDF, CSV)
events...    the tab HParams of TensorBoard

It is made again only when its numbers, or the code that makes it, change.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING
from typing import Any

from tfcomp.storage.code_version import hash_modules
from tfcomp.storage.files import write_text
from tfcomp.sweeps.sweep_tables import group_trials
from tfcomp.sweeps.sweep_tables import list_columns
from tfcomp.sweeps.sweep_tables import make_layers
from tfcomp.sweeps.sweep_tables import write_table
from tfcomp.sweeps.trials import Trial

if TYPE_CHECKING:
    from tfcomp.statistics.seed_statistics import Setting

# Holds the version of what was made; hidden, since it is for us alone.
STAMP_FILE = ".reports"
# What makes it.
SOURCES = ("tfcomp.analysis", "tfcomp.figures", "tfcomp.sweeps")


def write_reports(
    folder: Path,
    trials: Sequence[Trial],
    results: Mapping[str, dict[str, Any]],
    method: str,
) -> None:
    """Writes summary, comparisons, figures and HParams, unless up to date.

    Args:
        folder: The folder of the sweep.
        trials: Its trials.
        results: What `tables.read_result` gives, of the finished trials.
        method: Of the intervals (`seed_statistics.compute_interval`).
    """
    stamp = folder / STAMP_FILE
    version = compute_version(trials, results, method)
    if stamp.exists() and stamp.read_text() == version:
        return
    # What is made can be wrong until it is complete.
    stamp.unlink(missing_ok=True)
    _write(folder, trials, results, method)
    write_text(stamp, version)


def compute_version(
    trials: Sequence[Trial], results: Mapping[str, Any], method: str
) -> str:
    """Hash of all that the reports follow from."""
    content = [
        method,
        [(trial.name, list(trial.setting)) for trial in trials],
        [results.get(trial.name) for trial in trials],
        hash_modules(SOURCES),
    ]
    return hashlib.sha256(json.dumps(content).encode()).hexdigest()


def list_tags(results: Mapping[str, dict[str, Any]]) -> list[str]:
    """TensorBoard's names of the scores, as `ood/mse`."""
    return list(
        dict.fromkeys(
            f"{subset}/{name}"
            for result in results.values()
            for subset, scores in result.items()
            if subset.startswith(("id", "ood"))
            for name in scores
        )
    )


def write_statistics(
    folder: Path, settings: Sequence[Setting], method: str
) -> list[dict[str, Any]]:
    """Writes `summary.csv` and `paired.csv`; returns the summary."""
    # Late imports, here and below: who has nothing new to report should not
    # wait for them.
    from tfcomp.statistics.paired_comparison import compare_settings
    from tfcomp.statistics.seed_statistics import summarize

    scores = list_columns(settings)
    summary = summarize(settings, scores, method)
    write_table(folder / "summary.csv", summary)
    paired = compare_settings(settings, scores, method)
    write_table(folder / "paired.csv", paired)
    return summary


def write_figures(
    folder: Path,
    trials: Sequence[Trial],
    results: Mapping[str, dict[str, Any]],
    settings: Sequence[Setting],
    summary: Sequence[dict[str, Any]],
    method: str,
) -> None:
    """Draws `figures/`, and removes those of an earlier grid."""
    from tfcomp.figures.exhibits import save_exhibit
    from tfcomp.sweeps.sweep_curves import read_curves
    from tfcomp.sweeps.sweep_curves import tabulate_curves
    from tfcomp.sweeps.sweep_curves import tabulate_layers
    from tfcomp.sweeps.sweep_exhibits import LAYERS
    from tfcomp.sweeps.sweep_exhibits import make_exhibits

    for path in (folder / "figures").glob("*.*"):
        path.unlink()
    if not results:
        return
    names = list(trials[0].setting)
    finished = [trial for trial in trials if trial.name in results]
    exhibits = make_exhibits(
        folder.name,
        settings,
        summary,
        tabulate_curves(names, read_curves(finished)),
        tabulate_layers(names, list(LAYERS), make_layers(trials, results)),
        method,
    )
    for exhibit in exhibits:
        save_exhibit(exhibit, folder / "figures")


def _write(
    folder: Path,
    trials: Sequence[Trial],
    results: Mapping[str, dict[str, Any]],
    method: str,
) -> None:
    from tfcomp.sweeps.hparams import write_experiment

    settings = group_trials(trials, results)
    summary = write_statistics(folder, settings, method)
    write_experiment(folder, trials, list_tags(results))
    write_figures(folder, trials, results, settings, summary, method)
