"""MLP decoders fail as CNNs do.

Section 3.1, appendix F.3, figures 13 and 14.
"observing qualitatively similar findings"
"""

from reproduction.claims import Evidence, Rows
from reproduction.claims.networks import MLPS, judge_symptom

SEEDS = range(100, 110)
NOTE = """
Of 10 networks trained on all combinations only {rows[0].controls[trained on
all].number.n} with bump codes fit, and {rows[1].controls[trained on
all].number.n} with ramp codes: longer controls are missing.
"""


def judge(evidence: Evidence) -> Rows:
    """Yields the rows of the claim."""
    for code, flags in MLPS.items():
        epochs = flags["epochs"]
        yield judge_symptom(
            evidence,
            flags,
            SEEDS,
            "ood/relative_mse",
            part=f"MLP, {code}",
            quantity="OOD error, a blank image has 1",
            bound="> 0.5",
            has_start=False,
            # Seeds from 310 on are trained for three times the epochs.
            control={
                "epochs": (epochs, 3 * epochs),
                "seed": range(300, 315),
            },
            by="geometric mean",
        )
