"""Penalties work by limiting the effective rank.

Section 4.1.
"by limiting the effective rank"
"""

from pandas import Series

from reproduction.claims import Evidence, Networks, Row, Rows
from reproduction.claims.c11_forced_rendering import composes
from reproduction.claims.networks import judge_networks, select_penalties

SEEDS = range(200, 220)
NOTE = """
Without penalties embeddings have a rank of {rows[4].number.mean:.2f}, with
both 1.00. But the entropy penalty alone gives {rows[2].number.mean:.3f}, and
composes in {rows[1].number.mean:.0%} of the seeds: it is not the rank alone.
"""


def read_rank(networks: Networks) -> Series:
    """Reads the mean effective rank of both factors."""
    first = networks.score("embeddings/x/effective_rank")
    second = networks.score("embeddings/y/effective_rank")
    return (first + second) / 2


def judge(evidence: Evidence) -> Rows:
    """Yields the rows of the claim."""
    networks = select_penalties(evidence, SEEDS)
    yield Row(
        part="none less both",
        quantity="effective rank",
        values=read_rank(networks["none"]) - read_rank(networks["both"]),
        bound="> 0",
    )
    yield judge_networks(
        networks["entropy"],
        composes,
        part="entropy alone",
        quantity="share that composes",
        bound="> 0.5",
        by="share",
    )
    for name in ("entropy", "variance", "none"):
        yield judge_networks(
            networks[name],
            read_rank,
            part=f"{name} alone",
            quantity="effective rank of embeddings",
            shown=False,
        )
