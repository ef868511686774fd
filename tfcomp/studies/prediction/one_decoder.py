"""All early numbers at once, for somebody who has one decoder and one task.

Within every decoder and region a ridge regression predicts the outcome from
hyperparameters, and a second one what these leave from all early numbers of ID
points. Settings are left out with all their seeds. Early numbers help if, at
95 %, they raise the rank correlation and R² above those of hyperparameters
alone, and by more than the numbers of other networks do in any of
`PERMUTATIONS` repetitions.
"""

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from tfcomp.studies.prediction import evidence
from tfcomp.studies.prediction.design import DECODER, ID_ONLY, Found
from tfcomp.studies.prediction.evidence import ID_ERROR, Array, Numbers

EARLY = ("0", "0.05", "0.1", "0.25")
GROUPED = (DECODER, "region")
MIN_SHARE = 0.9
FOLDS, INNER_FOLDS = 16, 5
PERMUTATIONS, DRAWS = 39, 2000
ENDS = (0.025, 0.975)
PENALTIES = 10.0 ** np.arange(-2, 6)
# Standard deviations beyond which a number counts no more.
FURTHEST = 4.0


class Rows:
    """A name, and arrays with a row for each network, as the fields have it."""

    def take(self, rows: NDArray) -> Self:
        """Some of the networks."""
        name, *arrays = (getattr(self, f.name) for f in fields(self))
        return type(self)(name, *(array[rows] for array in arrays))


@dataclass(frozen=True)
class Group(Rows):
    """The networks of one decoder and region."""

    name: str
    index: Numbers  # their places in the list that they are from, [n]
    known: Array  # hyperparameters and their products, [n, h]
    numbers: Array  # early numbers of ID points, [n, d]; NaN without one
    outcome: Array  # log10 of the OOD relative MSE, [n]
    cells: Numbers  # the number of the setting of each, [n]

    def permute(self, rng: np.random.Generator) -> "Group":
        """Every network with the early numbers of another one."""
        order = rng.permutation(len(self.numbers))
        return replace(self, numbers=self.numbers[order])


@dataclass(frozen=True)
class Forecast(Rows):
    """What was predicted of networks that a regression had not seen."""

    name: str
    outcome: Array
    cells: Numbers
    known: Array
    early: Array


def make_groups(
    found: Sequence[Found], axes: Sequence[str], with_error: bool = False
) -> list[Group]:
    """The networks of any studies that met the target, by decoder and region.

    The ID error at the end may count as known.
    """
    place = np.flatnonzero([each.record["reached"] for each in found])
    chosen = [found[i] for i in place]
    if not chosen:
        return []
    records = [each.record for each in chosen]
    settings = [each.cell.setting for each in chosen]
    columns = [
        column
        for axis in axes
        if axis not in GROUPED
        for column in _list_columns([setting[axis] for setting in settings])
    ]
    if with_error:
        columns.append(
            evidence.take_log([record[ID_ERROR] for record in records])
        )
    early = [
        values
        for (name, time), values in sorted(evidence.tabulate(records).items())
        if time in EARLY and (name.startswith(ID_ONLY) or name == ID_ERROR)
    ]
    every = Group(
        "",
        place,
        _multiply(np.column_stack(columns)),
        np.column_stack(early),
        evidence.take_log([record[evidence.OUTCOME] for record in records]),
        evidence.number([each.cell.describe() for each in chosen]),
    )
    names = np.array(
        [", ".join(str(s[n]) for n in GROUPED if n in s) for s in settings]
    )
    return [
        replace(every.take(names == name), name=str(name))
        for name in np.unique(names)
    ]


def _multiply(table: Array) -> Array:
    """Numbers about their mean, and the products of two, [n, h]."""
    table = table - table.mean(axis=0)
    pairs = itertools.combinations(table.T, 2)
    return np.column_stack([table, *(a * b for a, b in pairs)])


def _list_columns(values: Sequence[Any]) -> list[Array]:
    """Logarithms of positive numbers; a column for each value of others."""
    try:
        numbers = np.array([float(value) for value in values])
    except ValueError:
        return [np.array(values) == v for v in sorted(set(values))[1:]]
    return [np.log(numbers) if (numbers > 0).all() else numbers]


def forecast_left_out(group: Group) -> Forecast:
    """Predicts every setting from the others of its decoder and region."""
    folds = _deal(group.cells, FOLDS, 0)
    known, early = np.zeros((2, len(folds)))
    for fold in np.unique(folds):
        out = folds == fold
        both = _predict_both(group.take(~out), group.take(out))
        known[out], early[out] = both
    return Forecast(group.name, group.outcome, group.cells, known, early)


def forecast_fresh(group: Group, fresh: Group) -> Forecast:
    """Predicts fresh networks from recorded ones."""
    both = _predict_both(group, fresh)
    return Forecast(fresh.name, fresh.outcome, fresh.cells, *both)


def forecast_permuted(pairs: Sequence[tuple[Group, Group]]) -> list[list]:
    """The control: forecasts by the numbers of other networks, many times."""
    rng = np.random.default_rng(0)
    return [
        [forecast_fresh(a.permute(rng), b.permute(rng)) for a, b in pairs]
        for _ in range(PERMUTATIONS)
    ]


