"""C14, C15, C17, C18: training on stripes, every factor by itself."""

import functools
from dataclasses import replace

from tfcomp.statistics.estimates import estimate_trend
from tfcomp.statistics.verdicts import above, below
from tfcomp.studies.claims.claim import (
    FITTED,
    PLACED,
    Case,
    Check,
    Declaration,
    Number,
    Versus,
    change_hidden,
    collect,
    list_hidden,
    make_share,
    make_trend,
    minus,
)
from tfcomp.studies.claims.evidence import Evidence
from tfcomp.studies.claims.experiments.composition import ERROR
from tfcomp.studies.claims.experiments.decoders import make_cnn
from tfcomp.studies.claims.experiments.volumes import OOD_WARP, WARP
from tfcomp.tables.groups import Group
from tfcomp.tables.selection import Arms, Series, Setting, region_is

MANY_BUMPS = 100
NUMBERS = (0, 10, 50, MANY_BUMPS)
# The first decides: epochs, and steps of one.
LENGTHS = {"1,000 steps": (25, 40), "3,150 steps": (50, 63)}
STRIPED = Setting(
    "stripes_and_bumps.flags",
    {
        "dataset": "stripes",
        "model": "cnn",
        "encoding": "bump",
        "region": region_is("corner"),
    },
)
STRIPES = Setting(
    "stripes.flags", {**STRIPED.must, "num_bumps": 0}, ("--encoding=bump",)
)
# Bumps alone and stripes with bumps. Volumes spread as training goes on, so
# that both must be trained for as many steps.
ARMS = Arms(
    {
        "bumps only": make_cnn("bump", "corner"),
        "stripes and bumps": STRIPED.require(num_bumps=50),
    },
    free=("dataset", "num_bumps", "epochs", "steps_per_epoch"),
    equal_steps=True,
)
# Stripes and different numbers of bumps, otherwise alike.
COUNTS = Series(STRIPED, "num_bumps")

PLACE = make_share(
    "OOD position accuracy > 0.95", {"ood/position_accuracy": above(0.95)}
)


def take_image(stages: list[float]) -> float:
    """Returns the number of the image, the last stage."""
    return stages[-1]


# A plus has its peak in place, and no interaction.
INTERACTION = Number(
    "R² of the interaction part of OOD outputs",
    "interaction_r2_ood",
    above(0.5),
    "interaction",
)
# A faint bump on a plus has the interaction, and nothing to be seen of it.
AMPLITUDE = Number(
    "share of interactions in the variance of outputs over the grid",
    "interaction_share",
    above(0.1),
    "amplitude",
    over=take_image,
)
PLUS = Number(
    "OOD MSE against the sum of two stripes, relative to blank",
    "ood_plus/relative_mse",
    below(1),
    "plus",
    decides=False,
)
SMALL_ERROR = replace(ERROR, rule=below(0.5), name=f"{MANY_BUMPS} bumps")
TREND = Number(
    "rank correlation of the interaction part's R² with the number of bumps",
    "interaction_r2_ood",
    above(0),
    "trend",
    across=collect,
    by=estimate_trend,
)
LAST_STEP = Number(
    "R² of the interaction part, 100 bumps less 50",
    "interaction_r2_ood",
    above(0.1),
    "last step",
    across=minus,
)
UNIFORMITY = replace(WARP[0], name="", across=minus)
# The corner by itself: a network that crumples ID as well is not uniform.
UNIFORM_OOD = replace(OOD_WARP, across=minus)
TYPES = (
    Number(
        "share of product units less that of sums, last hidden stage less "
        "stage 0, net of the start",
        "product_less_sum",
        above(0.1),
        "rise",
        over=change_hidden,
        net=True,
    ),
    make_trend("products less sums", "product_less_sum", above(0), list_hidden),
    # Of the trained network alone: the untrained one may fall.
    Number(
        "share of product units less that of sums, last hidden stage less "
        "stage 0",
        "product_less_sum",
        above(0.1),
        "rise of the trained network",
        over=change_hidden,
    ),
    Number(
        "products less sums, rank correlation with the stage",
        "product_less_sum",
        above(0),
        "trend of the trained network",
        over=list_hidden,
        by=estimate_trend,
    ),
)


def find_counts(
    evidence: Evidence, length: str, shown: slice = slice(None)
) -> list[Case]:
    """Returns networks that differ in their number of bumps alone.

    After 1,000 steps, which decide, or after 3,150.
    """
    epochs, steps = LENGTHS[length]
    setting = STRIPED.require(epochs=epochs, steps_per_epoch=steps)
    found = Series(setting, "num_bumps", NUMBERS).find(evidence.groups)
    groups = [found.get(count, Group()) for count in NUMBERS]
    pairs = zip(NUMBERS, groups, strict=True)
    missing = ", ".join(str(n) for n, group in pairs if not len(group))
    problem = f"no run with {missing} bumps" if missing else ""
    return [Case(length, groups[shown], problem, length == "1,000 steps")]


def list_counts(evidence: Evidence) -> list[Case]:
    """Returns the networks of every number of bumps."""
    series = COUNTS.find(evidence.groups) or {50: Group()}
    return [Case(f"stripes and {n} bumps", [g]) for n, g in series.items()]


# As the paper states it: peaks in place from stripes alone; errors that fall
# as bumps are added; less distortion than with bumps alone; trained units.
FALLING = replace(
    TREND,
    quantity="rank correlation of OOD relative MSE with the number of bumps",
    column="ood/relative_mse",
    rule=below(0),
    name="error",
)
ALONE = {"stripes only, bump": STRIPES}
CORNER = Versus(
    "corner, bumps only less stripes and bumps",
    ARMS,
    ("bumps only", "stripes and bumps"),
)
CLAIMS = {
    "C14": Declaration(
        [Check(ALONE, [PLACE, INTERACTION, AMPLITUDE, PLUS], [PLACED])],
        [Check(ALONE, [PLACE, replace(PLUS, decides=True)], [PLACED])],
    ),
    "C15": Declaration(
        [
            Check(
                functools.partial(find_counts, length=length, shown=shown),
                [number],
                [PLACED],
            )
            for length in LENGTHS
            for shown, number in (
                (slice(None), TREND),
                (slice(-1, -3, -1), LAST_STEP),  # most, then fewer
                (slice(-1, None), SMALL_ERROR),
            )
        ],
        [
            Check(
                functools.partial(find_counts, length="1,000 steps"),
                [FALLING, TREND],
                [PLACED],
            )
        ],
    ),
    "C17": Declaration(
        [Check(CORNER, [UNIFORMITY, UNIFORM_OOD], [FITTED, PLACED])],
        [Check(CORNER, [replace(UNIFORMITY, rule=above(0))], [FITTED, PLACED])],
    ),
    "C18": Declaration(
        [Check(list_counts, TYPES, [PLACED])],
        [Check(list_counts, TYPES[2:3], [PLACED])],
    ),
}
