"""Each penalty lowers the error, both most.

Figure 3e.
"No Reg yields the lowest ID error but the highest OOD error [...] Entropy Only
marginally improves OOD performance, while Variance Only significantly enhances
extrapolation at the cost of higher ID loss. Combining both constraints
(Entropy+Var) achieves the best OOD performance while maintaining low ID error"
"""

import math
from collections.abc import Iterator

import pandas as pd

from reproduction.claims.c11_forced_rendering import composes
from reproduction.claims.evidence import Evidence
from reproduction.claims.judge import Row
from reproduction.claims.judge import judge as judge_number
from reproduction.claims.networks import select_penalties

SEEDS = range(200, 220)
OOD = [("none", "entropy"), ("entropy", "variance"), ("variance", "both")]
ID = [
    ("entropy", "none"),
    ("variance", "none"),
    ("both", "none"),
    ("variance", "both"),
]
NOTE = """
Fitted networks decide, as everywhere. Over all networks the last ratio is
{rows[5].number.mean:.2f} [{rows[5].number.low:.2f}, {rows[5].number.high:.2f}],
n = {rows[5].number.n}. Each row compares networks with those without the cure.
Missing: 20 more seeds of variance and of both.
"""


def judge(evidence: Evidence) -> Iterator[Row]:
    """Yields the rows of the claim."""
    runs = select_penalties(evidence, SEEDS)
    for subset, pairs in (("ood", OOD), ("id", ID)):
        for worse, better in pairs:
            for is_fitted in (True, False):
                yield compare(evidence, runs, subset, worse, better, is_fitted)
    for name in ("entropy", "variance", "both"):
        yield judge_number(
            part=f"{name} alone" if name != "both" else name,
            quantity="share of seeds that compose",
            values=composes(evidence, runs[name]),
            by="share",
            shown=False,
        )


def compare(
    evidence: Evidence,
    runs: dict[str, pd.DataFrame],
    subset: str,
    worse: str,
    better: str,
    is_fitted: bool,
) -> Row:
    """Judges the ratio of errors of two settings at equal seeds.

    Args:
        evidence: The runs and their numbers.
        runs: Runs by the name of their penalties.
        subset: `id` or `ood`.
        worse: The name of the setting above the line.
        better: The name of the setting below it.
        is_fitted: Whether fitted runs alone count.
    """
    errors = []
    for name in (worse, better):
        networks = runs[name]
        if is_fitted:
            networks = evidence.fitted(networks)
        errors.append(evidence.score(networks, f"{subset}/mse"))
    ratios = errors[0] / errors[1]
    logs = ratios.map(math.log10, na_action="ignore")
    words = ", all networks"
    if is_fitted:
        words = ""
    return judge_number(
        part=f"{worse} over {better}{words}",
        quantity=f"log10 ratio of {subset.upper()} MSE",
        values=logs.dropna(),
        bound="> 0",
        tried=len(runs[worse]),
        shown=is_fitted and subset == "ood",
    )
