"""Disentangled codes do not compose.

Figures 1b and 1c, section 3.2.
"all networks largely fail in the OOD region"
"""

from collections.abc import Iterator
from typing import Any

from reproduction.claims.evidence import Evidence
from reproduction.claims.judge import Row
from reproduction.claims.networks import (
    DONUTS,
    SQUARE,
    judge_symptom,
    read_score,
)
from tfcomp.statistics.limits import SHARE

SEEDS = range(100, 120)
CODES = SQUARE | {"model": "cnn", "width": 32, "epochs": 100}
OTHERS = {"one-hot": "one_hot", "positional": "positional"}
NOTE = """
The error decides; peaks within one pixel stand beside it
({rows[1].number.mean:.2f} of all held-out positions with bump codes). One-hot
and positional networks were trained in bfloat16, their controls in float32;
their errors are {rows[4].number.mean:.2f} and {rows[6].number.mean:.2f}.
"""


def judge(evidence: Evidence) -> Iterator[Row]:
    """Yields the rows of the claim."""
    settings = dict(DONUTS)
    for code, encoding in OTHERS.items():
        settings[code] = CODES | {
            "encoding": encoding,
            "precision": "mixed_bfloat16",
        }
    for code, flags in settings.items():
        common: dict[str, Any] = {
            "evidence": evidence,
            "flags": flags,
            "seeds": SEEDS if code in DONUTS else range(100, 105),
            "part": code,
            "has_start": False,
            "control": {"precision": "float32"},
        }
        yield judge_symptom(
            read=read_score("ood/relative_mse"),
            quantity="OOD error, a blank image has 1",
            bound="> 0.5",
            by="geometric mean",
            shown=code in DONUTS,
            **common,
        )
        yield judge_symptom(
            read=read_score("ood/position_accuracy"),
            quantity="share of OOD peaks within 1 px",
            bound="< 0.95",
            limits=SHARE,
            shown=False,
            **common,
        )
