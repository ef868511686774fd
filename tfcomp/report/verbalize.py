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
    """Returns the names of runs, as `depth 2, seed 0`, and of settings."""
    known = [config.identity() for config in configs]
    own = [(config.run_name, config.run_name) for config in configs]
    if len({*own}) < len(own):  # runs in several folders
        own = [(config.run_dir, config.run_dir) for config in configs]
    # Runs lack the settings of plugins that only others have.
    every = {n: "-" for f in known for n in f if n not in IGNORED}
    flags = [every | f for f in known]
    varied = [n for n in every if len({str(f[n]) for f in flags}) > 1]
    if len(varied) > MAX_FLAGS and not all(is_hash(name) for name, _ in own):
        return own
    chosen = choose_flags([{n: f[n] for n in varied} for f in flags])
    settings = [make_label(f, chosen) for f in flags]
    if len({*settings}) < len(flags):
        chosen = [*chosen, "seed"]
    names = [make_label(f, chosen) for f in flags]
    if len({*map(to_file_name, names)}) < len(names):
        return own
    return [*zip(names, settings, strict=True)]


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
        value, *others = dict.fromkeys(s.get(flag) for s in settings)
        if value is False or value in (None, "") or others:
            continue
        words = f"{value} {word}" if flag == "epochs" else f"{word} {value}"
        parts.append(word if value is True else words)
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
    known, held_out = (_find_excess(metrics, name) for name in ("id", "ood"))
    above = " above floor_mse" * ("floor_mse" in metrics.get("id", {}))
    # With `id_test`, the scores of ID are of more than was trained on.
    seen = "combinations like those that it saw"
    seen = seen if "id_test" in metrics else "what it saw"
    if known is None:
        return f"The error of the network on {seen} is not a number."
    if known > FITTED:
        also = f"; on held-out combinations it is {_percent(held_out or 0)}"
        also = "" if held_out is None else also
        found, most = _percent(known), _percent(FITTED)
        found = f"just above {most}" if found == most else found
        return (
            f"The network does not fit {seen}: its relative error{above} "
            f"there is {found}, and at most {most} would count as fitted{also}."
        )
    fits = f"The network fits {seen} (relative error{above} {_percent(known)})"
    if held_out is None:
        is_whole = metrics.get("points", {}).get("ood") == 0
        why = "nothing was held out" if is_whole else "its OOD error is unknown"
        return f"{fits}; {why}."
    verdict = "draws" if held_out <= FITTED else "is worse on"
    if held_out > FAILED:
        verdict = "fails on"
    share, hidden = metrics.get("coverage", {}).get("values", 1.0), ""
    if share < 1:
        hidden = (
            f", although no more than {share:.1%} of the values of factors "
            "occurred in training: this is not about composition alone"
        )
    copies = metrics.get("copies", {})
    if known := copies.get("num_copies"):
        count = copies["num_held_out"]
        hidden += f"; training contains {known:,} of their {count:,} images"
    return (
        f"{fits} and {verdict} held-out combinations ({_percent(held_out)})"
        f"{hidden}{_count_places(metrics)}."
    )


def list_references(
    scores: Mapping[str, Mapping[str, float]], subset: str = "ood"
) -> dict[str, str]:
    """Returns predictors with scores, in words; of ignorant ones the best."""
    ignorant = {
        name: found[subset]
        for name, found in scores.items()
        if name.startswith(tuple(IGNORANT)) and subset in found
    }
    best = min(ignorant, key=ignorant.__getitem__, default="")
    words = dict(REFERENCES)
    for start, text in IGNORANT.items():
        if best.startswith(start):
            words[best] = text.format(best.removeprefix(start))
    return {name: text for name, text in words.items() if name in scores}


def format_references(references: Mapping[str, Mapping[str, float]]) -> str:
    """Formats R² of predictors without a network; empty for older runs."""
    shown = {name: references[name] for name in list_references(references)}
    if not any("ood_r2" in scores for scores in shown.values()):
        return ""
    is_new = any("ood_new" in scores for scores in shown.values())
    subsets = ["id", "ood"] + ["ood_new"] * is_new
    table = "\nr2 without a network"
    for name, scores in shown.items():
        values = (scores.get(f"{subset}_r2") for subset in subsets)
        cells = (f"{'-':>12}" if v is None else f"{v:12.4g}" for v in values)
        table += f"\n {name:19}{''.join(cells)}"
    return table


def describe_references(metrics: Mapping[str, Any]) -> str:
    """Compares the (OOD) error of a run with predictors without a network."""
    subset = "id" if _find_error(metrics, "ood") is None else "ood"
    error, scores = _find_error(metrics, subset), metrics.get("references", {})
    told: dict[str, list[str]] = {"less": [], "not less": []}
    for name, text in list_references(scores, subset).items():
        rival = scores[name].get(subset)
        if error is not None and rival is not None:
            how = "less" if error < rival else "not less"
            told[how].append(f"{text} ({_percent(rival)})")
    parts = [
        f"{how} than {_join(texts)}" for how, texts in told.items() if texts
    ]
    return f"The error there is {', but '.join(parts)}." if parts else ""


def _count_places(metrics: Mapping[str, Any]) -> str:
    share = _find_error(metrics, "ood", "hit_rate")
    if share is None:  # an older run, or no position at all
        share = _find_error(metrics, "ood", "position_accuracy")
    if share is None:
        return ""
    count = metrics.get("points", {}).get("ood")
    hits = f"{round(share * count)} of {count}" if count else ""
    places = hits or f"{_percent(share)} of the"
    return f"; {places} held-out positions are in place"


def _find_error(
    metrics: Mapping[str, Any], subset: str, score: str = "relative_mse"
) -> float | None:
    value = metrics.get(subset, {}).get(score)
    return value if value is not None and math.isfinite(value) else None


def _find_excess(metrics: Mapping[str, Any], subset: str) -> float | None:
    """Returns the error over the blank's, both less that of means of images."""
    error, scores = _find_error(metrics, subset), metrics.get(subset, {})
    mse, floor = scores.get("mse"), scores.get("floor_mse")
    if not (error and mse and floor) or (blank := mse / error) <= floor:
        return error
    return round(max(0.0, mse - floor) / (blank - floor), 9)


def _join(texts: list[str]) -> str:
    first = ", ".join(texts[:-1])
    return f"{first} and {texts[-1]}" if first else "".join(texts)


def _percent(share: float) -> str:
    percent = 100 * share
    if percent < 10:
        return f"{percent:.2g} %"
    return f"{percent:.0f} %" if percent < HUGE else f"{percent:.1e} %"
