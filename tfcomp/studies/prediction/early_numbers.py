"""All early numbers at once, for users who have one decoder and one region.

Within each decoder and region one ridge regression predicts the outcome from
hyperparameters, and a second one predicts the residuals from all early numbers
of ID points. Settings are left out with all their seeds. Early numbers help if,
at 95 %, they raise Spearman's correlation and R² above those of hyperparameters
alone, and raise the correlation by more than the numbers of other networks do
in any of `PERMUTATIONS` repetitions.
"""

import itertools
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import stats
from sklearn.linear_model import ridge_regression

from tfcomp.studies.prediction import networks
from tfcomp.studies.prediction.networks import Array, Networks

EARLY = (0.0, 0.05, 0.1, 0.25)
GROUPED = [networks.DECODER, networks.REGION]
MIN_CELLS = 8  # settings of a decoder and region
FOLDS, INNER_FOLDS = 16, 5
PERMUTATIONS, DRAWS = 39, 2000
ENDS = (0.025, 0.975)
PENALTIES: Array = 10.0 ** np.arange(-2, 6)  # for each network of a fit
FURTHEST = 4.0  # standard deviations; values further out are clipped

Rows = NDArray[np.int_]


class Forecast(NamedTuple):
    """Predictions for networks of a group that the regressions had not seen.

    The columns of `table` [n, 3] are the outcome, its prediction from
    hyperparameters, and its prediction from early numbers as well.
    """

    name: str
    cells: Rows
    table: Array


class Features:
    """What regressions know of networks, [n, ...], and groups of their rows.

    Args:
        found: Networks, of which those that reached the target count.
        with_error: Counts the ID error that was reached as known.
    """

    def __init__(self, found: Networks, with_error: bool = False) -> None:
        self.is_fresh = found.fitted.table["is_fresh"].to_numpy(bool)
        table, numbers = found.fitted.table, found.fitted.numbers
        names = [n for n in found.hyperparameters if n not in GROUPED]
        known = [column for name in names for column in _encode(table[name])]
        if with_error:
            known.append(networks.take_log(table[networks.ID_ERROR]))
        self.known = _multiply(np.column_stack(known))
        early = [
            (name, time)
            for name, time in found.keys
            if time in EARLY
            and (name.startswith(networks.ID_ONLY) or name == networks.ID_ERROR)
        ]
        self.early = numbers[early].to_numpy(float)
        self.outcome = found.fitted.outcome
        settings = table[found.hyperparameters].apply(" ".join, axis=1)
        self.cells = pd.factorize(settings, sort=True)[0]
        grouped = [name for name in GROUPED if name in found.hyperparameters]
        labels = table[grouped].apply(", ".join, axis=1).to_numpy()
        rows = {name: np.flatnonzero(labels == name) for name in set(labels)}
        self.groups = {
            name: rows[name]
            for name in sorted(rows)
            if len(np.unique(self.cells[rows[name]])) >= MIN_CELLS
        }

    def forecast_left_out(self) -> list[Forecast]:
        """Predicts each setting from the others of its group."""
        forecasts = []
        for name, rows in self.groups.items():
            folds = _deal(self.cells[rows], FOLDS, 0)
            table = np.empty((len(rows), 3))
            for fold in np.unique(folds):
                out = folds == fold
                table[out] = self._predict(rows[~out], rows[out])
            forecasts.append(Forecast(name, self.cells[rows], table))
        return forecasts

    def forecast_fresh(
        self, rng: np.random.Generator | None = None
    ) -> list[Forecast]:
        """Predicts fresh networks from the others of their group.

        With a generator, every network gets the early numbers of another one.
        """
        forecasts = []
        for name, rows in self.groups.items():
            is_fresh = self.is_fresh[rows]
            old, new = rows[~is_fresh], rows[is_fresh]
            if len(old) and len(new):
                table = self._predict(old, new, rng)
                forecasts.append(Forecast(name, self.cells[new], table))
        return forecasts

    def _predict(
        self, old: Rows, new: Rows, rng: np.random.Generator | None = None
    ) -> Array:
        """Returns the table of a `Forecast` of new networks from old ones."""
        early, new_early = (
            self.early[
                rows if rng is None else rows[rng.permutation(len(rows))]
            ]
            for rows in (old, new)
        )
        usable = np.isfinite(early).mean(axis=0) >= networks.MIN_SHARE
        means = np.nanmean(early[:, usable], axis=0)
        early, new_early = (
            np.where(np.isfinite(each), each, means)
            for each in (early[:, usable], new_early[:, usable])
        )
        cells, outcome = self.cells[old], self.outcome[old]
        both = self.known[np.concatenate([old, new])]
        found = _regress(self.known[old], outcome, cells, both)
        known = found[len(old) :]
        # Of residuals, so that useless numbers cost nothing.
        gain = _regress(early, outcome - found[: len(old)], cells, new_early)
        return np.column_stack([self.outcome[new], known, known + gain])


def _encode(values: pd.Series) -> list[Array]:
    """Returns logarithms of positive numbers, or a column for each value."""
    try:
        numbers = values.astype(float).to_numpy()
    except ValueError:
        return [(values == v).to_numpy(float) for v in sorted(set(values))[1:]]
    return [np.log(numbers) if (numbers > 0).all() else numbers]


def _multiply(table: Array) -> Array:
    """Returns centered columns and the products of two of them, [n, h]."""
    table = table - table.mean(axis=0)
    pairs = itertools.combinations(table.T, 2)
    return np.column_stack([table, *(a * b for a, b in pairs)])


