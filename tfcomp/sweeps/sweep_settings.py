"""The flags of a sweep, beside its grid and the flags of its runs."""

from dataclasses import dataclass

from tfcomp.config.settings import Settings, setting

MAX_SEEDS = 10**4


@dataclass(frozen=True)
class SeedSettings(Settings):
    """The seeds of every setting of a grid."""

    seeds: int = setting(
        1,
        "How many seeds each setting is trained with.",
        minimum=1,
        maximum=MAX_SEEDS,
    )
    first_seed: int = setting(
        0, "The first of the seeds, which are consecutive.", minimum=0
    )

    @property
    def all_seeds(self) -> range:
        """The seeds of every setting."""
        return range(self.first_seed, self.first_seed + self.seeds)


@dataclass(frozen=True)
class SweepSettings(SeedSettings):
    """What is made of every setting of the grid."""

    measure: bool = setting(
        False,
        "Also compute the measures that the paper's claims are judged by, "
        "and write them into measures.json of every trial.",
    )
    interval: str = setting(
        "student",
        "How the 95 % interval of a mean over seeds is made: student takes "
        "the scores for normal, bootstrap does not but is too narrow for a "
        "handful of seeds.",
        choices=("student", "bootstrap"),
    )

    pairs: str = setting(
        "first",
        "Which settings paired.csv compares: first is the first setting of "
        "the grid with each other one, all is every pair, whose number grows "
        "with the square of the settings.",
        choices=("first", "all"),
    )
