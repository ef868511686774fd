"""The networks of the prediction study, and all their early numbers at once.

`networks.csv.xz` has the setting and the errors of each network, and numbers
measured during its training: `0.1|id.volume` after a tenth of it.

Within each decoder and region one ridge regression predicts the outcome from
hyperparameters, and a second one predicts the residuals from all early numbers
of ID points. Settings are left out with all their seeds. docs/predict.md says
when early numbers help.

Forecasts are tables [n, 3] of networks that the regressions had not seen: the
outcome, its prediction from hyperparameters, and from early numbers as well.
"""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import stats
from sklearn.preprocessing import PolynomialFeatures

from tfcomp.storage.files import DamagedFileError, read_xz

ID_ERROR, OUTCOME = "id_relative_mse", "ood_relative_mse"
DECODER, REGION = "model", "region"
Array = NDArray[Any]
EARLY = (0.0, 0.05, 0.1, 0.25)
PAIR = [DECODER, REGION]
FOLDS, INNER_FOLDS = 16, 5
PERMUTATIONS, DRAWS = 39, 2000
PENALTIES: Array = 10.0 ** np.arange(-2, 6)  # for each network of a fit
FURTHEST = 4.0  # standard deviations; values further out are clipped


class Networks:
    """Networks; hyperparameters are the columns from `half` to `seed`."""

    def __init__(self, table: pd.DataFrame) -> None:
        columns = [str(name) for name in table]
        start, end = columns.index("half") + 1, columns.index("seed")
        self.table, self.hyperparameters = table, columns[start:end]
        self.outcome = take_log(table[OUTCOME])  # [n]
        groups = table.groupby(self.hyperparameters, sort=True)
        self.cells: Array = groups.ngroup().to_numpy()  # settings, [n]

    def select(self, rows: Any) -> Networks:
        return Networks(self.table[rows])

    def get_half(self, name: str) -> Networks:
        """Returns the networks of a half that reached the target."""
        return self.select(self.table["reached"] & (self.table["half"] == name))

    def list_numbers(self) -> list[str]:
        """Returns the numbers that all networks have, and that differ."""
        numbers = self.table.filter(like="|").dropna(axis=1)
        differ = map(str, numbers.columns[numbers.max() > numbers.min()])
        # The share of the training that was over is no measure.
        found = [key for key in differ if split_number(key)[0] != "share"]
        return sorted(found, key=lambda key: split_number(key)[::-1])


def take_log(errors: pd.Series) -> Array:
    """Returns decimal logarithms of errors, of at least 1e-12."""
    return np.log10(np.maximum(errors.to_numpy(float), 1e-12))


def split_number(key: str) -> tuple[str, float]:
    """Returns the name of a number, and when it was measured."""
    time, _, name = key.partition("|")
    return name, float(time)


def read_networks(path: Path) -> Networks:
    """Reads the packed table of a study; DamagedFileError if it is none."""
    content = io.BytesIO(read_xz(path))
    texts: dict[str, Any] = {"keep_default_na": False, "na_values": [""]}
    try:
        table = pd.read_csv(content, dtype=str, **texts)
        numbers = [ID_ERROR, OUTCOME, *table.filter(like="|")]
        table = table.astype(dict.fromkeys(numbers, float)).copy()
        for name in table.filter(like=f"|{ID_ERROR}"):
            table[name] = take_log(table[name])
        reached = table["reached"] == "True"
        # Nothing was chosen on fresh networks.
        found = Networks(table.assign(reached=reached, is_fresh=False))
        known = [*found.hyperparameters, *PAIR, OUTCOME]
        if found.table[known].isna().any(axis=None):
            raise ValueError("a network lacks a hyperparameter or its outcome")
        return found
    except (LookupError, ValueError) as error:
        raise DamagedFileError(path, error) from error


@dataclass(frozen=True)
class Group:
    """Networks of one decoder and region, as arrays [n, ...]."""

    known: Array  # hyperparameters and their products
    early: Array
    outcome: Array
    cells: Array
    is_fresh: Array

    def forecast(self, rng: np.random.Generator | None = None) -> Array:
        """Predicts fresh networks from others; without any, each setting."""
        if self.is_fresh.any():
            return self._predict(self.is_fresh, rng)
        folds = deal_folds(self.cells, FOLDS, 0)
        table = np.empty((len(folds), 3))
        for fold in np.unique(folds):
            table[folds == fold] = self._predict(folds == fold, rng)
        return table

    def _predict(self, new: Array, rng: np.random.Generator | None) -> Array:
        old, is_known = ~new, np.isfinite(self.early).all(axis=0)  # by depth
        early = self.early[:, is_known]
        if rng is not None:
            for rows in (old, new):  # numbers of other networks
                early[rows] = rng.permutation(early[rows])
        outcome, cells = self.outcome[old], self.cells[old]
        found = _regress(self.known[old], outcome, cells, self.known)
        # Of residuals, so that useless numbers cost nothing.
        gain = _regress(early[old], outcome - found[old], cells, early)
        return np.stack([self.outcome, found, found + gain], axis=1)[new]


