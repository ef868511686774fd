"""The precondition of most claims: an underfitted network proves nothing."""

from __future__ import annotations

from typing import Any

from tfcomp.claims.numbers import score
from tfcomp.claims.selection import Group
from tfcomp.claims.selection import estimate
from tfcomp.claims.verdict import Verdict
from tfcomp.claims.verdict import below
from tfcomp.claims.verdict import decide

# Relative MSE on ID; 1 is a blank image.
FITTED = below(0.05)


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
    found = estimate(group, score("id/relative_mse"))
    if not group.runs:
        return ""
    if found is None:
        return "not fitted: some run has no finite ID error"
    verdict, reason = decide(found, FITTED)
    if verdict is Verdict.REPRODUCED or found.low is None:
        return ""  # one seed decides nothing anyway
    return (
        f"not fitted: ID relative MSE {found.mean:.2g} "
        f"[{found.low:.2g}, {found.high:.2g}], not {FITTED}"
    )
