"""Names of runs, and sentences on scores that claim no more than they show."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tfcomp.config.run_config import RunConfig
from tfcomp.statistics.seed_statistics import IGNORED, choose_flags, make_label

if TYPE_CHECKING:
    from tfcomp.metrics.run_analysis import RunAnalysis
    from tfcomp.models.loading import LoadedRun

# Relative MSE: the reference (`Dataset.reference`) has 1.
FITTED = 0.05
FAILED = 0.5
# Predictors without a network, and their names in tables.
REFERENCES = {
    "additive": "best sum of effects of single factors",
    "nearest_id": "nearest training image",
}
# Those that ignore a factor, or equal values of a factor (`reference_scores`).
IGNORANT = ("without_", "modulo_")
# Flags in a subtitle, and their words.
SUBTITLE = {
    "dataset": "dataset {}",
    "region": "held out {}",
    "train_all": "but trained on as a control",
    "encoding": "code {}",
    "model": "model {}",
    "depth": "depth {}",
    "epochs": "{} epochs",
}
MAX_FLAGS = 2  # that replace the name which the user gave to a run


def rename_runs(analyses: Sequence[RunAnalysis]) -> list[RunAnalysis]:
    """Names several runs by their settings; models from elsewhere have none."""
    if len(analyses) < 2 or any(a.run.path is None for a in analyses):
        return list(analyses)
    names = name_runs([analysis.run.config for analysis in analyses])
    return [
        analysis.rename(name, setting)
        for analysis, (name, setting) in zip(analyses, names, strict=True)
    ]


def name_runs(configs: Sequence[RunConfig]) -> list[tuple[str, str]]:
    """Returns names of runs, as `depth 2, seed 0`, and of their settings.

    The names that the user gave stay where more than two flags differ, or
    where flags do not tell the runs apart.
    """
    given = [config.run_name for config in configs]
    are_trials = all(map(is_hash, given))
    if len(set(given)) < len(given):  # runs in several folders
        given = [config.run_dir for config in configs]
        are_trials = False
    own = list(zip(given, given, strict=True))

    flags = [config.identity() for config in configs]
    # Runs lack the settings of plugins that only others have.
    lacking: dict[str, Any] = {}
    for run in flags:
        lacking |= dict.fromkeys(run, "-")
    flags = [lacking | run for run in flags]
    varied = []
    for name in lacking:
        values = {str(run[name]) for run in flags}
        if name not in IGNORED and len(values) > 1:
            varied.append(name)
    if len(varied) > MAX_FLAGS and not are_trials:
        return own

    differences = [{name: run[name] for name in varied} for run in flags]
    telling = choose_flags(differences)
    settings = [make_label(run, telling) for run in flags]
    if len(set(settings)) < len(settings):
        telling = [*telling, "seed"]
    names = [make_label(run, telling) for run in flags]
    if len(set(map(to_file_name, names))) < len(names):
        return own
    return list(zip(names, settings, strict=True))


def is_hash(name: str) -> bool:
    """Returns True for the name of a trial of a sweep."""
    return re.fullmatch("[0-9a-f]{16}", name) is not None


def to_file_name(name: str) -> str:
    """Returns a name with no characters that a file name cannot have."""
    return re.sub(r"[^\w.+-]+", "_", name).strip("_")


def describe_common(settings: Sequence[Mapping[str, Any]]) -> str:
    """Describes data, held-out region and model that all settings share."""
    parts = []
    for flag, words in SUBTITLE.items():
        values = {setting.get(flag) for setting in settings}
        value = values.pop()
        is_given = value not in (None, "") and value is not False
        if is_given and not values:
            parts.append(words.format(value))
    if not parts:
        return ""
    text = ", ".join(parts)
    return f"{text[:1].upper()}{text[1:]}."


def describe_model(run: LoadedRun) -> str:
    """Describes data and held-out combinations of a model."""
    data = run.dataset
    points = data.splits.all
    factors = ", ".join(f"{f.name} ({f.size})" for f in data.space)
    num_held_out = int(points.is_ood.sum())
    return (
        f"{run.name}: {run.config.data.dataset} of {factors}; "
        f"{len(points):,} combinations, {num_held_out:,} held "
        f"out ({data.region.spec}); relative_mse 1: {data.reference_name}"
    )


def describe_scores(metrics: Mapping[str, Any]) -> str:
    """Returns one sentence on the content of a `metrics.json`, of any age."""
    id_error = _find_excess(metrics, "id")
    ood_error = _find_excess(metrics, "ood")
    if id_error is None:
        return "The error of the network in distribution is not a number."
    name = "relative MSE"
    if "floor_mse" in metrics["id"]:
        name = "relative MSE above floor_mse"
    text = f"in distribution ({name} {id_error:.2g})"
    if id_error > FITTED:
        text = (
            f"The network does not fit {text}; at most {FITTED:g} would count "
            "as fitted"
        )
        if ood_error is not None:
            text += f"; on held-out combinations it is {ood_error:.2g}"
        return f"{text}."

    if ood_error is None:
        rest = "its OOD error is unknown"
        if metrics.get("points", {}).get("ood") == 0:
            rest = "nothing was held out"
        return f"The network fits {text}; {rest}."
    verdict = "fails on"
    if ood_error <= FITTED:
        verdict = "draws"
    elif ood_error <= FAILED:
        verdict = "is worse on"
    return (
        f"The network fits {text} and {verdict} held-out combinations "
        f"({ood_error:.2g}){_describe_training(metrics)}"
        f"{_count_peaks(metrics)}."
    )


def _describe_training(metrics: Mapping[str, Any]) -> str:
    """Describes what training lacked, or knew, of held-out images."""
    text = ""
    share = metrics.get("coverage", {}).get("values", 1.0)
    if share < 1:
        text = (
            f", although no more than {share:.1%} of the values of factors "
            "occurred in training: this is not about composition alone"
        )
    copies = metrics.get("copies", {})
    if copies.get("num_copies"):
        text += (
            f"; training contains {copies['num_copies']:,} of their "
            f"{copies['num_held_out']:,} images"
        )
    return text


def _count_peaks(metrics: Mapping[str, Any]) -> str:
    share = _find_score(metrics, "ood", "position_accuracy")
    count = metrics.get("points", {}).get("ood")
    if share is None or count is None:
        return ""
    near = round(share * count)
    return f"; {near} of {count} peaks are within one pixel"


def _find_score(
    metrics: Mapping[str, Any],
    subset: str,
    score: str,
) -> float | None:
    value = metrics.get(subset, {}).get(score)
    if value is None or not math.isfinite(value):
        return None
    return float(value)


def _find_excess(metrics: Mapping[str, Any], subset: str) -> float | None:
    """Returns the error over the blank's, both less that of means of images."""
    error = _find_score(metrics, subset, "relative_mse")
    mse = _find_score(metrics, subset, "mse")
    floor = _find_score(metrics, subset, "floor_mse")
    if not (error and mse and floor):
        return error
    blank = mse / error
    if blank <= floor:
        return error
    return round(max(0.0, mse - floor) / (blank - floor), 9)


