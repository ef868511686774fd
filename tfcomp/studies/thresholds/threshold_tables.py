"""The tables of threshold searches: `thresholds.csv` and `slopes.csv`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tfcomp.statistics.power_law import (
    PowerLaw,
    SizeMean,
    average_sizes,
    fit_power_law,
)
from tfcomp.storage.files import write_csv
from tfcomp.studies.thresholds.cases import (
    Case,
    Evaluations,
    MissingError,
    find_in,
)
from tfcomp.studies.thresholds.threshold_settings import CRITERIA

if TYPE_CHECKING:
    from tfcomp.figures.exhibits import Exhibit

Row = dict[str, Any]
KEYS = ("kind", "region", "criterion")
QUANTITIES = ("num_bumps", "num_examples")
GUIDES = {"linear, N": 1.0, "cubic, N³": 3.0}
WORDS = {
    "position_accuracy": "position accuracy",
    "relative_mse": "relative MSE",
}
# What a threshold is of, in the picture.
QUANTITY = "num_examples"


@dataclass(frozen=True)
class Law:
    """How one quantity of one kind grows with the grid.

    Attributes:
        key: Kind, region and criterion.
        quantity: `num_bumps` or `num_examples`.
        rows: The thresholds that were reached.
        missed: Those that were not.
        means: Geometric means of the sizes; empty if a count is 0.
        fit: The power law; None if it does not exist.
        note: Why not, or what was left out.
    """

    key: tuple[str, ...]
    quantity: str
    rows: list[Row]
    missed: list[Row]
    means: list[SizeMean]
    fit: PowerLaw | None
    note: str

    def describe(self) -> str:
        """The law in one line."""
        kind, region, criterion = self.key
        text = f"{criterion}  {kind}, region {region}: {self.quantity}"
        if self.fit is not None:
            text += f" ~ {self.fit.describe()}"
        return f"{text}  [{self.note}]" if self.note else text


def list_rows(case: Case, evaluations: Evaluations) -> list[Row] | None:
    """One row for each criterion of a search; None before it is finished.

    Nothing is trained: the search is repeated on recorded scores.
    """
    try:
        return [
            _make_row(case, criterion, evaluations)
            for criterion in case.settings.targets
        ]
    except MissingError:
        return None


def fit_laws(rows: Sequence[Row]) -> list[Law]:
    """The laws of all kinds, regions and criteria, in order of appearance."""
    groups: dict[tuple[str, ...], list[Row]] = {}
    for row in rows:
        key = tuple(row[name] for name in KEYS)
        groups.setdefault(key, []).append(row)
    return [
        _fit(key, quantity, group)
        for key, group in groups.items()
        for quantity in QUANTITIES
    ]


def make_slope_row(law: Law) -> Row:
    """One row of `slopes.csv`."""
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


def _make_row(case: Case, criterion: str, evaluations: Evaluations) -> Row:
    found, score = find_in(case, criterion, evaluations.get_scores)
    return {
        "kind": case.kind,
        "region": case.region,
        "criterion": criterion,
        "grid_size": case.grid_size,
        "seed": case.seed,
        "num_bumps": found.count,
        "num_examples": case.count_examples(found.count),
        "reached": found.reached,
        "score": score,
        "target": case.settings.targets[criterion],
        "num_trainings": len(found.answers),
    }


def _fit(key: tuple[str, ...], quantity: str, rows: list[Row]) -> Law:
    """Fits one law; searches that reached no target are counted alone."""
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
    means = average_sizes([row["grid_size"] for row in reached], counts)
    fit = fit_power_law(means)
    if fit is None:
        notes.append("fewer than 2 sizes: no slope")
    elif fit.low is None:
        notes.append("2 sizes: no interval")
    return Law(key, quantity, reached, missed, means, fit, "; ".join(notes))


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
    # Imported here: bad flags must be answered without matplotlib.
    from tfcomp.figures.exhibits import Exhibit
    from tfcomp.figures.power_law_plots import Scaling, draw_power_laws

    sign = "at least" if CRITERIA[criterion] else "at most"
    goal = f"{WORDS[criterion]} of {sign} {target:g}"
    figure = draw_power_laws(
        {
            _name(law): Scaling(
                points=[(row["grid_size"], row[QUANTITY]) for row in law.rows],
                means=[(m.size, m.mean, m.low, m.high) for m in law.means],
                missed=[
                    (row["grid_size"], row[QUANTITY]) for row in law.missed
                ],
                line=law.fit and (law.fit.constant, law.fit.slope),
            )
            for law in laws
        },
        GUIDES,
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


def _list_means(law: Law) -> list[dict[str, Any]]:
    columns = (*KEYS, "grid_size", "mean_examples", "low", "high", "num_seeds")
    return [
        dict(zip(columns, (*law.key, *astuple(mean)), strict=True))
        for mean in law.means
    ]
