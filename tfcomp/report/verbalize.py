"""Names of runs, and sentences on scores that claim no more than they show."""

from __future__ import annotations

import itertools
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
    "additive": "additive",
    "nearest_id": "nearest training {}",
}
# Those that ignore a factor, or merge values that look the same in training.
IGNORANT = {
    "mean_over_": "mean over {}",
    "modulo_": "ignoring {} where it looks the same",
    "without_": "ignoring {}",  # of runs up to tfcomp 0.4
}
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
MAX_CONFOUNDS = 4
MAX_FLAGS = 2  # that replace the name which the user gave to a run


def rename_runs(analyses: Sequence[RunAnalysis]) -> list[RunAnalysis]:
    """Names several runs by their settings; models from elsewhere have none."""
    if len(analyses) < 2:
        return list(analyses)
    if any(analysis.run.path is None for analysis in analyses):
        return list(analyses)

    names = name_runs([analysis.run.config for analysis in analyses])
    renamed = []
    for analysis, (name, setting) in zip(analyses, names, strict=True):
        renamed.append(analysis.rename(name, setting))
    return renamed


def name_runs(configs: Sequence[RunConfig]) -> list[tuple[str, str]]:
    """Returns names of runs, and of their settings.

    The names that the user gave stay. Trials of a sweep, and runs of several
    folders with one name, are named by what differs, as `depth 2, seed 0`, if
    flags tell them apart. A setting with several runs is named so, too.
    """
    given = [config.run_name for config in configs]
    are_trials = all(is_trial(name) for name in given)
    are_named = not are_trials
    if len(set(given)) < len(given):  # runs in several folders
        given = [config.run_dir for config in configs]
        are_trials = False
        are_named = False
    given_names = [(name, name) for name in given]

    settings = _list_settings(configs)
    varied = _list_varied(settings, IGNORED)
    if len(varied) > MAX_FLAGS and not are_trials:
        return given_names

    rows = []
    for setting in settings:
        rows.append({name: setting[name] for name in varied})
    telling = choose_flags(rows)
    labels = [make_label(setting, telling) for setting in settings]
    if are_named and len(set(labels)) == len(labels):
        return given_names
    if are_named and varied:
        return list(zip(given, labels, strict=True))
    if len(set(labels)) < len(labels):
        telling = [*telling, "seed"]
    names = [make_label(setting, telling) for setting in settings]
    if len({to_file_name(name) for name in names}) < len(names):
        return given_names
    return list(zip(names, labels, strict=True))


def _list_settings(configs: Sequence[RunConfig]) -> list[dict[str, Any]]:
    """Lists all flags of runs, with `-` for those that only others have."""
    missing: dict[str, Any] = {}
    for config in configs:  # plugins have settings of their own
        missing |= dict.fromkeys(config.identity(), "-")
    return [missing | config.identity() for config in configs]


def _list_varied(
    settings: Sequence[Mapping[str, Any]], ignored: Sequence[str] = ()
) -> list[str]:
    """Lists the flags with several values, but for those that are ignored."""
    varied = []
    for name in settings[0]:
        values = {str(setting[name]) for setting in settings}
        if len(values) > 1 and name not in ignored:
            varied.append(name)
    return varied


def describe_confounds(configs: Sequence[RunConfig]) -> str:
    """Says which flags change only together, so that none explains a score.

    Args:
        configs: Settings of the runs on a page.

    Returns:
        A sentence; empty if every flag that changes does so by itself.
    """
    if len(configs) < 2:
        return ""
    settings = _list_settings(configs)
    ignored = [name for name in IGNORED if name != "seed"]
    varied = _list_varied(settings, ignored)
    together: dict[str, None] = {}
    for one, other in itertools.combinations(varied, 2):
        pairs = {(str(s[one]), str(s[other])) for s in settings}
        ones = {pair[0] for pair in pairs}
        others = {pair[1] for pair in pairs}
        if len(pairs) == len(ones) == len(others):
            together |= {one: None, other: None}
    names = list(together)
    if not names:
        return ""
    if len(names) > MAX_CONFOUNDS:
        rest = len(names) - MAX_CONFOUNDS
        names = [*names[:MAX_CONFOUNDS], f"{rest} more flags"]
    listed = f"{', '.join(names[:-1])} and {names[-1]}"
    return (
        f"The flags {listed} differ together, so none alone explains a "
        "difference."
    )


def is_trial(name: str) -> bool:
    """Returns True for the name of a trial of a sweep."""
    # Earlier versions had the hash alone.
    pattern = r".*seed=\d+-[0-9a-f]{12}|[0-9a-f]{16}"
    return re.fullmatch(pattern, name) is not None


def to_file_name(name: str) -> str:
    """Returns a name with no characters that a file name cannot have."""
    return re.sub(r"[^\w.+-]+", "_", name).strip("_")


def describe_common(settings: Sequence[Mapping[str, Any]]) -> str:
    """Describes data, held-out region and model that all settings share."""
    parts = []
    for flag, words in SUBTITLE.items():
        values = {setting.get(flag) for setting in settings}
        if len(values) > 1:
            continue
        value = values.pop()
        if value not in (None, "") and value is not False:
            parts.append(words.format(value))
    if not parts:
        return ""
    text = ", ".join(parts)
    return f"{text[0].upper()}{text[1:]}."


