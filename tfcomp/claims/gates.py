"""What training must have reached: an unfitted network proves nothing."""

from __future__ import annotations

from dataclasses import dataclass

from tfcomp.claims.estimation import estimate
from tfcomp.claims.selection import Group
from tfcomp.claims.verdict import Rule
from tfcomp.claims.verdict import Verdict
from tfcomp.claims.verdict import above
from tfcomp.claims.verdict import below
from tfcomp.claims.verdict import decide


@dataclass(frozen=True)
class Gate:
    """A rule for a score on trained (ID) combinations.

    The whole interval of the mean over seeds must agree with the rule.

    Attributes:
        name: The score in `metrics.json`.
        words: What it is called.
        rule: What it must be.
    """

    name: str
    words: str
    rule: Rule

    def find_failure(self, group: Group) -> str:
        """Why the runs of a group prove nothing; empty if they pass."""
        if not group.runs:
            return ""
        found = estimate(f"id/{self.name}", group)
        if found is None:
            return f"not fitted: some run has no finite ID {self.words}"
        verdict, _ = decide(found, self.rule)
        if verdict is Verdict.REPRODUCED or found.low is None:
            return ""  # one seed decides nothing anyway
        return (
            f"not fitted: ID {self.words} {found.mean:.2g} "
            f"[{found.low:.2g}, {found.high:.2g}], not {self.rule}"
        )


# A blank image has a relative MSE of 1.
FITTED = Gate("relative_mse", "relative MSE", below(0.05))
# From stripes alone a network draws a plus and not a bump: its error on bumps
# is large however well it is trained.
PLACED = Gate("position_accuracy", "position accuracy", above(0.95))
