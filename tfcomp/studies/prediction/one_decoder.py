"""All early numbers at once, for somebody who has one decoder and one task.

The rules of `judgement` ask one number at a time, and across decoders. Here a
ridge regression within every decoder and region predicts the outcome from
hyperparameters, then from these and all early numbers that look at ID points
alone. Settings are left out whole: seeds of a setting are not independent.
The early numbers help if, at 95 %, they raise the rank correlation with the
outcome and R², and more than numbers of other networks do (`PERMUTATIONS`).
"""

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from tfcomp.studies.prediction.design import DECODER, ID_ONLY
from tfcomp.studies.prediction.judgement import ID_ERROR
from tfcomp.studies.prediction.networks import Array, Numbers
from tfcomp.studies.prediction.predict_report import OUTCOME, SMALLEST
from tfcomp.studies.prediction.records import Found

EARLY = ("0", "0.05", "0.1", "0.25")
GROUPED = (DECODER, "region")
MIN_SHARE = 0.9
FOLDS, INNER_FOLDS = 16, 5
PENALTIES = 10.0 ** np.arange(-2, 6)
# Standard deviations beyond which a number counts no more.
FURTHEST = 4.0
PERMUTATIONS, DRAWS = 39, 2000


@dataclass(frozen=True)
class Group:
    """The networks of one decoder and region.

    Attributes:
        name: Decoder and region.
        known: Hyperparameters and their products, [n, h].
        numbers: Early numbers of ID points, [n, d].
        outcome: log10 of the OOD relative MSE, [n].
        cells: The number of the setting of each, [n].
    """

    name: str
    known: Array
    numbers: Array
    outcome: Array
    cells: Numbers


@dataclass(frozen=True)
class Forecast:
    """What was predicted of networks that a regression had not seen."""

    name: str
    outcome: Array
    cells: Numbers
    known: Array
    early: Array


Fit = Callable[[Group, NDArray], Array]


def make_groups(
    found: Sequence[Found], axes: Sequence[str]
) -> dict[str, Group]:
    """The networks that met the target, by decoder and region.

    Args:
        found: Networks of one or several studies with these hyperparameters.
    """
    met = [each for each in found if each.record["reached"]]
    known = _tabulate_settings(met, [a for a in axes if a not in GROUPED])
    numbers = _tabulate_numbers(met)
    errors = np.array([each.record[OUTCOME] for each in met])
    outcome = np.log10(np.maximum(errors, SMALLEST))
    cells = np.unique([e.cell.describe() for e in met], return_inverse=True)[1]
    names = np.array([_name_group(each) for each in met])
    return {
        str(name): Group(str(name), known[k], numbers[k], outcome[k], cells[k])
        for name in np.unique(names)
        if (k := names == name).sum()
    }


def _name_group(found: Found) -> str:
    setting = found.cell.setting
    return ", ".join(str(setting[n]) for n in GROUPED if n in setting)


def _tabulate_settings(met: Sequence[Found], axes: Sequence[str]) -> Array:
    """Hyperparameters as numbers and their products, [n, h]."""
    columns = [
        column
        for axis in axes
        for column in _number([each.cell.setting[axis] for each in met])
    ]
    table = np.column_stack(columns)
    table = table - table.mean(axis=0)
    pairs = itertools.combinations(range(table.shape[1]), 2)
    return np.column_stack(
        [table, *(table[:, i] * table[:, j] for i, j in pairs)]
    )


def _number(values: Sequence[Any]) -> list[Array]:
    """Logarithms of positive numbers; a column for each value of others."""
    try:
        numbers = np.array([float(value) for value in values])
    except ValueError:
        return [np.array(values) == v for v in sorted(set(values))[1:]]
    return [np.log(numbers) if (numbers > 0).all() else numbers]


def _tabulate_numbers(met: Sequence[Found]) -> Array:
    """Early numbers, [n, d]; NaN where there is none."""
    tables = [each.record["measures"] for each in met]
    keys = {
        (name, time)
        for table in tables
        for time in EARLY
        for name in table.get(time, {})
        if name.startswith(ID_ONLY) or name == ID_ERROR
    }
    columns = []
    for name, time in sorted(keys):
        found = [table.get(time, {}).get(name) for table in tables]
        column = np.array([np.nan if v is None else v for v in found], float)
        if name == ID_ERROR:
            column = np.log10(np.maximum(column, SMALLEST))
        columns.append(column)
    return np.column_stack(columns)


def forecast_left_out(group: Group, order: NDArray | None = None) -> Forecast:
    """Predicts every setting from the others of its decoder and region.

    Args:
        order: Whose numbers each network gets; its own by default.
    """
    numbers = group.numbers if order is None else group.numbers[order]
    folds = _deal(group.cells, FOLDS, 0)
    known, early = np.zeros((2, len(folds)))
    for fold in np.unique(folds):
        out = folds == fold
        own = (group.known, numbers, group.outcome, group.cells)
        known[out], early[out] = _predict_both(
            *(each[~out] for each in own), group.known[out], numbers[out]
        )
    return Forecast(group.name, group.outcome, group.cells, known, early)


def forecast_fresh(
    group: Group, fresh: Group, order: NDArray | None = None
) -> Forecast:
    """Predicts fresh networks from all recorded ones."""
    numbers = group.numbers if order is None else group.numbers[order]
    known, early = _predict_both(
        group.known,
        numbers,
        group.outcome,
        group.cells,
        fresh.known,
        fresh.numbers,
    )
    return Forecast(fresh.name, fresh.outcome, fresh.cells, known, early)


