"""C14, C15, C17, C18: training on stripes, every factor by itself."""

from dataclasses import replace

from tfcomp.studies.claims import claim_pictures, run_numbers
from tfcomp.studies.claims.claim import (
    FITTED,
    PLACED,
    Number,
    compare,
    make_share,
    make_trend,
    measure,
    measure_each,
)
from tfcomp.studies.claims.evidence import Evidence
from tfcomp.studies.claims.experiments.composition import ERROR
from tfcomp.studies.claims.experiments.decoders import make_cnn
from tfcomp.studies.claims.experiments.volumes import LATE_DEVIATION, WARP
from tfcomp.studies.claims.selection import (
    Arms,
    Group,
    Series,
    Setting,
    region_is,
)
from tfcomp.studies.claims.verdict import Part, above, below

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
    "stripes.flags", STRIPED.must | {"num_bumps": 0}, ("--encoding=bump",)
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
# A plus has its peak in place, and no interaction.
INTERACTION = Number(
    "R² of the interaction part of OOD outputs",
    "interaction_r2_ood",
    above(0.5),
    "interaction",
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
    run_numbers.list_all("interaction_r2_ood"),
    above(0),
    "trend",
    by=run_numbers.estimate_trend,
)
LAST_STEP = Number(
    "R² of the interaction part, 100 bumps less 50",
    run_numbers.difference("interaction_r2_ood"),
    above(0.1),
    "last step",
)
UNIFORMITY = Number(
    WARP[0].quantity, run_numbers.difference(LATE_DEVIATION), above(0.1)
)
TYPES = (
    Number(
        "share of product units less that of sums, last hidden stage less "
        "stage 0, net of the start",
        run_numbers.net(run_numbers.take_change("product_less_sum", -1)),
        above(0.1),
        "rise",
    ),
    make_trend("products less sums", "product_less_sum", above(0), -1),
)


def judge_lengths(evidence: Evidence) -> list[Part]:
    """C15: after 1,000 steps, which decide, and after 3,150."""
    parts = []
    for words, (epochs, steps) in LENGTHS.items():
        setting = STRIPED.require(epochs=epochs, steps_per_epoch=steps)
        found = Series(setting, "num_bumps", NUMBERS).find(evidence)
        groups = [found.get(count, Group()) for count in NUMBERS]
        pairs = zip(NUMBERS, groups, strict=True)
        missing = ", ".join(str(n) for n, group in pairs if not group.runs)
        problem = f"no run with {missing} bumps" if missing else ""
        decides = words == "1,000 steps"
        *_, fewer, most = groups
        for chosen, number in (
            (groups, TREND),
            ([most, fewer], LAST_STEP),
            ([most], SMALL_ERROR),
        ):
            parts += measure(
                words, chosen, [number], [PLACED], problem, decides=decides
            )
    return parts


def draw_counts(evidence: Evidence) -> claim_pictures.Figures:
    """OOD error against the number of bumps."""
    series = Series(STRIPED, "num_bumps", (MANY_BUMPS,)).find(evidence)
    if len(series) < 2:
        return {}
    names = {"against true bumps": "ood", "against the plus": "ood_plus"}
    return claim_pictures.draw_lines(
        list(series),
        {
            label: [
                [run.get(f"{split}/relative_mse") for run in group.runs]
                for group in series.values()
            ]
            for label, split in names.items()
        },
        xlabel="bumps in training, beside the stripes",
        ylabel="OOD MSE / blank",
        caption="OOD error, as a multiple of a blank image's, mean over "
        "seeds, with 95 % intervals.",
        logy=True,
    )


def draw_uniformity(evidence: Evidence) -> claim_pictures.Figures:
    """Spread of log-volume per stage, with and without stripes."""
    groups = ARMS.find(evidence)
    alone = STRIPES.find(evidence)
    if not any(ARMS.find_mismatch(g, alone) for g in groups.values()):
        groups["stripes only"] = alone
    return claim_pictures.draw_spread(groups)


def judge_types(evidence: Evidence) -> list[Part]:
    """C18: types of units against the stage, for every number of bumps."""
    series = COUNTS.find(evidence) or {50: Group()}
    parts = []
    for count, group in series.items():
        label = f"stripes and {count} bumps"
        parts += measure(label, [group], TYPES, [PLACED])
    return parts


def draw_types(evidence: Evidence) -> claim_pictures.Figures:
    """Products less sums per stage."""
    series = COUNTS.find(evidence)
    groups = {f"{count} bumps": group for count, group in series.items()}
    return claim_pictures.draw_stages(
        {"": (groups, "product_less_sum")},
        "products less sums",
        "Share of units that a product of a function of x and one of y fits "
        "better than a sum, less that of the contrary, per stage, mean over "
        "seeds, with 95 % intervals.",
    )


TESTS = {
    "C14": [
        measure_each(
            {"stripes only, bump": STRIPES},
            *(PLACE, INTERACTION, PLUS),
            gates=[PLACED],
        )
    ],
    "C15": [judge_lengths],
    "C17": [
        compare(
            "corner, bumps only less stripes and bumps",
            ARMS,
            ("bumps only", "stripes and bumps"),
            UNIFORMITY,
            gates=(FITTED, PLACED),
        )
    ],
    "C18": [judge_types],
}
PICTURES = {"C15": draw_counts, "C17": draw_uniformity, "C18": draw_types}
