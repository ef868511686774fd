"""Describes the scores of runs in sentences that claim no more than they show.

A network that does not fit its training data is called that first.
"""

import math
from collections.abc import Mapping
from typing import Any

# Relative MSE: the reference (`Dataset.reference`) has 1.
FITTED = 0.05
FAILED = 0.5
MAX_NAMED = 3
HUGE = 1e6  # percent, after which digits say nothing
# Predictors without a network, and their names in sentences.
REFERENCES = {
    "additive": "the best sum of effects of single factors",
    "nearest_id": "the nearest training image",
}
Runs = Mapping[str, Mapping[str, Any]]  # contents of `metrics.json` by name


def describe_scores(metrics: Mapping[str, Any]) -> str:
    """Returns one sentence on the content of a `metrics.json`, of any age."""
    known, held_out = (_find_error(metrics, name) for name in ("id", "ood"))
    seen = "what it saw"
    if "id_test" in metrics:  # the scores of ID are of more than was trained on
        seen = "combinations like those that it saw"
    if known is None:
        return f"The error of the network on {seen} is not a number."
    if known > FITTED:
        also = ""
        if held_out is not None:
            also = f"; on held-out combinations it is {_percent(held_out)}"
        return (
            f"The network does not fit {seen}: its relative error there is "
            f"{_percent(known)}, and at most {_percent(FITTED)} would count as "
            f"fitted{also}."
        )
    fits = f"The network fits {seen} (relative error {_percent(known)})"
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
    return (
        f"{fits} and {verdict} held-out combinations ({_percent(held_out)})"
        f"{hidden}{_count_places(metrics)}."
    )


def describe_runs(runs: Runs) -> str:
    """Describes the errors of one run or of several, by name."""
    if len(runs) == 1:
        return describe_scores(next(iter(runs.values())))
    known = {name: _find_error(m, "id") for name, m in runs.items()}
    unfit = [n for n, error in known.items() if error is None or error > FITTED]
    fits = f"{len(runs) - len(unfit)} of {len(runs)} networks fit what they saw"
    if unfit:
        names, more = ", ".join(unfit[:MAX_NAMED]), len(unfit) - MAX_NAMED
        names += f" and {more} more" if more > 0 else ""
        fits += f" (not {names}: above {_percent(FITTED)})"
    held_out = [(_find_error(m, "ood"), name) for name, m in runs.items()]
    errors = [(error, name) for error, name in held_out if error is not None]
    if not errors:
        return f"{fits}."
    (least, best), (most, worst) = min(errors), max(errors)
    return (
        f"{fits}; on held-out combinations the relative error is least in "
        f"{best} ({_percent(least)}) and largest in {worst} ({_percent(most)})."
    )


def describe_references(runs: Runs) -> str:
    """Compares the errors of runs with predictors without a network.

    On held-out combinations, or on all if none is held out; empty if unknown.
    """
    pairs = [_find_rivals(metrics) for metrics in runs.values()]
    compared = [(e, r) for e, r in pairs if e is not None and r]
    if not compared:
        return ""
    if len(runs) > 1:
        better = sum(error < min(r.values()) for error, r in compared)
        words = " and ".join(REFERENCES.values())
        return (
            f"{better} of {len(compared)} networks are better there than "
            f"{words}, which need no network."
        )
    ((error, rivals),) = compared
    texts = [f"{_percent(rival)} for {text}" for text, rival in rivals.items()]
    beaten = [text for text, rival in rivals.items() if error < rival]
    verdict = f"better than {' and '.join(beaten)}"
    if not beaten:
        verdict = "not better than these"
    elif len(beaten) == len(rivals):
        verdict = "better than that"
    return (
        f"Without a network, the error there is {' and '.join(texts)}: the "
        f"network is {verdict}."
    )


def _find_rivals(
    metrics: Mapping[str, Any],
) -> tuple[float | None, dict[str, float]]:
    subset = "id" if _find_error(metrics, "ood") is None else "ood"
    scores = metrics.get("references", {})
    rivals = {
        text: scores.get(n, {}).get(subset) for n, text in REFERENCES.items()
    }
    known = {text: error for text, error in rivals.items() if error is not None}
    return _find_error(metrics, subset), known


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


def _percent(share: float) -> str:
    percent = 100 * share
    if percent < 10:
        return f"{percent:.2g} %"
    return f"{percent:.0f} %" if percent < HUGE else f"{percent:.1e} %"
