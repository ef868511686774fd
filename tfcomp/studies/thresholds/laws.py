"""Power laws of thresholds: `slopes.csv` and the figures."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import astuple
from typing import TYPE_CHECKING, Any

from tfcomp.statistics.estimates import (
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
GUIDES = {"linear, N": 1.0, "cubic, N³": 3.0}
COLUMNS = (*KEYS, "grid_size", "mean_examples", "low", "high", "num_seeds")
Key = tuple[str, ...]


def list_slopes(rows: Sequence[Row]) -> list[Row]:
    """Returns the rows of `slopes.csv`: the growth of a count with the grid."""
    slopes = []
    for key, group in _group(rows):
        reached = [row for row in group if row["reached"]]
        for quantity in ("num_bumps", TOTAL):
            _, fit, note = _fit(group, quantity)
            numbers = ("slope", "low", "high")
            slope = {
                **dict(zip(KEYS, key, strict=True)),
                "quantity": quantity,
                **{name: getattr(fit, name, None) for name in numbers},
                "n": len(reached),
                "num_sizes": len({row["grid_size"] for row in reached}),
                "not_reached": len(group) - len(reached),
                "note": note,
            }
            slopes.append(slope)
    return slopes


def _group(rows: Sequence[Row]) -> Iterator[tuple[Key, list[Row]]]:
    groups: dict[Key, list[Row]] = {}
    for row in rows:
        groups.setdefault(tuple(row[name] for name in KEYS), []).append(row)
    yield from groups.items()


def _fit(
    rows: Sequence[Row], quantity: str
) -> tuple[list[SizeMean], PowerLaw | None, str]:
    """Returns means of sizes, their law, and why there is none."""
    reached = [row for row in rows if row["reached"]]
    counts, notes = [row[quantity] for row in reached], []
    if missed := len(rows) - len(reached):
        notes.append(f"{missed} of {len(rows)} searches not reached")
    if 0 in counts:
        notes.append(f"0 suffices in {counts.count(0)}: no slope")
        return [], None, "; ".join(notes)
    if reached and not any(row["num_bumps"] for row in reached):
        notes.append("stripes alone: linear by construction")
    means = average_sizes([row["grid_size"] for row in reached], counts)
    fit = fit_power_law(means)
    if fit is None:
        notes.append("fewer than 2 sizes: no slope")
    elif fit.low is None:
        notes.append("2 sizes: no interval")
    return means, fit, "; ".join(notes)


def make_exhibits(rows: Sequence[Row]) -> list[Exhibit]:
    """Plots the training examples needed over grid size, by criterion."""
    criteria = dict.fromkeys(row["criterion"] for row in rows)
    return [
        _make_exhibit(name, [row for row in rows if row["criterion"] == name])
        for name in criteria
    ]


def _make_exhibit(criterion: str, searches: list[Row]) -> Exhibit:
    # Imported here: bad flags must be answered without matplotlib.
    from tfcomp.figures.estimate_plots import Scaling, draw_power_laws
    from tfcomp.figures.exhibits import Exhibit

    sign = "at least" if criterion == ACCURACY else "at most"
    words = criterion.replace("_", " ").replace("mse", "MSE")
    goal = f"{words} of {sign} {searches[0]['target']:g}"
    lines: dict[str, Any] = {}
    rows: list[Row] = []
    for key, group in _group(searches):
        means, fit, _ = _fit(group, TOTAL)
        numbers = [astuple(mean) for mean in means]
        slope = fit.describe() if fit else "no slope"
        reached, missed = (
            [
                (r["grid_size"], r[TOTAL])
                for r in group
                if r["reached"] == is_met
            ]
            for is_met in (True, False)
        )
        lines[f"{key[0].replace('_', ' ')}, region {key[1]}: {slope}"] = (
            Scaling(
                reached,
                [mean[:4] for mean in numbers],
                missed,
                (fit.constant, fit.slope) if fit else None,
            )
        )
        rows += [
            dict(zip(COLUMNS, key + mean, strict=True)) for mean in numbers
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