def _predict_both(group: Group, new: Group) -> tuple[Array, Array]:
    """Predictions from hyperparameters alone, and with early numbers."""
    usable = np.isfinite(group.numbers).mean(axis=0) >= MIN_SHARE
    means = np.nanmean(group.numbers[:, usable], axis=0)
    numbers, new_numbers = (
        np.where(np.isfinite(n), n, means)
        for n in (group.numbers[:, usable], new.numbers[:, usable])
    )
    both = np.concatenate([group.known, new.known])
    found = _predict(group.known, group.outcome, group.cells, both)
    first = found[len(group.known) :]
    # Of what hyperparameters leave, so that useless numbers cost nothing.
    left = group.outcome - found[: len(group.known)]
    return first, first + _predict(numbers, left, group.cells, new_numbers)


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
    shrunk = values + len(x) * penalties[:, None]
    weights = (vectors.T @ (y - y.mean())) / shrunk
    return weights @ (new @ x.T @ vectors).T + y.mean()


def _deal(cells: Numbers, count: int, seed: int) -> Numbers:
    """A fold for every setting, the same way every time."""
    places = evidence.number(cells)
    order = np.random.default_rng(seed).permutation(places.max() + 1)
    return (order % min(count, len(order)))[places]


def judge_forecasts(
    forecasts: Sequence[Forecast], others: Sequence[Sequence[Forecast]] = ()
) -> dict[str, Any]:
    """How much early numbers add, with 95 % intervals over settings.

    Given the same from numbers of other networks, many times, with a verdict.
    """
    found = _score(forecasts)
    drawn = np.array([_score(each) for each in _draw_again(forecasts)])
    row: dict[str, Any] = {"networks": sum(len(f.outcome) for f in forecasts)}
    for i, name in enumerate(("spearman", "r2")):
        gains = drawn[:, 1, i] - drawn[:, 0, i]
        low, high = np.quantile(gains, ENDS)
        first, second = found[:, i]
        row |= {
            f"{name}_hyperparameters": first,
            f"{name}_early": second,
            f"{name}_gain": second - first,
            f"{name}_gain_low": low,
            f"{name}_gain_high": high,
        }
    if others:
        chance = [np.subtract(*_score(each)[::-1])[0] for each in others]
        row["permuted_gain"] = max(chance)
        row["helps"] = bool(
            min(row["spearman_gain_low"], row["r2_gain_low"]) > 0
            and row["spearman_gain"] > row["permuted_gain"]
        )
    return row


def describe_trust(forecast: Forecast) -> dict[str, Any]:
    """How often a forecast names the better of two networks; .5 is chance."""
    drawn = _draw_again([forecast], DRAWS // 10)
    shares = [_order(each.early, each.outcome) for (each,) in drawn]
    low, high = np.quantile(shares, ENDS)
    return {
        "pair": forecast.name,
        "networks": len(forecast.outcome),
        "hyperparameters": _order(forecast.known, forecast.outcome),
        "early": _order(forecast.early, forecast.outcome),
        "early_low": low,
        "early_high": high,
    }


def _order(found: Array, outcome: Array) -> float:
    """Share of pairs in the right order; ties of the forecast count half."""
    gaps = outcome[:, None] - outcome
    signs = np.sign(found[:, None] - found) * np.sign(gaps)
    return float(0.5 + 0.5 * signs.sum() / max((gaps != 0).sum(), 1))


def _draw_again(
    forecasts: Sequence[Forecast], draws: int = DRAWS
) -> Iterator[list[Forecast]]:
    """The forecasts with the settings of each drawn again, many times."""
    rng = np.random.default_rng(0)
    members = [
        [np.flatnonzero(f.cells == cell) for cell in np.unique(f.cells)]
        for f in forecasts
    ]
    for _ in range(draws):
        drawn = []
        for forecast, rows in zip(forecasts, members, strict=True):
            places = rng.integers(len(rows), size=len(rows))
            taken = np.concatenate([rows[i] for i in places])
            drawn.append(forecast.take(taken))
        yield drawn


def _score(forecasts: Sequence[Forecast]) -> Array:
    """Of hyperparameters, then with early numbers: Spearman and R², [2, 2].

    The mean correlation of pairs of decoder and region; R² about their means.
    """
    correlations = np.array([_correlate(f) for f in forecasts])
    around = sum(len(f.outcome) * f.outcome.var() for f in forecasts)
    rest = [
        sum(((f.outcome - getattr(f, name)) ** 2).sum() for f in forecasts)
        for name in ("known", "early")
    ]
    r2 = 1 - np.array(rest) / max(around, 1e-300)
    return np.column_stack([correlations.mean(axis=0), r2])


def _correlate(forecast: Forecast) -> Array:
    """Spearman's correlation of both predictions, [2]; 0 of a constant."""
    table = [forecast.outcome, forecast.known, forecast.early]
    ranks = stats.rankdata(table, axis=1)
    ranks = ranks - ranks.mean(axis=1, keepdims=True)
    sizes = np.sqrt((ranks**2).sum(axis=1))
    return ranks[1:] @ ranks[0] / np.maximum(sizes[1:] * sizes[0], 1e-12)