def list_groups(found: Networks) -> dict[str, Group]:
    """Returns the networks that reached the target by decoder and region."""
    found = found.select(found.table["reached"])
    table, names = found.table, found.hyperparameters
    columns = np.column_stack(
        [_encode(table[name]) for name in names if name not in PAIR]
    )
    early = []
    for key in map(str, table.filter(like="|")):
        name, time = split_number(key)
        is_id = name.startswith("id.") or name == ID_ERROR
        early += [key] * (is_id and time in EARLY)
    products = PolynomialFeatures(2, interaction_only=True, include_bias=False)
    arrays = (
        products.fit_transform(columns - columns.mean(axis=0)),
        table[early].to_numpy(),
        found.outcome,
        found.cells,
        table["is_fresh"].to_numpy(bool),
    )
    labels = table[PAIR].apply(", ".join, axis=1).to_numpy()
    return {
        str(name): Group(*(array[labels == name] for array in arrays))
        for name in np.unique(labels)
    }


def _encode(values: pd.Series) -> Array:
    try:
        numbers = values.astype(float).to_numpy()
    except ValueError:
        return pd.get_dummies(values, drop_first=True).to_numpy(float)
    return np.log(numbers) if (numbers > 0).all() else numbers


def _regress(x: Array, y: Array, cells: Array, new: Array) -> Array:
    """Predicts with the penalty that predicts left-out settings best."""
    folds, errors = deal_folds(cells, INNER_FOLDS, 1), np.zeros(len(PENALTIES))
    for fold in np.unique(folds):
        out = folds == fold
        found = fit_ridges(x[~out], y[~out], x[out], PENALTIES, FURTHEST)
        errors += ((found - y[out, None]) ** 2).sum(axis=0)
    return fit_ridges(x, y, new, PENALTIES[[errors.argmin()]], FURTHEST)[:, 0]


def fit_ridges(
    x: Array, y: Array, new: Array, penalties: Array, furthest: float = np.inf
) -> Array:
    """Returns predictions of a ridge regression for each penalty, [n, p]."""
    center, scale = x.mean(axis=0), x.std(axis=0)
    scale = np.where(scale > 1e-12, scale, np.inf)
    x, new = (
        np.clip((each - center) / scale, -furthest, furthest)
        for each in (x, new)
    )
    gram, moments = x.T @ x, x.T @ (y - y.mean())
    ridges = (len(x) * penalties)[:, None, None] * np.eye(len(gram))
    slopes = np.linalg.solve(gram + ridges, moments[:, None])[:, :, 0]
    # Rounded, so that equal settings have equal predictions.
    return (new @ slopes.T + y.mean()).round(9)


def deal_folds(cells: Array, count: int, seed: int) -> Array:
    """Returns the fold of every network; a setting is in one fold."""
    places = np.unique(cells, return_inverse=True)[1]
    order = np.random.default_rng(seed).permutation(places.max() + 1)
    return (order % min(count, len(order)))[places]


def judge_forecasts(
    forecasts: Mapping[str, Array],
    groups: Mapping[str, Group],
    controls: Sequence[Mapping[str, Array]] = (),
) -> dict[str, Any]:
    """Returns gains by early numbers, with 95 % intervals over settings."""
    scores = _score([*forecasts.values()])  # [2, 2]
    drawn = np.array([_score(d) for d in _resample(forecasts, groups)])
    gains = drawn[:, 1] - drawn[:, 0]
    row: dict[str, Any] = {
        "permuted_gain": None,
        "helps": None,
        "networks": sum(map(len, forecasts.values())),
    }
    for i, name in enumerate(("spearman", "r2")):
        row[f"{name}_hyperparameters"], row[f"{name}_early"] = scores[:, i]
        row[f"{name}_gain"] = scores[1, i] - scores[0, i]
        ends = np.quantile(gains[:, i], (0.025, 0.975))
        row[f"{name}_gain_low"], row[f"{name}_gain_high"] = ends
    if controls:
        others = [_score([*control.values()])[:, 0] for control in controls]
        row["permuted_gain"] = max(early - known for known, early in others)
        least = min(row["spearman_gain_low"], row["r2_gain_low"])
        is_more = row["spearman_gain"] > row["permuted_gain"]
        row["helps"] = bool(least > 0 and is_more)
    return row


def _resample(
    forecasts: Mapping[str, Array], groups: Mapping[str, Group]
) -> Iterator[list[Array]]:
    """Yields tables with resampled settings."""
    rng, tables = np.random.default_rng(0), []
    for name, table in forecasts.items():
        cells, fresh = groups[name].cells, groups[name].is_fresh
        cells = cells[fresh] if fresh.any() else cells
        tables.append([table[cells == cell] for cell in np.unique(cells)])
    for _ in range(DRAWS):
        yield [
            np.concatenate([t[i] for i in rng.integers(len(t), size=len(t))])
            for t in tables
        ]


def _score(tables: Sequence[Array]) -> Array:
    """Returns Spearman and R² of both predictions, [2, 2]."""
    ranks = [stats.rankdata(table, axis=0).T for table in tables]
    correlations = np.mean([np.corrcoef(r)[0, 1:] for r in ranks], axis=0)
    around = sum(len(table) * table[:, 0].var() for table in tables)
    rest = sum(
        ((table[:, :1] - table[:, 1:]) ** 2).sum(axis=0) for table in tables
    )
    return np.column_stack([correlations, 1 - rest / around])
