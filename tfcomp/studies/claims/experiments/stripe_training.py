"""C14, C15, C17, C18: training on stripes, every factor by itself."""

import functools
from collections.abc import Sequence

from tfcomp.statistics.limits import CORRELATION
from tfcomp.statistics.seed_tests import correlate_ranks
from tfcomp.studies.claims import run_numbers
from tfcomp.studies.claims.claim import (
    EACH_FITTED,
    EACH_PLACED,
    FITTED,
    PLACED,
    Compared,
    Gate,
    Measured,
    Number,
    make_share,
    make_trend,
    measure,
)
from tfcomp.studies.claims.claim_pictures import (
    Figures,
    draw_lines,
    draw_spread,
    draw_stages,
)
from tfcomp.studies.claims.estimation import estimate_geometric, estimate_trend
from tfcomp.studies.claims.evidence import Evidence, Run
from tfcomp.studies.claims.experiments.decoders import MAIN_CODES, make_cnn
from tfcomp.studies.claims.experiments.volumes import (
    FRESH_WARP,
    LATE_DEVIATION,
    UNEVENNESS,
)
from tfcomp.studies.claims.families import Arms, Series
from tfcomp.studies.claims.selection import (
    Group,
    Setting,
    is_positive,
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
# Bumps alone and stripes with bumps. Volumes spread as training goes on, so
# that both must be trained for as many steps.
UNIFORMITY, FRESH_ARMS = (
    Arms(
        {
            "bumps only": make_cnn("bump", "corner"),
            "stripes and bumps": STRIPED.require(num_bumps=num_bumps),
        },
        free=("dataset", "num_bumps", "epochs", "steps_per_epoch"),
        equal_steps=True,
    )
    for num_bumps in (is_positive, 50)
)
# Stripes and different numbers of bumps, otherwise alike.
COUNTS = Series(STRIPED, "num_bumps")
COUNTS_TO_MANY = Series(STRIPED, "num_bumps", (MANY_BUMPS,))

# The first decides, for bump codes.
PLACE = Number("OOD position accuracy", "ood/position_accuracy", above(0.95))
PLUS = Number(
    "OOD MSE against the sum of two stripes, relative to blank",
    "ood_plus/relative_mse",
    below(1),
    decides=False,
)
ERROR = Number("OOD relative MSE (1: blank)", "ood/relative_mse", below(0.5))
FRESH_ERROR = Number(
    "OOD relative MSE (1: blank), geometric mean",
    "ood/relative_mse",
    below(0.5),
    by=estimate_geometric,
)
FRESH_TREND = Number(
    "rank correlation of OOD relative MSE with the number of bumps",
    lambda *runs: [run.get("ood/relative_mse") for run in runs],
    below(0),
    "trend",
    by=estimate_trend,
)
FRESH_UNIFORMITY = Number(
    FRESH_WARP[0].quantity, run_numbers.difference(LATE_DEVIATION), above(0.1)
)
SHARES = [
    Number(
        f"rank correlation of the additive share ({words}) with the stage",
        run_numbers.rank_with_stage(name),
        below(0),
        decides=name == "additive_share",
        limits=CORRELATION,
    )
    for words, name in (
        ("mean over units", "additive_share"),
        ("units weighted by variance", "additive_share_weighted"),
    )
]
FRESH_SHARES = (
    Number(
        "additive share, last hidden stage less stage 0, net of the start",
        run_numbers.net(run_numbers.take_change("additive_share", -1)),
        below(-0.1),
        "fall",
    ),
    make_trend("additive share", "additive_share", below(0), -1),
)


FRESH_PLACE = make_share(
    "OOD position accuracy > 0.95", {"ood/position_accuracy": above(0.95)}
)


def make_stripes(code: str) -> Setting:
    """CNNs trained on stripes alone, corner held out."""
    must = {**STRIPED.must, "encoding": code, "num_bumps": 0}
    return Setting("stripes.flags", must, (f"--encoding={code}",))


def judge_counts(evidence: Evidence) -> list[Part]:
    """C15: OOD error against the number of bumps, and at the most of them."""
    series = COUNTS_TO_MANY.find(evidence)

    def correlate(*runs: Run) -> float | None:
        return correlate_ranks([r.get("ood/mse") for r in runs], list(series))

    trend = Number(
        "rank correlation of OOD MSE and number of bumps",
        correlate,
        below(0),
        limits=CORRELATION,
    )
    counts = ", ".join(map(str, series)) or "more and more"
    problem = "" if len(series) > 2 else "fewer than three numbers"
    label = f"stripes and {counts} bumps, trend"
    most = f"stripes and {MANY_BUMPS} bumps, error"
    return [
        *measure(label, list(series.values()), [trend], problem=problem),
        *measure(most, [series.get(MANY_BUMPS, Group())], [ERROR]),
    ]


def judge_lengths(evidence: Evidence) -> list[Part]:
    """C15, version 2: after 1,000 steps, which decide, and after 3,150."""
    parts = []
    for words, (epochs, steps) in LENGTHS.items():
        setting = STRIPED.require(epochs=epochs, steps_per_epoch=steps)
        found = Series(setting, "num_bumps", NUMBERS).find(evidence)
        groups = [found.get(count, Group()) for count in NUMBERS]
        missing = [str(n) for n in NUMBERS if not found.get(n, Group()).runs]
        problem = f"no run with {', '.join(missing)} bumps" if missing else ""
        most = f"{words}, {MANY_BUMPS} bumps"
        decides, gates = words == "1,000 steps", [EACH_PLACED] * len(groups)
        parts += [
            *measure(
                words, groups, [FRESH_TREND], gates, problem, decides=decides
            ),
            *measure(
                most, groups[-1:], [FRESH_ERROR], gates[-1:], decides=decides
            ),
        ]
    return parts


def draw_counts(evidence: Evidence) -> Figures:
    """OOD error against the number of bumps."""
    series = COUNTS_TO_MANY.find(evidence)
    if len(series) < 2:
        return {}
    names = {"against true bumps": "ood", "against the plus": "ood_plus"}
    return draw_lines(
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


def draw_uniformity(evidence: Evidence) -> Figures:
    """Spread of log-volume per stage, with and without stripes."""
    groups = UNIFORMITY.find(evidence)
    alone = make_stripes("bump").find(evidence)
    if not any(UNIFORMITY.find_mismatch(g, alone) for g in groups.values()):
        groups["stripes only"] = alone
    return draw_spread(groups)


def judge_shares(
    evidence: Evidence,
    numbers: Sequence[Number] = SHARES,
    gates: Sequence[Gate] = (),
) -> list[Part]:
    """C18: additive share against stage, for every number of bumps."""
    series = COUNTS.find(evidence) or {50: Group()}
    return [
        part
        for count, group in series.items()
        for part in measure(
            f"stripes and {count} bumps", [group], numbers, gates
        )
    ]


def draw_shares(evidence: Evidence) -> Figures:
    """Additive share per stage."""
    series = COUNTS.find(evidence)
    groups = {f"{count} bumps": group for count, group in series.items()}
    return draw_stages(
        {"": (groups, "additive_share")},
        "additive share of variance",
        "Additive share per stage (1: stripes, 0: conjunctions), mean over "
        "seeds, with 95 % intervals.",
    )


def compare_arms(
    arms: Arms, *numbers: Number, gates: tuple[Gate, Gate]
) -> Compared:
    """Numbers of networks on bumps less those of networks on stripes, too."""
    label = "corner, bumps only less stripes and bumps"
    pair = "bumps only", "stripes and bumps"
    return Compared(label, arms, pair, numbers, gates)


TESTS = {
    "C14": [
        Measured(
            f"stripes only, {code}",
            make_stripes(code),
            [PLACE, PLUS],
            decides=code == "bump",
        )
        for code in MAIN_CODES
    ],
    "C15": [judge_counts],
    "C17": [compare_arms(UNIFORMITY, *UNEVENNESS, gates=(FITTED, PLACED))],
    "C18": [judge_shares],
}
FRESH_TESTS = {
    "C14": [
        Measured(
            "stripes only, bump",
            make_stripes("bump"),
            [FRESH_PLACE],
            [EACH_PLACED],
        )
    ],
    "C15": [judge_lengths],
    "C17": [
        compare_arms(
            FRESH_ARMS, FRESH_UNIFORMITY, gates=(EACH_FITTED, EACH_PLACED)
        )
    ],
    "C18": [
        functools.partial(
            judge_shares, numbers=FRESH_SHARES, gates=[EACH_PLACED]
        )
    ],
}
PICTURES = {"C15": draw_counts, "C17": draw_uniformity, "C18": draw_shares}
