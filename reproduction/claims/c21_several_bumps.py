"""Unseen combinations have several bumps.

Section 3.2.
"all consistently generate multiple bumps when prompted with an OOD input"
"""

from functools import partial

from reproduction.claims import Evidence, Rows
from reproduction.claims.networks import DONUTS, judge_symptom
from tfcomp.statistics.limits import SHARE

SEEDS = range(300, 320)
NEW_SEEDS = range(310, 320)  # of runs with the curve over heights
SEVERAL = "OOD images with two peaks or more"
# In heights of a bump, as `multiple_peaks_by_height_ood` has them.
HEIGHTS = (0.5, 0.2, 0.1, 0.05, 0.02, 0.01)
NOTE = """
A peak has a tenth of a bump's height; {rows[1].number.mean:.0%} of the images
have no peak with bump codes, and {rows[9].number.mean:.0%} with ramp codes. The
paper names no height: with bump codes the share above a twentieth is
{rows[5].number.mean:.2f}, above a fiftieth {rows[6].number.mean:.2f}. Networks
trained on all combinations have not been measured by height, nor have ramp
codes.
"""


def judge(evidence: Evidence) -> Rows:
    """Yields the rows of the claim."""
    for code, flags in DONUTS.items():
        judge_code = partial(
            judge_symptom,
            evidence,
            flags,
            part=code,
            limits=SHARE,
        )
        yield judge_code(
            SEEDS,
            "multiple_peaks_ood",
            quantity=f"share of {SEVERAL}",
            bound="> 0.5",
        )
        yield judge_code(
            SEEDS,
            "no_peak_ood",
            quantity="share of OOD images without any peak",
            shown=False,
        )
        for place, height in enumerate(HEIGHTS):
            yield judge_code(
                NEW_SEEDS,
                f"multiple_peaks_by_height_ood/{place}",
                quantity=f"share of {SEVERAL}, above {height}",
                shown=False,
            )
