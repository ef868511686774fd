"""MLPs warp in the opposite sense.

Appendix F.3.
"the MLP models seems to have the opposite “warping” effect in the OOD region as
compared to the CNN models"
"""

from collections.abc import Iterator
from dataclasses import replace

import pandas as pd

from reproduction.claims.evidence import Evidence
from reproduction.claims.judge import Row, compare
from reproduction.claims.judge import judge as judge_number
from reproduction.claims.networks import DONUTS, MLPS

SEEDS = range(200, 205)
PRECISIONS = {"bump": "mixed_bfloat16", "ramp": "float32"}
NOTE = """
Log-volume, OOD less ID, less the code's. With bump codes CNNs and MLPs
have the same sign at hidden stages and at the image: CNNs are below 0 at
{rows[8].note}, MLPs at {rows[13].note}. With ramp codes signs change from stage
to stage: CNNs have {rows[16].number.mean:+.2f},
{rows[17].number.mean:+.2f}, {rows[18].number.mean:+.2f},
{rows[19].number.mean:+.2f}, {rows[20].number.mean:+.2f} and
{rows[21].number.mean:+.2f} at the image; MLPs {rows[23].number.mean:+.2f},
{rows[24].number.mean:+.2f}, {rows[25].number.mean:+.2f} and
{rows[26].number.mean:+.2f}.
"""


def read(evidence: Evidence, runs: pd.DataFrame) -> pd.DataFrame:
    """Reads log-volume, OOD less ID, less the code's, of each stage.

    Args:
        evidence: The runs and their numbers.
        runs: The runs that are read.
    """
    outside = evidence.stages(runs, "log_volume_median_ood")
    shift = outside - evidence.stages(runs, "log_volume_median_id")
    return shift.sub(shift["code"], axis=0).drop(columns="code")


def judge(evidence: Evidence) -> Iterator[Row]:
    """Yields the rows of the claim."""
    for code in DONUTS:
        flags = DONUTS[code] | {"precision": PRECISIONS[code]}
        cnns = evidence.select(**flags, seed=SEEDS)
        mlps = evidence.select(**MLPS[code], seed=SEEDS)
        cnn = read(evidence, evidence.fitted(cnns))
        mlp = read(evidence, evidence.fitted(mlps))
        parts = {
            "hidden stages": (
                mlp.drop(columns="image").mean(axis=1),
                cnn.drop(columns="image").mean(axis=1),
            ),
            "image": (mlp["image"], cnn["image"]),
        }
        for where, (values, others) in parts.items():
            yield compare_signs(f"MLP, {code}, {where}", values, others, mlps)
        for kind, stages, runs in (("CNN", cnn, cnns), ("MLP", mlp, mlps)):
            columns = {f"stage {name}": stages[name] for name in stages}
            columns["mean over stages"] = stages.mean(axis=1)
            below = (stages.mean() < 0).sum()
            count = f"{below} of {stages.shape[1]} stages"
            for where, values in columns.items():
                yield judge_number(
                    part=f"{kind}, {code}, {where}",
                    quantity="log-volume, OOD less ID, less that of the code",
                    values=values,
                    tried=len(runs),
                    shown=False,
                    note=count if where.startswith("mean") else "",
                )


def compare_signs(
    part: str,
    values: pd.Series,
    others: pd.Series,
    runs: pd.DataFrame,
) -> Row:
    """Judges that MLPs have the sign that CNNs do not have.

    Args:
        part: The part of the claim.
        values: Numbers of MLPs, by seed.
        others: Numbers of CNNs, by seed.
        runs: The MLPs that were tried.
    """
    sign = ">" if others.mean() < 0 else "<"
    row = judge_number(
        part=part,
        quantity="log-volume, OOD - ID",
        values=values,
        bound=f"{sign} 0",
        tried=len(runs),
        controls={"CNN": others},
    )
    other_sign = {">": "<", "<": ">"}[sign]
    if compare(row.controls["CNN"].number, f"{other_sign} 0") == "yes":
        return replace(row, specific="-")
    note = "the sign of the CNN is not known"
    return replace(row, holds="open", specific="-", note=note)
