"""Units go from stripes to bumps.

Figures 4e, 4f and 15.
"exhibits “stripes” in early layers, which localizes to become a “bump” in
downstream layers"
"""

from functools import partial

from pandas import Series

from reproduction.claims import ALL, UNTRAINED, Evidence, Networks, Reader, Rows
from reproduction.claims.networks import (
    SHORT,
    STRIPES,
    TRAIN_ALL,
    judge_networks,
    read_change,
)

SEEDS = range(300, 320)
COUNTS = (0, 10, 50, 100)
NOTE = """
Product units count oblique ridges as well as bumps. Stripes and bumps among all
live units are not measured in these networks, but in published ones (table
below).
"""


def read_last(networks: Networks) -> Series:
    """Reads products less sums at the last hidden stage."""
    return networks.stages("product_less_sum").iloc[:, -2]


def lose_stripes(networks: Networks) -> Series:
    """Reads the share of stripes, first hidden stage less the last."""
    of_x = read_change(networks, "stripe_x_share")
    return -of_x - read_change(networks, "stripe_y_share")


QUANTITIES: dict[str, Reader] = {
    "product less sum units, last less first hidden": partial(
        read_change, name="product_less_sum"
    ),
    "stripes among live units, first less last hidden": lose_stripes,
    "bumps among live units, last less first hidden": partial(
        read_change, name="bump_share"
    ),
}


def judge(evidence: Evidence) -> Rows:
    """Yields the rows of the claim."""
    flags = STRIPES | SHORT | {"precision": "float32"}
    every = flags | TRAIN_ALL | {"num_bumps": 784}
    trained = evidence.select(**every).placed
    for count in COUNTS:
        networks = evidence.select(**flags, num_bumps=count, seed=SEEDS).placed
        controls = {ALL: trained, UNTRAINED: networks.untrained}
        for quantity, number in QUANTITIES.items():
            yield judge_networks(
                networks,
                number,
                controls,
                part=f"{count} bumps",
                quantity=quantity,
                bound="> 0",
                shown=count == 50,
            )
