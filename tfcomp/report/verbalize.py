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
    are_trials = all(is_hash(name) for name in given)
    if len(set(given)) < len(given):  # runs in several folders
        given = [config.run_dir for config in configs]
        are_trials = False
    own = [(name, name) for name in given]

    flags = [config.identity() for config in configs]
    # Runs lack the settings of plugins that only others have.
    every = {n: "-" for f in flags for n in f if n not in IGNORED}
    flags = [every | f for f in flags]
    varied = [n for n in every if len({str(f[n]) for f in flags}) > 1]
    if len(varied) > MAX_FLAGS and not are_trials:
        return own
    telling = choose_flags([{n: f[n] for n in varied} for f in flags])
    settings = [make_label(f, telling) for f in flags]
    if len(set(settings)) < len(settings):
        telling = [*telling, "seed"]
    names = [make_label(f, telling) for f in flags]
    if len({to_file_name(name) for name in names}) < len(names):
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
        if not values and value not in (None, "") and value is not False:
            parts.append(words.format(value))
    text = ", ".join(parts)
    return f"{text[:1].upper()}{text[1:]}." if text else ""


def describe_model(run: LoadedRun) -> str:
    """Describes data and held-out combinations of a model."""
    data = run.dataset
    points = data.splits.all
    factors = ", ".join(f"{f.name} ({f.size})" for f in data.space)
    return (
        f"{run.name}: {run.config.data.dataset} of {factors}; "
        f"{len(points):,} combinations, {int(points.is_ood.sum()):,} held "
        f"out ({data.region.spec}); relative_mse 1: {data.reference_name}"
    )


def describe_scores(metrics: Mapping[str, Any]) -> str:
    """Returns one sentence on the content of a `metrics.json`, of any age."""
    known = _find_excess(metrics, "id")
    held_out = _find_excess(metrics, "ood")
    if known is None:
        return "The error of the network in distribution is not a number."
    above = " above floor_mse" if "floor_mse" in metrics["id"] else ""
    text = f"in distribution (relative MSE{above} {known:.2g})"
    if known > FITTED:
        text = (
            f"The network does not fit {text}; at most {FITTED:g} would count "
            "as fitted"
        )
        if held_out is not None:
            text += f"; on held-out combinations it is {held_out:.2g}"
        return f"{text}."

    if held_out is None:
        is_whole = metrics.get("points", {}).get("ood") == 0
        rest = "its OOD error is unknown"
        if is_whole:
            rest = "nothing was held out"
        return f"The network fits {text}; {rest}."
    verdict = "fails on"
    if held_out <= FITTED:
        verdict = "draws"
    elif held_out <= FAILED:
        verdict = "is worse on"
    return (
        f"The network fits {text} and {verdict} held-out combinations "
        f"({held_out:.2g}){_describe_training(metrics)}"
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
    return f"; {round(share * count)} of {count} peaks are within one pixel"


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
    scores: Mapping[str, Mapping[str, float]], subset: str = "ood"
) -> dict[str, str]:
    """Returns predictors with scores, in words; of ignorant ones the best.

    Args:
        scores: Errors of predictors by name and subset.
        subset: The subset that decides which one is the best.
    """
    words = {name: REFERENCES[name] for name in REFERENCES if name in scores}
    errors = {
        name: errors[subset]
        for name, errors in scores.items()
        if name.startswith(IGNORANT) and subset in errors
    }
    if errors:
        best = min(errors, key=errors.__getitem__)
        words[best] = f"true image {best.replace('_', ' ')}"
    return words


def format_references(references: Mapping[str, Mapping[str, float]]) -> str:
    """Formats R² of predictors without a network; empty for older runs."""
    scores = {name: references[name] for name in list_references(references)}
    columns = ["id_r2", "ood_r2"]
    if not any("ood_r2" in row for row in scores.values()):
        return ""
    if any("ood_new" in row for row in scores.values()):
        columns.append("ood_new_r2")
    lines = ["", "r2 without a network"]
    for name, row in scores.items():
        line = f" {name:19}"
        for column in columns:
            value = row.get(column)
            line += f"{'-':>12}" if value is None else f"{value:12.4g}"
        lines.append(line)
    return "\n".join(lines)
