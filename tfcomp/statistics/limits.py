"""The range of a quantity, inside which its intervals stay."""

import math
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Limits:
    """Range of a quantity, ends included, in which its intervals stay.

    A mean and its standard error are carried to a scale without ends, Student's
    interval is made there, and its ends are carried back (the delta method):

        range               scale                           as for
        above a number      logarithm of the distance       MSE, counts
        below a number      the same, turned around         R^2 of predictions
        between two         log odds of the place in it     shares, correlations

    For a correlation log odds are twice Fisher's z. Numbers of single runs are
    not transformed: many lie at an end, which has no place on such a scale.
    """

    low: float = -math.inf
    high: float = math.inf

    def __str__(self) -> str:
        low = "(-inf"
        if not math.isinf(self.low):
            low = f"[{self.low:g}"
        high = "inf)"
        if not math.isinf(self.high):
            high = f"{self.high:g}]"
        return f"{low}, {high}"

    def widen(self, values: Sequence[float]) -> "Limits":
        """Returns the range; all numbers if one of the values is outside.

        Args:
            values: Numbers of single runs.
        """
        for value in values:
            if not self.low <= value <= self.high:
                return REAL
        return self

    def link(self, value: float) -> float:
        """Maps a value inside the range to the scale without ends.

        Args:
            value: A number of the quantity.
        """
        above = value - self.low
        below = self.high - value
        if above <= 0:
            return -math.inf
        if below <= 0:
            return math.inf
        if self == REAL:
            return value

        place = 0.0
        if not math.isinf(self.low):
            place = math.log(above)
        if not math.isinf(self.high):
            place -= math.log(below)
        return place

    def inverse_link(self, place: float) -> float:
        """Maps a number on the scale without ends into the range.

        Args:
            place: A number without ends.
        """
        if self == REAL:
            return place
        if math.isinf(self.high):
            return self.low + _exp(place)
        if math.isinf(self.low):
            return self.high - _exp(-place)
        odds = math.tanh(place / 2)
        share = 0.5 * (1 + odds)
        span = self.high - self.low
        return self.low + span * share

    def derivative(self, value: float) -> float:
        """Returns the derivative of the link at a value inside the range.

        Args:
            value: A number of the quantity.
        """
        if self == REAL:
            return 1.0
        above = value - self.low
        below = self.high - value
        return 1 / above + 1 / below


REAL = Limits()
POSITIVE = Limits(low=0.0)
SHARE = Limits(0.0, 1.0)
CORRELATION = Limits(-1.0, 1.0)
AT_MOST_ONE = Limits(high=1.0)


def _exp(place: float) -> float:
    """Computes the exponential; infinite where `math.exp` overflows."""
    if place < 709:
        return math.exp(place)
    return math.inf
