"""Power laws of thresholds: `slopes.csv` and the figures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import astuple, dataclass
from typing import TYPE_CHECKING, Any

from tfcomp.statistics.power_law import (
    PowerLaw,
    SizeMean,
    average_sizes,
    fit_power_law,
)
from tfcomp.studies.thresholds.cases import Row
from tfcomp.studies.thresholds.search_settings import ACCURACY

if TYPE_CHECKING:
    from tfcomp.figures.exhibits import Exhibit

KEYS = ("kind", "region", "criterion")
TOTAL = "num_examples"
QUANTITIES = ("num_bumps", TOTAL)
GUIDES = {"linear, N": 1.0, "cubic, N³": 3.0}
COLUMNS = (*KEYS, "grid_size", "mean_examples", "low", "high", "num_seeds")


@dataclass(frozen=True)
class Law:
    """The growth of one quantity of one kind with the grid."""

    key: tuple[str, ...]  # kind, region and criterion
    quantity: str  # `num_bumps` or `num_examples`
    reached: list[Row]
    missed: list[Row]
    means: list[SizeMean]  # of the sizes, geometric; empty if a count is 0
    fit: PowerLaw | None
    note: str  # why there is no power law, or what was left out

    def describe(self) -> str:
        """Returns the law in one line."""
        kind, region, criterion = self.key
        text = f"{criterion}  {kind}, region {region}: {self.quantity}"
        if self.fit is not None:
            text += f" ~ {self.fit.describe()}"
        return f"{text}  [{self.note}]" if self.note else text

    def make_row(self) -> Row:
        """Returns a row of `slopes.csv`."""
        numbers = ("slope", "low", "high")
        return {
            **dict(zip(KEYS, self.key, strict=True)),
            "quantity": self.quantity,
            **{name: getattr(self.fit, name, None) for name in numbers},
            "n": len(self.reached),
            "num_sizes": len({row["grid_size"] for row in self.reached}),
            "not_reached": len(self.missed),
            "note": self.note,
        }


def fit_laws(rows: Sequence[Row]) -> list[Law]:
    """Fits all kinds, regions and criteria, in order of appearance."""
    groups: dict[tuple[str, ...], list[Row]] = {}
    for row in rows:
        groups.setdefault(tuple(row[name] for name in KEYS), []).append(row)
    return [
        _fit(key, quantity, group)
        for key, group in groups.items()
        for quantity in QUANTITIES
    ]


def _fit(key: tuple[str, ...], quantity: str, rows: list[Row]) -> Law:
    """Fits one law to the searches that reached the target."""
    reached = [row for row in rows if row["reached"]]
    missed = [row for row in rows if not row["reached"]]
    counts = [row[quantity] for row in reached]
    fit, means, notes = None, [], []
    if missed:
        notes.append(f"{len(missed)} of {len(rows)} searches not reached")
    if 0 in counts:
        notes.append(f"0 suffices in {counts.count(0)}: no slope")
    else:
        if reached and not any(row["num_bumps"] for row in reached):
            notes.append("stripes alone: linear by construction")
        means = average_sizes([row["grid_size"] for row in reached], counts)
        fit = fit_power_law(means)
        if fit is None:
            notes.append("fewer than 2 sizes: no slope")
        elif fit.low is None:
            notes.append("2 sizes: no interval")
    return Law(key, quantity, reached, missed, means, fit, "; ".join(notes))


def make_exhibits(laws: Sequence[Law]) -> list[Exhibit]:
    """Plots the training examples needed over grid size, by criterion."""
    groups: dict[str, list[Law]] = {}
    for law in laws:
        if law.quantity == TOTAL:
            groups.setdefault(law.key[2], []).append(law)
    return [_make_exhibit(group) for group in groups.values()]


def _make_exhibit(laws: Sequence[Law]) -> Exhibit:
    # Imported here: bad flags must be answered without matplotlib.
    from tfcomp.figures.estimate_plots import Scaling, draw_power_laws
    from tfcomp.figures.exhibits import Exhibit

    first = (laws[0].reached + laws[0].missed)[0]
    criterion = first["criterion"]
    sign = "at least" if criterion == ACCURACY else "at most"
    words = criterion.replace("_", " ").replace("mse", "MSE")
    goal = f"{words} of {sign} {first['target']:g}"
    lines: dict[str, Any] = {}
    rows: list[Row] = []
    for law in laws:
        kind, region, _ = law.key
        slope = law.fit.describe() if law.fit else "no slope"
        points, missed = (
            [(row["grid_size"], row[TOTAL]) for row in found]
            for found in (law.reached, law.missed)
        )
        means = [astuple(mean) for mean in law.means]
        line = (law.fit.constant, law.fit.slope) if law.fit else None
        lines[f"{kind.replace('_', ' ')}, region {region}: {slope}"] = Scaling(
            points, [mean[:4] for mean in means], missed, line
        )
        rows += [
            dict(zip(COLUMNS, law.key + mean, strict=True)) for mean in means
        ]
    figure = draw_power_laws(lines, GUIDES, title=f"Data needed for {goal}")
    caption = (
        f"The smallest number of training examples (stripes included) that "
        f"reached {goal} at held-out positions, or at all positions where "
        "nothing was held out. Small: one search, with its own seed. Large: "
        "geometric mean and 95 % interval over seeds. Line: power law through "
        "the means, with the 95 % interval of its exponent. Open triangle: "
        "not reached by this number."
    )
    return Exhibit(f"threshold_{criterion}", goal, caption, figure, rows)
