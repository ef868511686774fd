"""Linear probes weaken from stage to stage.

Figures 2, 11 to 14.
"We note that both metrics decay relatively gracefully over the layer depth"
"""

from functools import partial

from reproduction.claims import Evidence, Rows
from reproduction.claims.networks import DONUTS, judge_symptom, read_change

SEEDS = range(100, 120)
NOTE = """
Networks that draw all positions weaken as well ({rows[0].controls[trained on
all].number.mean:.2f} with bump codes): probes do not tell who composes.
Untrained networks are not scored.
"""


def judge(evidence: Evidence) -> Rows:
    """Yields the rows of the claim."""
    for code, flags in DONUTS.items():
        yield judge_symptom(
            evidence,
            flags,
            SEEDS,
            partial(read_change, name="probe_r2_ood"),
            part=code,
            quantity="probe R² (ID to OOD), last less first hidden",
            bound="< 0",
            has_start=False,
        )
