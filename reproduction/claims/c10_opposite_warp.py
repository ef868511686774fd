"""MLPs warp in the opposite sense.

Appendix F.3.
"the MLP models seems to have the opposite “warping” effect in the OOD region as
compared to the CNN models"
"""

import pandas as pd

from reproduction.claims import Evidence, Networks, Row, Rows, compare
from reproduction.claims.networks import DONUTS, MLPS

SEEDS = range(200, 205)
PRECISIONS = {"bump": "mixed_bfloat16", "ramp": "float32"}
MEAN = "mean over stages"
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


class Opposite(Row):
    """A number of MLPs, which must have the sign that CNNs do not have."""

    specific = "-"

    @property
    def holds(self) -> str:
        """yes, no, or open, also where the sign of CNNs is not known."""
        if self.note:
            return "open"
        return super().holds

    @property
    def note(self) -> str:
        """Whether the sign of CNNs is not known."""
        cnns = self.controls["CNN"].number
        if "yes" in (compare(cnns, "> 0"), compare(cnns, "< 0")):
            return ""
        return "the sign of the CNN is not known"


def read(networks: Networks) -> pd.DataFrame:
    """Reads log-volume, OOD less ID, less the code's, of each stage."""
    outside = networks.stages("log_volume_median_ood")
    shift = outside - networks.stages("log_volume_median_id")
    return shift.sub(shift["code"], axis=0).drop(columns="code")


def summarize(networks: Networks) -> dict[str, pd.Series]:
    """Reads the mean of `read` over hidden stages, and `read` of the image."""
    stages = read(networks)
    hidden = stages.drop(columns="image").mean(axis=1)
    return {"hidden stages": hidden, "image": stages["image"]}


def judge(evidence: Evidence) -> Rows:
    """Yields the rows of the claim."""
    for code, donut in DONUTS.items():
        flags = donut | {"precision": PRECISIONS[code]}
        cnns = evidence.select(**flags, seed=SEEDS).fitted
        mlps = evidence.select(**MLPS[code], seed=SEEDS).fitted
        others = summarize(cnns)
        for where, values in summarize(mlps).items():
            sign = ">" if others[where].mean() < 0 else "<"
            yield Opposite(
                part=f"MLP, {code}, {where}",
                quantity="log-volume, OOD - ID",
                values=values,
                bound=f"{sign} 0",
                tried=mlps.tried,
                others={"CNN": others[where]},
            )
        for kind, networks in {"CNN": cnns, "MLP": mlps}.items():
            stages = read(networks)
            below = (stages.mean() < 0).sum()
            count = f"{below} of {stages.shape[1]} stages"
            columns = stages.add_prefix("stage ")
            columns[MEAN] = stages.mean(axis=1)
            for column, values in columns.items():
                yield Row(
                    part=f"{kind}, {code}, {column}",
                    quantity="log-volume, OOD less ID, less that of the code",
                    values=values,
                    tried=networks.tried,
                    shown=False,
                    remark=count if column == MEAN else "",
                )
