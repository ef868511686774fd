"""Penalties work by limiting the effective rank.

Section 4.1.
"by limiting the effective rank"
"""

from collections.abc import Iterator

import pandas as pd

from reproduction.claims.c11_forced_rendering import composes
from reproduction.claims.evidence import Evidence
from reproduction.claims.judge import Row
from reproduction.claims.judge import judge as judge_number
from reproduction.claims.networks import select_penalties

SEEDS = range(200, 220)
NOTE = """
Without penalties embeddings have a rank of {rows[4].number.mean:.2f}, with
both 1.00. But the entropy penalty alone gives {rows[2].number.mean:.3f}, and
composes in {rows[1].number.mean:.0%} of the seeds: it is not the rank alone.
"""


def read_rank(evidence: Evidence, runs: pd.DataFrame) -> pd.Series:
    """Reads the mean effective rank of both factors.

    Args:
        evidence: The runs and their numbers.
        runs: The runs that are read.
    """
    first = evidence.score(runs, "embeddings/x/effective_rank")
    second = evidence.score(runs, "embeddings/y/effective_rank")
    return (first + second) / 2


def judge(evidence: Evidence) -> Iterator[Row]:
    """Yields the rows of the claim."""
    runs = select_penalties(evidence, SEEDS)
    ranks = {
        name: read_rank(evidence, networks) for name, networks in runs.items()
    }
    yield judge_number(
        part="none less both",
        quantity="effective rank",
        values=ranks["none"] - ranks["both"],
        bound="> 0",
    )
    yield judge_number(
        part="entropy alone",
        quantity="share that composes",
        values=composes(evidence, runs["entropy"]),
        bound="> 0.5",
        by="share",
    )
    for name in ("entropy", "variance", "none"):
        yield judge_number(
            part=f"{name} alone",
            quantity="effective rank of embeddings",
            values=ranks[name],
            shown=False,
        )
