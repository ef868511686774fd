"""The flags of a prediction study, beside its grid and those of its runs."""

from dataclasses import dataclass

from tfcomp.config.settings import setting
from tfcomp.sweeps.sweep_settings import SeedSettings

# When networks are measured, as shares of the steps to the target.
TIMES = (0.0, 0.05, 0.1, 0.25, 1.0)
# Before the name of a number: does it look at held-out combinations?
ID_ONLY, ALL_POINTS = "id.", "all."


@dataclass(frozen=True)
class PredictSettings(SeedSettings):
    """How the networks of a study are trained, and which are judged."""

    target: float = setting(
        0.05,
        "The ID relative MSE that every network is trained to. It is looked "
        "at once an epoch; a network that misses it in --epochs is reported "
        "and not judged.",
        above=0.0,
    )
    confirm: bool = setting(
        False,
        "Also train the half of the design that is held back, and judge on "
        "it the measures that the other half has proposed. Do so once, when "
        "nothing is left to decide.",
    )
