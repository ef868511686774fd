"""The tables of threshold searches: `thresholds.csv` and `slopes.csv`."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tfcomp.statistics import power_law
from tfcomp.statistics.power_law import PowerLaw, SizeMean
from tfcomp.storage.files import write_csv
from tfcomp.studies.thresholds import cases
from tfcomp.studies.thresholds.threshold_settings import CRITERIA

if TYPE_CHECKING:
    from tfcomp.figures.exhibits import Exhibit

Row = dict[str, Any]
KEYS = ("kind", "region", "criterion")
GUIDES = {"linear, N": 1.0, "cubic, N³": 3.0}
COLUMNS = (*KEYS, "grid_size", "mean_examples", "low", "high", "num_seeds")
# What a threshold is of, in the picture.
QUANTITY = "num_examples"


@dataclass(frozen=True)
class Law:
    """How one quantity of one kind grows with the grid."""

    key: tuple[str, ...]  # kind, region and criterion
    quantity: str  # `num_bumps` or `num_examples`
    rows: list[Row]  # the thresholds that were reached
    missed: list[Row]  # and those that were not
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


def list_rows(
    case: cases.Case, evaluations: cases.Evaluations
) -> list[Row] | None:
    """Returns a row for each criterion of a search; None before its end.

    Nothing is trained: the search is repeated on recorded scores.
    """
    rows = []
    try:
        for criterion, target in case.settings.targets.items():
            found, score = cases.find_in(
                case, criterion, evaluations.get_scores
            )
            rows.append(
                {
                    "kind": case.kind,
                    "region": case.region,
                    "criterion": criterion,
                    "grid_size": case.grid_size,
                    "seed": case.seed,
                    "num_bumps": found.count,
                    "num_examples": case.count_examples(found.count),
                    "reached": found.reached,
                    "score": score,
                    "target": target,
                    "num_trainings": len(found.answers),
                }
            )
    except cases.MissingError:
        return None
    return rows


def fit_laws(rows: Sequence[Row]) -> list[Law]:
    """Fits all kinds, regions and criteria, in order of appearance."""
    groups: dict[tuple[str, ...], list[Row]] = {}
    for row in rows:
        groups.setdefault(tuple(row[name] for name in KEYS), []).append(row)
    pairs = itertools.product(groups.items(), ("num_bumps", "num_examples"))
    return [_fit(key, quantity, group) for (key, group), quantity in pairs]


def make_slope_row(law: Law) -> Row:
    """Returns a row of `slopes.csv`."""
    numbers = ("slope", "low", "high")
    return {
        **dict(zip(KEYS, law.key, strict=True)),
        "quantity": law.quantity,
        **{name: getattr(law.fit, name, None) for name in numbers},
        "n": len(law.rows),
        "num_sizes": len({row["grid_size"] for row in law.rows}),
        "not_reached": len(law.missed),
        "note": law.note,
    }


def write_tables(folder: Path, rows: Sequence[Row]) -> None:
    """Writes rows and their laws, each in one step; nothing without rows."""
    if rows:
        write_csv(folder / "thresholds.csv", rows)
        slopes = [make_slope_row(law) for law in fit_laws(rows)]
        write_csv(folder / "slopes.csv", slopes)


def _fit(key: tuple[str, ...], quantity: str, rows: list[Row]) -> Law:
    """Fits one law; counts the searches that reached no target."""
    reached = [row for row in rows if row["reached"]]
    missed = [row for row in rows if not row["reached"]]
    counts = [row[quantity] for row in reached]
    notes = []
    if missed:
        notes.append(f"{len(missed)} of {len(rows)} searches not reached")
    if 0 in counts:
        notes.append(f"0 suffices in {counts.count(0)}: no slope")
        return Law(key, quantity, reached, missed, [], None, "; ".join(notes))
    if reached and not any(row["num_bumps"] for row in reached):
        notes.append("stripes alone: linear by construction")
    means = power_law.average_sizes(
        [row["grid_size"] for row in reached], counts
    )
    fit = power_law.fit_power_law(means)
    if fit is None:
        notes.append("fewer than 2 sizes: no slope")
    elif fit.low is None:
        notes.append("2 sizes: no interval")
    return Law(key, quantity, reached, missed, means, fit, "; ".join(notes))


def make_exhibits(
    laws: Sequence[Law], targets: dict[str, float]
) -> list[Exhibit]:
    """Plots the training examples needed over grid size, by criterion."""
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
    # Imported here: bad flags must be answered without matplotlib.
    from tfcomp.figures.exhibits import Exhibit
    from tfcomp.figures.power_law_plots import Scaling, draw_power_laws

    sign = "at least" if CRITERIA[criterion] else "at most"
    words = criterion.replace("_", " ").replace("mse", "MSE")
    goal = f"{words} of {sign} {target:g}"
    lines, rows = {}, []
    for law in laws:
        kind, region, _ = law.key
        slope = law.fit.describe() if law.fit else "no slope"
        name = f"{kind.replace('_', ' ')}, region {region}: {slope}"
        reached, missed = (
            [(row["grid_size"], row[QUANTITY]) for row in found]
            for found in (law.rows, law.missed)
        )
        means = [(m.size, m.mean, m.low, m.high) for m in law.means]
        fit = law.fit
        line = (fit.constant, fit.slope) if fit else None
        lines[name] = Scaling(reached, means, missed, line)
        values = [(*law.key, *astuple(mean)) for mean in law.means]
        rows += [dict(zip(COLUMNS, each, strict=True)) for each in values]
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
