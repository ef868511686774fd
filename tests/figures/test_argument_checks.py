"""What does not fit is named before anything is drawn."""

from collections.abc import Callable

import numpy as np
import pytest

from tfcomp.datasets.factors import Factor
from tfcomp.datasets.grid_maps import GridMap
from tfcomp.figures.stage_plots import merge_stages

X_FACTOR = Factor("x", 3, 0.0, 2.0)
GOOD = {"values": np.arange(3.0), "factors": (X_FACTOR,)}


@pytest.mark.parametrize(
    ("make", "arguments", "message"),
    [
        (
            GridMap,
            GOOD | {"values": np.arange(2.0)},
            r"sizes of the factors, \(3,\).*\(2,\)",
        ),
        (
            GridMap,
            GOOD | {"mask": np.ones((5, 3), bool)},
            r"the factors, \(3,\).*\(5, 3\)",
        ),
        (merge_stages, {"lists": [["a", "b"], ["b", "a"]]}, "same order for"),
        (merge_stages, {"lists": [["a", "a"]]}, "same order for all lines"),
    ],
)
def test_bad_input_is_named(
    make: Callable, arguments: dict, message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        make(**arguments)