def list_references(
    scores: Mapping[str, Mapping[str, float]],
) -> dict[str, str]:
    """Returns predictors with scores, in words; of ignorant ones the best.

    Args:
        scores: Errors of predictors by name and subset; those out of
            distribution decide which one is the best.
    """
    words = {}
    for name, text in REFERENCES.items():
        if name in scores:
            words[name] = text
    ignorant = {}
    for name, errors in scores.items():
        if name.startswith(IGNORANT) and "ood" in errors:
            ignorant[name] = errors["ood"]
    if ignorant:
        best = min(ignorant, key=ignorant.__getitem__)
        words[best] = f"true image {best.replace('_', ' ')}"
    return words


def format_references(references: Mapping[str, Mapping[str, float]]) -> str:
    """Formats R² of predictors without a network; empty for older runs."""
    scores = {name: references[name] for name in list_references(references)}
    columns = ["id_r2", "ood_r2"]
    row_names = set().union(*scores.values())
    if "ood_r2" not in row_names:
        return ""
    if "ood_new" in row_names:
        columns.append("ood_new_r2")

    text = "\nr2 without a network"
    for name, row in scores.items():
        text += f"\n {name:19}"
        for column in columns:
            cell = "-"
            if row.get(column) is not None:
                cell = f"{row[column]:.4g}"
            text += f"{cell:>12}"
    return text
