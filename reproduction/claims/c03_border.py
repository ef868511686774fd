"""Bump codes generalize near the border.

Figure 1b, section 3.2.
"some input encodings can support bumps partially inside the OOD region if they
overlap with the ID region"
"""

from collections.abc import Iterator
from typing import Any

from reproduction.claims.c01_codes_do_not_compose import CODES, OTHERS
from reproduction.claims.evidence import Evidence
from reproduction.claims.judge import Row
from reproduction.claims.networks import DONUTS, MLPS, judge_symptom, read_score
from tfcomp.statistics.limits import CORRELATION

NOTE = """
Rank correlation of the OOD error with the distance to ID. Errors rise with
the distance to the border for every code, so that this says nothing of bump
codes alone: {rows[0].number.mean:.2f} with bump, {rows[2].number.mean:.2f}
with ramp codes. One step inside the border bump codes have an error of
{rows[1].number.mean:.2f} and ramp codes of {rows[3].number.mean:.2f}.
"""


def judge(evidence: Evidence) -> Iterator[Row]:
    """Yields the rows of the claim."""
    positional = CODES | {"encoding": "positional"}
    positional = positional | {"precision": "mixed_bfloat16"}
    settings = {
        "bump": (DONUTS["bump"], range(100, 120)),
        "ramp": (DONUTS["ramp"], range(100, 120)),
        OTHERS["positional"]: (positional, range(100, 105)),
        "MLP, bump": (MLPS["bump"], range(100, 110)),
        "MLP, ramp": (MLPS["ramp"], range(100, 110)),
    }
    for part, (flags, seeds) in settings.items():
        common: dict[str, Any] = {
            "evidence": evidence,
            "flags": flags,
            "seeds": seeds,
            "part": part,
            "control": {"precision": "float32"},
        }
        yield judge_symptom(
            read=read_score("border_rank_correlation"),
            quantity="rank correlation, error and distance",
            bound="> 0.5",
            limits=CORRELATION,
            shown=part in DONUTS,
            **common,
        )
        yield judge_symptom(
            read=read_score("border_relative_mse/0"),
            quantity="OOD error one step inside the border",
            bound="",
            by="geometric mean",
            shown=False,
            has_start=False,
            **common,
        )
