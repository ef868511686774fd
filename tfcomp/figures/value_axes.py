"""Axes that count the values of a factor, and show them."""

import math

import numpy as np
from matplotlib.axis import Axis
from matplotlib.ticker import MaxNLocator

from tfcomp.datasets.factors import Factor

MAX_TICKS = 6
MAX_NAMES = 10
# Letters of all ticks along a horizontal axis beyond which they are turned.
_MAX_LETTERS = 26
# Round parts of a circle, as multiples of powers of ten.
_DEGREES = (1, 1.5, 3, 4.5, 6, 9, 10)


def label_values(axis: Axis, factor: Factor) -> None:
    """Labels an axis with values and names, on which cells count from 0.

    Many evenly spaced values get round numbers wherever these lie between
    cells, others those of some cells, and names are told up to ten.
    """
    places, labels = _choose_ticks(factor)
    axis.set_ticks(places, labels)
    if axis.axis_name == "x" and sum(map(len, labels)) > _MAX_LETTERS:
        turned = {"rotation": 40, "ha": "right", "rotation_mode": "anchor"}
        axis.set_ticks(places, labels, **turned)


def _choose_ticks(factor: Factor) -> tuple[np.ndarray, list[str]]:
    values = factor.values()
    is_few = len(values) <= MAX_TICKS
    if is_few or factor.names or factor.levels or factor.categorical:
        most = MAX_NAMES if factor.names else MAX_TICKS
        places = np.arange(0, len(values), math.ceil(len(values) / most))
        return places, [factor.describe(values[place]) for place in places]
    steps = _DEGREES if factor.unit == "degrees" else (1, 2, 2.5, 5, 10)
    locator = MaxNLocator(MAX_TICKS - 1, steps=steps)
    numbers = locator.tick_values(values[0], values[-1])
    places = (numbers - factor.low) / factor.step
    is_inside = (places > -0.5) & (places < len(values) - 0.5)
    return places[is_inside], [f"{n:g}" for n in numbers[is_inside].round(9)]