def _predict_both(
    known: Array,
    numbers: Array,
    outcome: Array,
    cells: Numbers,
    new_known: Array,
    new_numbers: Array,
) -> tuple[Array, Array]:
    """Predictions from hyperparameters alone, and with early numbers."""
    usable = np.isfinite(numbers).mean(axis=0) >= MIN_SHARE
    means = np.nanmean(numbers[:, usable], axis=0)
    numbers, new_numbers = (
        np.where(np.isfinite(n), n, means)
        for n in (numbers[:, usable], new_numbers[:, usable])
    )
    both = np.concatenate([known, new_known])
    found = _predict(known, outcome, cells, both)
    # Of what hyperparameters leave, so that useless numbers cost nothing.
    left, first = outcome - found[: len(known)], found[len(known) :]
    return first, first + _predict(numbers, left, cells, new_numbers)


def _predict(x: Array, y: Array, cells: Numbers, new: Array) -> Array:
    """Ridge regression with a penalty chosen by settings left out."""
    folds = _deal(cells, INNER_FOLDS, 1)
    errors = np.zeros(len(PENALTIES))
    for fold in np.unique(folds):
        out = folds == fold
        found = _solve(x[~out], y[~out], x[out], PENALTIES)
        errors += ((found - y[out]) ** 2).sum(axis=1)
    return _solve(x, y, new, PENALTIES[[errors.argmin()]])[0]


def _solve(x: Array, y: Array, new: Array, penalties: Array) -> Array:
    """Predictions of each penalty, [p, n]; a penalty is per network."""
    center, scale = x.mean(axis=0), x.std(axis=0)
    scale = np.where(scale > 1e-12, scale, np.inf)
    x, new = (
        np.clip((each - center) / scale, -FURTHEST, FURTHEST)
        for each in (x, new)
    )
    values, vectors = np.linalg.eigh(x @ x.T)
    weights = (vectors.T @ (y - y.mean())) / (
        values + len(x) * penalties[:, None]
    )
    return weights @ (new @ x.T @ vectors).T + y.mean()


def _deal(cells: Numbers, count: int, seed: int) -> Numbers:
    """A fold for every setting, the same way every time."""
    places = np.unique(cells, return_inverse=True)[1]
    order = np.random.default_rng(seed).permutation(places.max() + 1)
    return (order % min(count, len(order)))[places]


def judge_forecasts(
    forecasts: Sequence[Forecast], others: Sequence[Sequence[Forecast]]
) -> dict[str, Any]:
    """How much the early numbers add, with intervals over settings.

    Args:
        forecasts: One for each decoder and region.
        others: The same from numbers of other networks, many times.
    """
    drawn = np.array(list(_draw(forecasts)))
    row: dict[str, Any] = {"networks": sum(len(f.outcome) for f in forecasts)}
    for name, values, found in zip(
        ("spearman", "r2"),
        np.moveaxis(drawn, 2, 0),
        _score(forecasts).T,
        strict=True,
    ):
        gains = values[:, 1] - values[:, 0]
        low, high = np.nanquantile(gains, (0.025, 0.975))
        row[f"{name}_known"], row[f"{name}_early"] = found
        row[f"{name}_gain"] = found[1] - found[0]
        row |= {f"{name}_gain_low": low, f"{name}_gain_high": high}
    chance = [np.subtract(*_score(each)[::-1])[0] for each in others]
    row["permuted_gain"] = max(chance, default=np.nan)
    row["helps"] = bool(
        row["spearman_gain_low"] > 0
        and row["r2_gain_low"] > 0
        and row["spearman_gain"] > row["permuted_gain"]
    )
    return row


def _draw(forecasts: Sequence[Forecast]) -> Iterator[Array]:
    """Scores with the settings of every group drawn again, many times."""
    rng = np.random.default_rng(0)
    members = [
        [np.flatnonzero(f.cells == cell) for cell in np.unique(f.cells)]
        for f in forecasts
    ]
    for _ in range(DRAWS):
        drawn = []
        for forecast, rows in zip(forecasts, members, strict=True):
            chosen = rng.integers(len(rows), size=len(rows))
            take = np.concatenate([rows[i] for i in chosen])
            drawn.append(_take(forecast, take))
        yield _score(drawn)


def _take(forecast: Forecast, rows: NDArray) -> Forecast:
    arrays = (forecast.outcome, forecast.cells, forecast.known, forecast.early)
    return Forecast(forecast.name, *(each[rows] for each in arrays))


def _score(forecasts: Sequence[Forecast]) -> Array:
    """Mean rank correlation and pooled R², [known or early, statistic].

    R² is about the mean of each decoder and region.
    """
    scores = np.zeros((2, 2))
    for i, name in enumerate(("known", "early")):
        pairs = [(getattr(f, name), f.outcome) for f in forecasts]
        scores[i, 0] = np.nanmean([correlate(*pair) for pair in pairs])
        rest = sum(((a - b) ** 2).sum() for a, b in pairs)
        scores[i, 1] = 1 - rest / sum(
            ((b - b.mean()) ** 2).sum() for _, b in pairs
        )
    return scores


def correlate(a: Array, b: Array) -> float:
    """Spearman's rank correlation; 0 where one of them is constant."""
    if len(a) < 3 or np.ptp(a) == 0 or np.ptp(b) == 0:
        return 0.0
    ranks = stats.rankdata([a, b], axis=1)
    return float(np.corrcoef(ranks)[0, 1])
