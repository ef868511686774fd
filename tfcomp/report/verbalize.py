"""Names of runs, and sentences on scores that claim no more than they show."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tfcomp.config.run_config import RunConfig
from tfcomp.statistics.seed_statistics import IGNORED, choose_flags, make_label

if TYPE_CHECKING:
    from tfcomp.models.loading import LoadedRun

# Relative MSE: the reference (`Dataset.reference`) has 1.
FITTED = 0.05
FAILED = 0.5
HUGE = 1e6  # percent, after which digits say nothing
# Predictors without a network, and their names in sentences.
REFERENCES = {
    "additive": "the best sum of effects of single factors",
    "nearest_id": "the nearest training image",
}
# Names of those that ignore a factor begin so (`reference_scores`).
IGNORANT = {
    "without_": "the true image with {} ignored",
    "modulo_": "the true image with equal values of {} merged",
}
# Flags in a subtitle, and their words.
SUBTITLE = {
    "dataset": "dataset",
    "region": "held out",
    "train_all": "but trained on as a control",
    "encoding": "code",
    "model": "model",
    "depth": "depth",
    "epochs": "epochs",
}
MAX_FLAGS = 2  # that replace the name which the user gave to a run


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
    chosen = choose_flags([{n: f[n] for n in varied} for f in flags])
    settings = [make_label(f, chosen) for f in flags]
    if len(set(settings)) < len(settings):
        chosen = [*chosen, "seed"]
    names = [make_label(f, chosen) for f in flags]
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
    for flag, word in SUBTITLE.items():
        values = {setting.get(flag) for setting in settings}
        value = values.pop()
        if values or value is None or value is False or value == "":
            continue
        if value is True:
            parts.append(word)
        elif flag == "epochs":
            parts.append(f"{value} {word}")
        else:
            parts.append(f"{word} {value}")
    text = ", ".join(parts)
    return f"{text[:1].upper()}{text[1:]}." if text else ""


def describe_model(run: LoadedRun) -> str:
    """Describes data and held-out combinations of a model."""
    data, every = run.dataset, run.dataset.splits.all
    factors = ", ".join(f"{f.name} ({f.size})" for f in data.space)
    return (
        f"{run.name}: {run.config.data.dataset} of {factors}; "
        f"{len(every):,} combinations, {int(every.is_ood.sum()):,} held "
        f"out ({data.region.spec}); relative_mse 1: {data.reference_name}"
    )


def describe_scores(metrics: Mapping[str, Any]) -> str:
    """Returns one sentence on the content of a `metrics.json`, of any age."""
    known = _find_excess(metrics, "id")
    held_out = _find_excess(metrics, "ood")
    seen = "what it saw"
    if "id_test" in metrics:  # ID has more combinations than were trained on
        seen = "combinations like those that it saw"
    if known is None:
        return f"The error of the network on {seen} is not a number."
    above = " above floor_mse" if "floor_mse" in metrics["id"] else ""
    if known > FITTED:
        error = _percent(known)
        limit = _percent(FITTED)
        if error == limit:
            error = f"just above {limit}"
        text = (
            f"The network does not fit {seen}: its relative error{above} "
            f"there is {error}, and at most {limit} would count as fitted"
        )
        if held_out is not None:
            text += f"; on held-out combinations it is {_percent(held_out)}"
        return f"{text}."

    text = f"The network fits {seen} (relative error{above} {_percent(known)})"
    if held_out is None:
        if metrics.get("points", {}).get("ood") == 0:
            return f"{text}; nothing was held out."
        return f"{text}; its OOD error is unknown."
    if held_out <= FITTED:
        verdict = "draws"
    elif held_out <= FAILED:
        verdict = "is worse on"
    else:
        verdict = "fails on"
    return (
        f"{text} and {verdict} held-out combinations ({_percent(held_out)})"
        f"{_describe_training(metrics)}{_count_places(metrics)}."
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


def list_references(
    scores: Mapping[str, Mapping[str, float]], subset: str = "ood"
) -> dict[str, str]:
    """Returns predictors with scores, in words; of ignorant ones the best."""
    words = {name: REFERENCES[name] for name in REFERENCES if name in scores}
    best = ""
    least = math.inf
    for name, errors in scores.items():
        error = errors.get(subset, math.inf)
        if name.startswith(tuple(IGNORANT)) and error < least:
            best = name
            least = error
    for start, text in IGNORANT.items():
        if best.startswith(start):
            words[best] = text.format(best.removeprefix(start))
    return words


def format_references(references: Mapping[str, Mapping[str, float]]) -> str:
    """Formats R² of predictors without a network; empty for older runs."""
    shown = {name: references[name] for name in list_references(references)}
    columns = ["id_r2", "ood_r2"]
    if not any("ood_r2" in scores for scores in shown.values()):
        return ""
    if any("ood_new" in scores for scores in shown.values()):
        columns.append("ood_new_r2")
    lines = ["", "r2 without a network"]
    for name, scores in shown.items():
        line = f" {name:19}"
        for column in columns:
            value = scores.get(column)
            line += f"{'-':>12}" if value is None else f"{value:12.4g}"
        lines.append(line)
    return "\n".join(lines)


def describe_references(metrics: Mapping[str, Any]) -> str:
    """Compares the (OOD) error of a run with predictors without a network."""
    subset = "ood"
    error = _find_error(metrics, subset)
    if error is None:
        subset = "id"
        error = _find_error(metrics, subset)
    scores = metrics.get("references", {})
    beaten = []
    unbeaten = []
    for name, text in list_references(scores, subset).items():
        rival = scores[name].get(subset)
        if error is None or rival is None:
            continue
        text = f"{text} ({_percent(rival)})"
        if error < rival:
            beaten.append(text)
        else:
            unbeaten.append(text)
    parts = []
    if beaten:
        parts.append(f"less than {_join(beaten)}")
    if unbeaten:
        parts.append(f"not less than {_join(unbeaten)}")
    return f"The error there is {', but '.join(parts)}." if parts else ""


def _count_places(metrics: Mapping[str, Any]) -> str:
    share = _find_error(metrics, "ood", "hit_rate")
    if share is None:  # an older run, or no position at all
        share = _find_error(metrics, "ood", "position_accuracy")
    if share is None:
        return ""
    count = metrics.get("points", {}).get("ood")
    places = f"{_percent(share)} of the"
    if count:
        places = f"{round(share * count)} of {count}"
    return f"; {places} held-out positions are in place"


def _find_error(
    metrics: Mapping[str, Any], subset: str, score: str = "relative_mse"
) -> float | None:
    value = metrics.get(subset, {}).get(score)
    if value is None or not math.isfinite(value):
        return None
    return float(value)


def _find_excess(metrics: Mapping[str, Any], subset: str) -> float | None:
    """Returns the error over the blank's, both less that of means of images."""
    error = _find_error(metrics, subset)
    mse = metrics.get(subset, {}).get("mse")
    floor = metrics.get(subset, {}).get("floor_mse")
    if not (error and mse and floor):
        return error
    blank = mse / error
    if blank <= floor:
        return error
    return round(max(0.0, mse - floor) / (blank - floor), 9)


def _join(texts: list[str]) -> str:
    *first, last = texts
    return f"{', '.join(first)} and {last}" if first else last


def _percent(share: float) -> str:
    percent = 100 * share
    if percent < 10:
        return f"{percent:.2g} %"
    return f"{percent:.0f} %" if percent < HUGE else f"{percent:.1e} %"
