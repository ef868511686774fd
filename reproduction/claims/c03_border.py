"""Bump codes generalize near the border.

Figure 1b, section 3.2.
"some input encodings can support bumps partially inside the OOD region if they
overlap with the ID region"
"""

from functools import partial

from reproduction.claims import Evidence, Rows
from reproduction.claims import c01_codes_do_not_compose as c01
from reproduction.claims import c02_mlps_do_not_compose as c02
from reproduction.claims.networks import DONUTS, MLPS, judge_symptom
from tfcomp.statistics.limits import CORRELATION

NOTE = """
Rank correlation of the OOD error with the distance to ID. Errors rise with
the distance to the border for every code, so that this says nothing of bump
codes alone: {rows[0].number.mean:.2f} with bump, {rows[2].number.mean:.2f}
with ramp codes. One step inside the border bump codes have an error of
{rows[1].number.mean:.2f} and ramp codes of {rows[3].number.mean:.2f}.
"""


def judge(evidence: Evidence) -> Rows:
    """Yields the rows of the claim."""
    settings = dict(DONUTS)
    settings["positional"] = c01.OTHERS["positional"]
    for code, mlp in MLPS.items():
        settings[f"MLP, {code}"] = mlp | {"seed": c02.SEEDS}
    for part, flags in settings.items():
        judge_part = partial(
            judge_symptom,
            evidence,
            flags,
            c01.SEEDS,
            part=part,
        )
        yield judge_part(
            "border_rank_correlation",
            quantity="rank correlation, error and distance",
            bound="> 0.5",
            limits=CORRELATION,
            shown=part in DONUTS,
        )
        yield judge_part(
            "border_relative_mse/0",
            quantity="OOD error one step inside the border",
            by="geometric mean",
            shown=False,
            has_start=False,
        )
