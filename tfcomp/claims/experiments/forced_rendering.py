"""C11 to C13: low-rank embeddings in pixel space, and their penalties."""

from __future__ import annotations

from tfcomp.claims.claim import Claim
from tfcomp.claims.claim import Compared
from tfcomp.claims.claim import Measured
from tfcomp.claims.claim import Number
from tfcomp.claims.claim_pictures import Figures
from tfcomp.claims.claim_pictures import draw_spread
from tfcomp.claims.evidence import Evidence
from tfcomp.claims.experiments.decoders import make_decoder
from tfcomp.claims.experiments.volumes import UNEVENNESS
from tfcomp.claims.families import Arms
from tfcomp.claims.run_numbers import log_ratio
from tfcomp.claims.selection import Setting
from tfcomp.claims.selection import is_positive
from tfcomp.claims.verdict import above
from tfcomp.claims.verdict import below

# Penalties: the flagfile, and the weights of entropy and variance.
PENALTIES = {
    "none": ("low_rank_none.flags", 0, 0),
    "entropy": ("low_rank_entropy.flags", is_positive, 0),
    "variance": ("low_rank_variance.flags", 0, is_positive),
    "both": ("low_rank.flags", is_positive, is_positive),
}
# What the variance is taken of, and how the report calls it.
BASES = {"raw": "", "unit": " on unit vectors"}
HELD_OUT = {"corner": "corner:12", "centre": "square:8-23"}


def make_low_rank(
    penalties: str, region: str = "corner", basis: str = "raw"
) -> Setting:
    """Low-rank networks with some of `PENALTIES`, and a region of `HELD_OUT`.

    The basis is that of the variance penalty, of no importance without it.
    """
    flagfile, entropy, variance = PENALTIES[penalties]
    setting = make_decoder(
        flagfile,
        HELD_OUT[region],
        f"--penalty_basis={basis}",
        model="low_rank",
        entropy_weight=entropy,
        variance_weight=variance,
    )
    return setting.require(penalty_basis=basis) if variance else setting


def make_arms(*names: str) -> Arms:
    """Low-rank networks that differ in their penalties alone."""
    free = ("entropy_weight", "variance_weight", "penalty_basis")
    return Arms({name: make_low_rank(name) for name in names}, free)


ALL = make_arms(*PENALTIES)
EXTREMES = make_arms("none", "both")

GENERALIZATION = [
    Number(
        "OOD relative MSE (1: blank)", "ood/relative_mse", below(0.1), "error"
    ),
    Number(
        "OOD position accuracy",
        "ood/position_accuracy",
        above(0.95),
        "position",
    ),
]


def compare_errors(worse: str, better: str, split: str = "OOD") -> Compared:
    """The error with some penalties over that with others; OOD, it decides."""
    number = Number(
        f"log₁₀ ratio of {split} MSE",
        log_ratio(f"{split.lower()}/mse"),
        above(0),
        decides=split == "OOD",
    )
    return Compared(f"{worse} over {better}", ALL, (worse, better), [number])


def draw_spreads(evidence: Evidence) -> Figures:
    """Spread of log-volume per stage, of all settings that are alike."""
    decided = EXTREMES.find(evidence)
    groups = ALL.find(evidence) | decided
    return draw_spread(
        {
            name: group
            for name, group in groups.items()
            if not EXTREMES.find_mismatch(decided["none"], group)
        }
    )


CLAIMS = (
    Claim(
        "C11",
        "Forced rendering generalizes",
        "A network that renders every value of a factor as a low-rank matrix "
        "in pixel space, with entropy and variance penalties, composes: in "
        "the centre and in a corner.",
        "figures 3b, 3c, section 4.1",
        "OOD relative MSE < 0.1, and position accuracy > 0.95",
        "The penalty on raw parameters, as published, decides; on the unit "
        "vectors that are in use, beside it.",
        [
            Measured(
                f"{region}, both penalties{words}",
                make_low_rank("both", region, basis),
                GENERALIZATION,
                decides=basis == "raw",
            )
            for basis, words in BASES.items()
            for region in HELD_OUT
        ],
    ),
    Claim(
        "C12",
        "Both penalties are needed",
        "Without penalties ID is best and OOD worst; the entropy penalty "
        "helps a little, the variance penalty much, both most.",
        "figure 3e",
        "OOD MSE: none > entropy > variance > both, every step",
        "Decimal logarithm of the ratio of MSE at equal seeds (errors differ "
        "by factors of a hundred), corner held out. Beside it, how much "
        "worse ID is than without penalties.",
        [
            compare_errors("none", "entropy"),
            compare_errors("entropy", "variance"),
            compare_errors("variance", "both"),
            compare_errors("entropy", "none", "ID"),
            compare_errors("variance", "none", "ID"),
            compare_errors("both", "none", "ID"),
        ],
    ),
    Claim(
        "C13",
        "Penalties make the representation smoother",
        "With penalties the representation changes more evenly with x and y.",
        "figure 3d",
        "spread of log-volume smaller with both penalties",
        "Standard deviation of log-volume over the grid, mean over the stages "
        "after the code, without less with penalties, at equal seeds.",
        [
            Compared(
                "corner, none less both", EXTREMES, ("none", "both"), UNEVENNESS
            )
        ],
        draw_spreads,
    ),
)
