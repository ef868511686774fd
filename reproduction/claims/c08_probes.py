"""Linear probes weaken from stage to stage.

Figures 2, 11 to 14.
"We note that both metrics decay relatively gracefully over the layer depth"
"""

from collections.abc import Iterator

from reproduction.claims.evidence import Evidence
from reproduction.claims.judge import Row
from reproduction.claims.networks import DONUTS, judge_symptom, read_change

SEEDS = range(100, 120)
NOTE = """
Networks that draw all positions weaken as well ({rows[0].controls[trained on
all].number.mean:.2f} with bump codes): probes do not tell who composes.
Untrained networks are not scored.
"""


def judge(evidence: Evidence) -> Iterator[Row]:
    """Yields the rows of the claim."""
    for code, flags in DONUTS.items():
        yield judge_symptom(
            evidence,
            flags,
            SEEDS,
            read=read_change("probe_r2_ood"),
            part=code,
            quantity="probe R² (ID to OOD), last less first hidden",
            bound="< 0",
            has_start=False,
        )