def _regress(x: Array, y: Array, cells: Rows, new: Array) -> Array:
    """Predicts by ridge regression, with a penalty chosen on left-out cells."""
    folds = _deal(cells, INNER_FOLDS, 1)
    errors = np.zeros(len(PENALTIES))
    for fold in np.unique(folds):
        out = folds == fold
        found = fit_ridges(x[~out], y[~out], x[out], PENALTIES)
        errors += ((found - y[out, None]) ** 2).sum(axis=0)
    return fit_ridges(x, y, new, PENALTIES[[errors.argmin()]])[:, 0]


def fit_ridges(x: Array, y: Array, new: Array, penalties: Array) -> Array:
    """Returns the predictions of a ridge regression a penalty, [n, p]."""
    center, scale = x.mean(axis=0), x.std(axis=0)
    scale = np.where(scale > 1e-12, scale, np.inf)
    x, new = (
        np.clip((each - center) / scale, -FURTHEST, FURTHEST)
        for each in (x, new)
    )
    targets = np.repeat((y - y.mean())[:, None], len(penalties), axis=1)
    slopes = ridge_regression(
        x, targets, len(x) * penalties, solver="cholesky", check_input=False
    )
    # Rounded, so that equal settings have equal predictions.
    return (new @ np.atleast_2d(slopes).T + y.mean()).round(9)


def _deal(cells: Rows, count: int, seed: int) -> Rows:
    """Returns a fold for every network; those of a setting share theirs."""
    places = np.unique(cells, return_inverse=True)[1]
    order = np.random.default_rng(seed).permutation(places.max() + 1)
    return (order % min(count, len(order)))[places]


def permute(features: Features) -> list[list[Forecast]]:
    """Repeats fresh forecasts with numbers of other networks, as a control."""
    rng = np.random.default_rng(0)
    return [features.forecast_fresh(rng) for _ in range(PERMUTATIONS)]


def judge_forecasts(
    forecasts: Sequence[Forecast], controls: Sequence[Sequence[Forecast]] = ()
) -> dict[str, Any]:
    """Returns what early numbers add, with 95 % intervals over settings.

    With controls (`permute`) there is a verdict.
    """
    scores = _score([forecast.table for forecast in forecasts])
    drawn = np.array([_score(tables) for tables in _resample(forecasts, DRAWS)])
    row: dict[str, Any] = {"networks": sum(len(f.table) for f in forecasts)}
    for i, name in enumerate(("spearman", "r2")):
        low, high = np.quantile(drawn[:, 1, i] - drawn[:, 0, i], ENDS)
        row |= {
            f"{name}_hyperparameters": scores[0, i],
            f"{name}_early": scores[1, i],
            f"{name}_gain": scores[1, i] - scores[0, i],
            f"{name}_gain_low": low,
            f"{name}_gain_high": high,
        }
    if controls:
        others = [_score([f.table for f in each])[:, 0] for each in controls]
        row["permuted_gain"] = max(early - known for known, early in others)
        row["helps"] = bool(
            min(row["spearman_gain_low"], row["r2_gain_low"]) > 0
            and row["spearman_gain"] > row["permuted_gain"]
        )
    return row


def describe_trust(forecast: Forecast) -> dict[str, Any]:
    """Returns how often a forecast names the better of two networks."""
    drawn = _resample([forecast], DRAWS // 10)
    low, high = np.quantile([_count_right(t)[1] for (t,) in drawn], ENDS)
    known, early = _count_right(forecast.table)
    names = "pair networks hyperparameters early early_low early_high".split()
    values = forecast.name, len(forecast.table), known, early, low, high
    return dict(zip(names, values, strict=True))


def _count_right(table: Array) -> Array:
    """Returns the share of pairs in the right order; ties count half, [2]."""
    signs = np.sign(table[:, None, :] - table)
    right = (signs[..., :1] * signs[..., 1:]).sum(axis=(0, 1))
    return 0.5 + 0.5 * right / max(np.abs(signs[..., 0]).sum(), 1)


def _resample(
    forecasts: Sequence[Forecast], draws: int
) -> Iterator[list[Array]]:
    """Yields the tables of forecasts with resampled settings."""
    rng = np.random.default_rng(0)
    members = [
        [np.flatnonzero(f.cells == cell) for cell in np.unique(f.cells)]
        for f in forecasts
    ]
    for _ in range(draws):
        tables = []
        for forecast, cells in zip(forecasts, members, strict=True):
            drawn = rng.integers(len(cells), size=len(cells))
            rows = np.concatenate([cells[i] for i in drawn])
            tables.append(forecast.table[rows])
        yield tables


def _score(tables: Sequence[Array]) -> Array:
    """Returns Spearman and R² of both predictions, [2, 2].

    The correlation is the mean over tables; R² is about their means.
    """
    correlations = np.mean([_correlate(table) for table in tables], axis=0)
    around = sum(len(table) * table[:, 0].var() for table in tables)
    rest = sum(
        ((table[:, :1] - table[:, 1:]) ** 2).sum(axis=0) for table in tables
    )
    return np.column_stack([correlations, 1 - rest / max(around, 1e-300)])


def _correlate(table: Array) -> Array:
    """Returns Spearman's correlations with the outcome; 0 of a constant."""
    ranks = stats.rankdata(table, axis=0)
    ranks -= ranks.mean(axis=0)
    sizes = np.maximum(np.sqrt((ranks**2).sum(axis=0)), 1e-6)
    return ranks[:, 1:].T @ ranks[:, 0] / (sizes[1:] * sizes[0])
