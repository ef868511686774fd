"""Unseen combinations are superpositions of memories.

Figure 1d, section 3.3.
"it finds an image or images in the training data with similar values of x and
the closest values of y, and superposes these to generate a new image"
"""

from functools import partial

from pandas import Series

from reproduction.claims import Evidence, Networks, Rows
from reproduction.claims.networks import judge_symptom, list_donuts
from tfcomp.statistics.limits import AT_MOST_ONE, SHARE

SEEDS = range(300, 320)
SHARING = "sharing_far_r2_centered"
RIVALS = {
    "nearest outputs that share neither factor": "rival_far_r2_centered",
    "outputs that share one factor": "single_far_r2_centered",
}
NOTE = """
Points at least 4 steps inside the square. With bump codes untrained networks
have {rows[0].controls[untrained].number.mean:.2f} as well, so that training
does not make outputs superpositions. {rows[3].number.mean:.0%} of the outputs
have no peak with bump codes, and {rows[7].number.mean:.0%} with ramp codes,
which are nearly blank.
"""


def judge(evidence: Evidence) -> Rows:
    """Yields the rows of the claim."""
    for code, flags in list_donuts(evidence).items():
        judge_code = partial(
            judge_symptom,
            evidence,
            flags,
            SEEDS,
            part=code,
        )
        yield judge_code(
            SHARING,
            quantity="R² of OOD outputs on outputs sharing x or y",
            bound="> 0.5",
            limits=AT_MOST_ONE,
        )
        for words, rival in RIVALS.items():
            yield judge_code(
                partial(read_margin, rival=rival),
                quantity=f"this R² less that on {words}",
                bound="> 0",
                shown=False,
            )
        yield judge_code(
            "no_peak_ood",
            quantity="share of OOD images without any peak",
            limits=SHARE,
            shown=False,
        )


def read_margin(networks: Networks, rival: str) -> Series:
    """Reads this R² less a rival's R².

    Args:
        networks: The networks that are read.
        rival: The name of the rival's R².
    """
    return networks.score(SHARING) - networks.score(rival)
