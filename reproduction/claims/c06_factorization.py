"""Factorization decays from stage to stage.

Figures 2a to 2d, 11 to 14.
"We note that both metrics decay relatively gracefully over the layer depth"
"""

from functools import partial

from reproduction.claims import Evidence, Rows
from reproduction.claims.networks import DONUTS, judge_symptom, read_change

SEEDS = range(300, 310)
METRICS = {
    "exact": "factorization",
    "published code": "factorization_gradient_ratio_of_means",
}
NOTE = """
By exact derivatives F also falls in networks that draw all positions
({rows[0].controls[trained on all].number.mean:.3f} with bump codes): a fall
does not tell a network that fails from one that composes. By the published
code (differences over the grid, ratio of means) the change is
{rows[1].number.mean:+.3f} with bump and {rows[3].number.mean:+.3f} with ramp
codes. Depths other than 4 have one seed; five are missing.
"""


def judge(evidence: Evidence) -> Rows:
    """Yields the rows of the claim."""
    for code, flags in DONUTS.items():
        for words, name in METRICS.items():
            yield judge_symptom(
                evidence,
                flags,
                SEEDS,
                partial(read_change, name=name, last="image"),
                part=code,
                quantity=f"F ({words}), image less stage 0",
                bound="< 0",
            )
