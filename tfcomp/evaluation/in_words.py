"""What the scores of a run say, in one sentence; needs no TensorFlow.

It says no more than the numbers carry: a network that does not fit what it was
trained on is called that first, and an error that is not a number is no error.
"""

import math
from collections.abc import Mapping
from typing import Any

# Relative MSE, where a blank image (or the mean image) has 1.
FITTED = 0.05
FAILED = 0.5


def describe_scores(metrics: Mapping[str, Any]) -> str:
    """One sentence from the content of a `metrics.json`, of any age."""
    known, held_out = (_find_error(metrics, name) for name in ("id", "ood"))
    seen = "what it saw"
    if "id_test" in metrics:  # the scores of ID are of more than was trained on
        seen = "combinations like those that it saw"
    if known is None:
        return f"The error of the network on {seen} is not a number."
    if known > FITTED:
        also = _tell("; on held-out combinations it is {}", held_out)
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
    return (
        f"{fits} {_judge(held_out)} held-out combinations "
        f"({_percent(held_out)}){_describe_hidden(metrics)}"
        f"{_count_places(metrics)}."
    )


def _judge(error: float) -> str:
    if error > FAILED:
        return "and fails on"
    return "and draws" if error <= FITTED else "and is worse on"


def _describe_hidden(metrics: Mapping[str, Any]) -> str:
    """Says if the split is no test of composition."""
    share = metrics.get("coverage", {}).get("values", 1.0)
    return (
        ""
        if share >= 1
        else f", although no more than {share:.1%} of the values of factors "
        "occurred in training: this is not about composition alone"
    )


def _count_places(metrics: Mapping[str, Any]) -> str:
    """How many of the held-out positions are hit; empty without any."""
    share = _find_error(metrics, "ood", "hit_rate")
    if share is None:  # a run of earlier times, or no position at all
        share = _find_error(metrics, "ood", "position_accuracy")
    count = metrics.get("points", {}).get("ood")
    if share is None:
        return ""
    if not count:
        return f"; {_percent(share)} of the held-out positions are in place"
    right = round(share * count)
    return f"; {right} of {count} held-out positions are in place"


def _find_error(
    metrics: Mapping[str, Any], subset: str, score: str = "relative_mse"
) -> float | None:
    value = metrics.get(subset, {}).get(score)
    return value if value is not None and math.isfinite(value) else None


def _tell(text: str, error: float | None) -> str:
    return "" if error is None else text.format(_percent(error))


def _percent(share: float) -> str:
    percent = 100 * share
    return f"{percent:.2g} %" if percent < 10 else f"{percent:.0f} %"
