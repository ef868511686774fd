"""All early numbers at once, for somebody who has one decoder and one task.

The rules of `judgement` ask one number at a time, and across decoders. Here a
ridge regression within every decoder and region predicts the outcome from
hyperparameters, and a second one what these leave from all early numbers that
look at ID points alone. Settings are left out whole, since seeds of a setting
are not independent. `forecast_scores` says whether early numbers help.
"""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from tfcomp.studies.prediction.design import DECODER, ID_ONLY, Found
from tfcomp.studies.prediction.evidence import (
    ID_ERROR,
    OUTCOME,
    Array,
    Numbers,
    number,
    tabulate,
    take_log,
)

EARLY = ("0", "0.05", "0.1", "0.25")
GROUPED = (DECODER, "region")
MIN_SHARE = 0.9
FOLDS, INNER_FOLDS = 16, 5
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
    """The networks of one decoder and region.

    Attributes:
        index: Their places in the list that they are from, [n].
        known: Hyperparameters and their products, [n, h].
        numbers: Early numbers of ID points, [n, d]; NaN where there is none.
        outcome: log10 of the OOD relative MSE, [n].
        cells: The number of the setting of each, [n].
    """

    name: str
    index: Numbers
    known: Array
    numbers: Array
    outcome: Array
    cells: Numbers

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
    """The networks that met the target, by decoder and region.

    Args:
        found: Networks of one or several studies with these hyperparameters.
        with_error: Whether the ID error at the end counts as known.
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
        columns.append(take_log([record[ID_ERROR] for record in records]))
    early = [
        values
        for (name, time), values in sorted(tabulate(records).items())
        if time in EARLY and (name.startswith(ID_ONLY) or name == ID_ERROR)
    ]
    every = Group(
        "",
        place,
        _multiply(np.column_stack(columns)),
        np.column_stack(early),
        take_log([record[OUTCOME] for record in records]),
        number([each.cell.describe() for each in chosen]),
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
    places = number(cells)
    order = np.random.default_rng(seed).permutation(places.max() + 1)
    return (order % min(count, len(order)))[places]
