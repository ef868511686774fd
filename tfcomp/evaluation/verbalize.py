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


def describe_runs(found: Mapping[str, Mapping[str, Any]]) -> str:
    """Describes the errors of one run or of several, by name."""
    if len(found) == 1:
        return describe_scores(next(iter(found.values())))
    known = {name: _find_error(m, "id") for name, m in found.items()}
    unfit = [n for n, error in known.items() if error is None or error > FITTED]
    fits = (
        f"{len(found) - len(unfit)} of {len(found)} networks fit what they saw"
    )
    if unfit:
        names, more = ", ".join(unfit[:MAX_NAMED]), len(unfit) - MAX_NAMED
        if more > 0:
            names += f" and {more} more"
        fits += f" (not {names}: above {_percent(FITTED)})"
    held_out = {name: _find_error(m, "ood") for name, m in found.items()}
    errors = {name: e for name, e in held_out.items() if e is not None}
    if not errors:
        return f"{fits}."
    best, worst = min(errors, key=errors.get), max(errors, key=errors.get)
    return (
        f"{fits}; on held-out combinations the relative error is least in "
        f"{best} ({_percent(errors[best])}) and largest in {worst} "
        f"({_percent(errors[worst])})."
    )


def describe_references(found: Mapping[str, Mapping[str, Any]]) -> str:
    """Compares the errors of runs with those of predictors without a network.

    On held-out combinations, or on all if none is held out; empty if unknown.
    """
    compared = []
    for metrics in found.values():
        subset = "id" if _find_error(metrics, "ood") is None else "ood"
        error = _find_error(metrics, subset)
        scores = metrics.get("references", {})
        rivals = {
            text: scores[name][subset]
            for name, text in REFERENCES.items()
            if scores.get(name, {}).get(subset) is not None
        }
        if error is not None and rivals:
            compared.append((error, rivals))
    if not compared:
        return ""
    if len(found) > 1:
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


def _count_places(metrics: Mapping[str, Any]) -> str:
    """Counts the held-out positions that are hit; empty without any."""
    share = _find_error(metrics, "ood", "hit_rate")
    if share is None:  # an older run, or no position at all
        share = _find_error(metrics, "ood", "position_accuracy")
    count = metrics.get("points", {}).get("ood")
    if share is None:
        return ""
    right = f"{_percent(share)} of the"
    if count:
        right = f"{round(share * count)} of {count}"
    return f"; {right} held-out positions are in place"


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
