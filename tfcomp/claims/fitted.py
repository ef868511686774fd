"""The precondition of most claims: an untrained network proves nothing."""

from __future__ import annotations

from typing import Any

from tfcomp.claims.estimation import estimate
from tfcomp.claims.numbers import score
from tfcomp.claims.selection import Group
from tfcomp.claims.verdict import Rule
from tfcomp.claims.verdict import Verdict
from tfcomp.claims.verdict import above
from tfcomp.claims.verdict import below
from tfcomp.claims.verdict import decide

# Relative MSE on ID; 1 is a blank image.
FITTED = below(0.05)
# Position accuracy on ID. From stripes alone a network draws a plus and not a
# bump: its error on bumps is large however well it is trained.
PLACED = above(0.95)


def support(group: Group) -> dict[str, Any]:
    """What a part says of the fitted runs behind it, for `make_part`."""
    return {
        "groups": (group,),
        "problem": find_misfit(group),
    }


def find_misfit(group: Group) -> str:
    """Why the runs prove nothing; empty if they are fitted.

    The mean ID relative MSE must be below 0.05 with its whole interval.
    """
    return _find_failure(group, "relative_mse", "relative MSE", FITTED)


def find_misplacement(group: Group) -> str:
    """Why runs on stripes prove nothing; empty if they are trained.

    The mean ID position accuracy must be above 0.95 with its whole interval.
    """
    return _find_failure(
        group, "position_accuracy", "position accuracy", PLACED
    )


def _find_failure(group: Group, name: str, words: str, rule: Rule) -> str:
    if not group.runs:
        return ""
    found = estimate(group, score(f"id/{name}"))
    if found is None:
        return f"not fitted: some run has no finite ID {words}"
    verdict, _ = decide(found, rule)
    if verdict is Verdict.REPRODUCED or found.low is None:
        return ""  # one seed decides nothing anyway
    return (
        f"not fitted: ID {words} {found.mean:.2g} "
        f"[{found.low:.2g}, {found.high:.2g}], not {rule}"
    )