def describe_model(run: LoadedRun) -> str:
    """Describes data and held-out combinations of a model."""
    data = run.dataset
    points = data.splits.all
    factors = ", ".join(f"{f.name} ({f.size})" for f in data.space)
    return (
        f"{run.name}: {run.config.data.dataset} of {factors}; "
        f"{len(points):,} combinations, {int(points.is_ood.sum()):,} held "
        f"out ({data.region.spec}); relative MSE 1: {data.reference_name}"
    )


def describe_scores(metrics: Mapping[str, Any]) -> str:
    """Returns a sentence on the content of a `metrics.json`, of any age.

    Args:
        metrics: The content; without `reference` the sentence names no image
            that the error is compared with.
    """
    trained = _find_excess(metrics, "id")
    held_out = _find_excess(metrics, "ood")
    if trained is None:
        return "The error of the network in distribution is not a number."

    if trained > FITTED:
        text = (
            "The network does not fit what it was trained on: "
            f"{_describe_error(metrics, trained)}, and at most {FITTED:g} "
            "would count as fitted"
        )
        if held_out is not None:
            text += f"; on held-out combinations it is {held_out:.2g}"
        return f"{text}."

    fits = "The network fits what it was trained on"
    if held_out is None:
        rest = "its error on held-out combinations is unknown"
        if metrics.get("points", {}).get("ood") == 0:
            rest = "nothing was held out"
        return f"{fits}; {rest}."

    verdict = "fails on"
    if held_out <= FITTED:
        verdict = "draws"
    elif held_out <= FAILED:
        verdict = "is worse on"
    error = _describe_error(metrics, held_out) + _count_peaks(metrics)
    clauses = "; ".join([error, *_describe_training(metrics)])
    return f"{fits} and {verdict} held-out combinations: {clauses}."


def _describe_error(metrics: Mapping[str, Any], error: float) -> str:
    """Describes an error in units of the error of the reference image."""
    above = ""
    if "floor_mse" in metrics["id"]:
        above = " above floor_mse"
    if not metrics.get("reference"):
        return f"the relative MSE{above} there is {error:.2g}"
    image = name_reference(metrics)
    return f"its error{above} there is {error:.2g} times {image}'s"


def name_reference(metrics: Mapping[str, Any]) -> str:
    """Names what has the relative MSE 1, as `a blank image`.

    Args:
        metrics: The content of a `metrics.json`; older ones have no name.
    """
    label = metrics.get("reference", "blank image")
    if label.startswith("blank"):
        return "a blank image"
    return f"the {label}"


def _count_peaks(metrics: Mapping[str, Any]) -> str:
    share = _find_score(metrics, "ood", "position_accuracy")
    count = metrics.get("points", {}).get("ood")
    if share is None or count is None:
        return ""
    placed = round(share * count)
    return f", and {placed} of {count} peaks are within one pixel"


def _describe_training(metrics: Mapping[str, Any]) -> list[str]:
    """Describes what training lacked, or knew, of held-out images."""
    clauses = []
    share = metrics.get("coverage", {}).get("values", 1.0)
    if share < 1:
        clauses.append(
            f"no more than {share:.1%} of the values of factors occurred in "
            "training, so this is not about composition alone"
        )
    copies = metrics.get("copies", {})
    if copies.get("num_copies"):
        clauses.append(
            f"training contains {copies['num_copies']:,} of their "
            f"{copies['num_held_out']:,} images"
        )
    return clauses


def _find_score(
    metrics: Mapping[str, Any], subset: str, score: str
) -> float | None:
    value = metrics.get(subset, {}).get(score)
    if value is None or not math.isfinite(value):
        return None
    return float(value)


def _find_excess(metrics: Mapping[str, Any], subset: str) -> float | None:
    """Returns the error over the blank's, each less the mean images' error."""
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
    example: str = "image",
) -> dict[str, str]:
    """Returns predictors with scores, in words; of ignorant ones the best.

    Args:
        scores: Errors of predictors by name and subset.
        example: The word for a row of the data, `image` or `embedding`.
    """
    words = {}
    for name, label in REFERENCES.items():
        if name in scores:
            words[name] = label.format(example)

    errors = {}
    for name, row in scores.items():
        if name.startswith(tuple(IGNORANT)) and "ood" in row:
            errors[name] = row["ood"]
    if errors:
        best = min(errors, key=errors.__getitem__)
        for start, text in IGNORANT.items():
            if best.startswith(start):
                words[best] = text.format(best.removeprefix(start))
    return words


def describe_baselines(references: Mapping[str, Mapping[str, float]]) -> str:
    """Lists R² of predictors without a network; empty for older runs.

    Args:
        references: Their scores by name, as in `metrics.json`.
    """
    parts = []
    for name, label in list_references(references).items():
        row = references[name]
        if "ood_r2" not in row:
            continue
        part = f"{label} {row['ood_r2']:.2g}"
        if "ood_new_r2" in row:
            part += f" (new images {row['ood_new_r2']:.2g})"
        parts.append(part)
    if not parts:
        return ""
    return f"R² held out: {', '.join(parts)}"
