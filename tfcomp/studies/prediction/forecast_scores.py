"""Do early numbers help a forecast? Scores, intervals, and a control.

They help if, at 95 %, they raise the rank correlation with the outcome and R²
above those of hyperparameters alone, and by more than the numbers of other
networks do in any of `PERMUTATIONS` repetitions.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from scipy import stats

from tfcomp.studies.prediction.evidence import Array
from tfcomp.studies.prediction.one_decoder import Forecast

PERMUTATIONS, DRAWS = 39, 2000
ENDS = (0.025, 0.975)


def judge_forecasts(
    forecasts: Sequence[Forecast], others: Sequence[Sequence[Forecast]] = ()
) -> dict[str, Any]:
    """How much early numbers add, with 95 % intervals over settings.

    Args:
        forecasts: One for each decoder and region.
        others: The same from numbers of other networks, many times; without
            any there is no verdict.
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
    """How often a forecast names the better one of two networks.

    0.5 is chance. The interval is over settings drawn again.
    """
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

    The mean rank correlation within decoders and regions, and R² about the
    mean of each, of all together.
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
