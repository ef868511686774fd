"""The picture of the laws (figure 4c), and the means that it shows."""

from collections.abc import Sequence
from dataclasses import astuple
from typing import Any

from tfcomp.figures.exhibits import Exhibit
from tfcomp.figures.power_law_plots import Scaling, draw_power_laws
from tfcomp.studies.thresholds.threshold_settings import CRITERIA
from tfcomp.studies.thresholds.threshold_tables import KEYS, Law

GUIDES = {"linear, N": 1.0, "cubic, N³": 3.0}
WORDS = {
    "position_accuracy": "position accuracy",
    "relative_mse": "relative MSE",
}
# What a threshold is of, in the picture.
QUANTITY = "num_examples"


def make_exhibits(
    laws: Sequence[Law], targets: dict[str, float]
) -> list[Exhibit]:
    """One picture a criterion: training examples needed over grid size."""
    exhibits = []
    for criterion, target in targets.items():
        chosen = [
            law
            for law in laws
            if law.quantity == QUANTITY and law.key[2] == criterion
        ]
        if chosen:
            exhibits.append(_make_exhibit(chosen, criterion, target))
    return exhibits


def _make_exhibit(
    laws: Sequence[Law], criterion: str, target: float
) -> Exhibit:
    sign = "at least" if CRITERIA[criterion] else "at most"
    goal = f"{WORDS[criterion]} of {sign} {target:g}"
    figure = draw_power_laws(
        {_name(law): _make_scaling(law) for law in laws},
        GUIDES,
        xlabel="grid size N (px)",
        ylabel="training examples needed",
        title=f"Data needed for {goal}",
    )
    caption = (
        f"The smallest number of training examples (stripes included) that "
        f"reached {goal} at held-out positions, or at all positions where "
        "nothing was held out. Small: one search, with its own seed. Large: "
        "geometric mean and 95 % interval over seeds. Line: power law through "
        "the means, with the 95 % interval of its exponent. Open triangle: "
        "not reached by this number."
    )
    rows = [row for law in laws for row in _list_means(law)]
    return Exhibit(f"threshold_{criterion}", goal, caption, figure, rows)


def _name(law: Law) -> str:
    kind, region, _ = law.key
    name = f"{kind.replace('_', ' ')}, region {region}"
    slope = law.fit.describe() if law.fit else "no slope"
    return f"{name}: {slope}"


def _make_scaling(law: Law) -> Scaling:
    return Scaling(
        points=[(row["grid_size"], row[QUANTITY]) for row in law.rows],
        means=[(m.size, m.mean, m.low, m.high) for m in law.means],
        missed=[(row["grid_size"], row[QUANTITY]) for row in law.missed],
        line=None if law.fit is None else (law.fit.constant, law.fit.slope),
    )


def _list_means(law: Law) -> list[dict[str, Any]]:
    columns = (*KEYS, "grid_size", "mean_examples", "low", "high", "num_seeds")
    return [
        dict(zip(columns, (*law.key, *astuple(mean)), strict=True))
        for mean in law.means
    ]
